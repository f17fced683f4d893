"""What a person may ask for: one file a verb, ``run(session, args) -> Report``.

Lives here: the verbs, their arguments (``args.py``) and what they give back (``report.py``). They may use the session and
everything below it. They never print, read the environment, ask a question or look at a terminal: a question is a value
(``Ask``, ``Choose``). Read first: ``report.UndoReport`` and ``undo.run``.
"""
