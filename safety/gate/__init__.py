"""Runs the repository's own checks on the agent's files when a turn has ended, and says what that means for the commit.

Lives here: choosing the runner, running it in place on named files with an index of ours, reading what came of it, and the texts for the
model and the user. May touch: one index file in the git directory while a run lasts, objects of the agent's files, log files in the folder
it was given; the work tree is changed by the checks alone. Never: a mode of a runner that hides the user's edits, the real index, a ref,
the store, ``os.environ``, the terminal.

Read first: ``run.run_gate`` and ``privateindex.private_index``.
"""
