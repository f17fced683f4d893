"""The verbs, in process: a workspace on real git, an agent and a user who act in it, reports as they come back."""
