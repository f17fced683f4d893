"""Git, and only git: object database, refs, index, diff, merge, ignore rules, attributes, and the one way to start the program.

May touch: git repositories (ours by explicit path, the user's by ``git -C``), temp files of its own, and the process environment
it was handed. This is the only room with ``subprocess`` (``run.py``), and ``odb.py`` is the only importer of pygit2.
Never touches: work tree files (capture and apply do), policy, snapshots' meaning, ``os.environ``, the terminal.

Read first: ``run.Git.user`` (what makes a git call harmless) and ``odb.ObjectStore.write`` (why writing twice costs nothing).
"""
