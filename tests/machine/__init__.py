"""Random sequences of what an agent, a user and git can do, held to the invariants."""
