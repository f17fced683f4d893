"""Hears which paths of a folder change.

Lives here: the observer, the only user of ``watchdog``. It delivers batches of paths and says whether a batch tells everything.
May touch: directory listings below the folder it watches.
Never touches: file contents, git, the store, policy; it decides nothing.
Read first: ``observer.Observer`` and ``observer.Batch``.
"""
