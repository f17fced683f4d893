"""Costs beside git's own and beside the per-step sequences of other tools, in one run."""
