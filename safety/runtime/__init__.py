"""The one place that joins things: environment, home, clock, ids and settings become a session.

Lives here: ``open_session`` and the settings. May touch: the process environment, the clock, random ids, every room below. Never:
prints, foreign protocols, git. Read first: ``open.open_session`` and ``config.load_settings``.
"""
