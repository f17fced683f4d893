"""What a command would do, what a line gives away and what hides in a text, judged from the text alone.

Lives here: pure functions over command texts, added lines and foreign texts. Never: a process, a file, git; the session answers
questions about the world. tree-sitter is loaded by ``shell`` alone, at its first use. Read first: ``shell.parse``,
``effects.effects_of``, ``rules.judge``, ``secrets.scan``.
"""
