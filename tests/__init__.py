"""The proof: each folder mirrors a room of ``safety/``; ``undo``, ``crash`` and ``machine`` hold the whole product to its
contracts.
"""
