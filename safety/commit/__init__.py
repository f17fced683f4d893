"""A commit of what the agent did, and of nothing else: HEAD plus the agent's changes, hunk by hunk ([gate] B4, B5).

May touch: the user's objects, one branch (or HEAD), the index, and a folder of its own in the git directory while it works, all
through git; and whatever the user's hooks do. Never touches: a file of the work tree, the configuration, another branch, a remote.

Read first: ``plan.plan_commit`` (what a commit would hold, and why not) and ``make.make_commit`` (how it comes to be, or does not).
"""
