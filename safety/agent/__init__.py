"""The reference agent: a small loop that calls a model and its tools, and triggers every moment of ``HookType`` for real. To be copied.

May touch: the session it is handed, the workspace's files through its tools, one folder for its journal. Yields events.
Never touches: the terminal (it prints nothing and reads nothing), git, the environment.
Read first: ``loop.Loop.run``, ``tools.TOOLS``.
"""
