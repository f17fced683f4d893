"""The mouth that people use: ``git-safety`` and ``git safety``.

Lives here: arguments, help, drawing, colours, the pager, questions, and the child process of ``run``. ``rich`` and ``print`` live
here only. It decides nothing about files or git: every verb is ``commands.<verb>.run(session, args) -> Report``, and what a
report says is drawn by ``render.py``.
Read first: ``main.main`` and ``render.render``.
"""
