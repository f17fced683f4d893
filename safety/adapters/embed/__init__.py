"""Hosts that are Python themselves: the engine in the agent's own process, and what a framework is handed.

May touch: the session, the commands, ``runtime`` to open a session; no framework is imported here, they only call what they are given.
Only ``gptme`` imports its host, which has imported it as a plugin: inside of functions, and its own import loads no engine.
Never touches: git, the store, policy; the process's environment, logging, signals. No thread outlives a call.
Read first: ``net.Net``, ``wrapping.protected``; ``gptme.running.run``.
"""
