"""Foreign protocols on one side, the session's methods on the other. One file a host.

May touch: the text of the protocol it speaks, the session, the commands, ``runtime`` to open a session.
Never touches: git, the store, policy; files, but for the streams it was handed. It decides nothing. Only ``question_server`` has a
socket, on 127.0.0.1.
Read first: ``wire.generic.respond``, ``calls.declared_paths``; for questions ``questions.Questions``.
"""
