"""The bundles as a harness meets them: the end of a turn, commands in a prompt, instructions, screening, trust."""
