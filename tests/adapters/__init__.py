"""Foreign protocols: what comes in, what goes out, and that nothing breaks the form of an answer."""
