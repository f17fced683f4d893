"""The engines: what was, what is, and how to get from one to the other.

Lives here: the store of snapshots (raw git trees in a bare repository of ours), the chain of operations, capturing, planning an
undo and applying it. May touch: the store's own folder, through ``plumbing``; the workspace's files only in ``capture``
(reading) and ``apply`` (writing). Never touches: environment, home, clock, terminal; and it knows no agent, no hook and no
command.

A snapshot's tree, from the ground up: ``names`` makes any file name fit for a tree; ``trees`` is git's tree format; ``fanout``
keeps huge directories cheap to change; ``chunks`` does the same for big text files; ``marks`` holds what a git tree cannot say
(permission bits, empty directories, what is not covered); ``levels`` joins these into one view of a directory.

Read first: ``Snapshot.state`` in ``snapshot`` and ``Editor.put`` in ``editor``.
"""
