"""Which instruction files (AGENTS.md and its kin) a model gets to read, when, and as what text.

Lives here: the lookup from the root of the repository to a folder, the checks on each file, what was sent before, the message. May
touch: the file tree, for reading; policy. Never: a process, the trust store, a session; the caller says whether the root is trusted
and what the agent changed. Read first: ``inject.instructions_for``, ``chain.folders``.
"""
