"""``safety/plumbing`` against real git."""
