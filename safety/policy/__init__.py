"""What a command would do, judged from its text alone.

Lives here: pure functions over command texts. Never: a process, a file, git; the session answers questions about the world. Read first:
``reading.reads_only``.
"""
