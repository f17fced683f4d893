"""Whose change it is, as a function of the log's records."""

from __future__ import annotations

import pytest

from safety.store.attribution import ALL_PATHS, UNATTRIBUTED, OpenCall, actor_between_calls, operations_of_turn, settle_owners
from safety.store.oplog import Operation, Record

ONE, TWO, DEAD = "s/1/1", "s/2/1", "s/3/1"


def mixed(identity: str, *open_calls: str) -> Record:
    return Record(identity, "checkpoint", "mixed", open_calls=open_calls)


def ended(identity: str, key: str, declared: tuple[bytes, ...] | None = None, *open_calls: str) -> Record:
    session, turn, call = key.split("/")
    return Record(
        identity, "call", "mixed", session=session, turn=int(turn), call=int(call), declared=declared, open_calls=open_calls
    )


@pytest.mark.parametrize(
    ("posts", "open_calls", "owner"),
    [
        ([ended("e", ONE)], [ONE], ONE),
        ([ended("e", ONE), ended("f", TWO)], [ONE, TWO], f"shared:{ONE},{TWO}"),
        ([ended("e", ONE, (b"f",)), ended("f", TWO)], [ONE, TWO], ONE),
        ([ended("e", ONE, (b"other",)), ended("f", TWO)], [ONE, TWO], TWO),
        ([ended("e", ONE, (b"f",)), ended("f", TWO, (b"f",))], [ONE, TWO], f"shared:{ONE},{TWO}"),
        ([ended("e", ONE)], [DEAD], UNATTRIBUTED),
        ([ended("e", ONE)], [ONE, DEAD], ONE),
        ([ended("e", ONE, (b"other",))], [ONE], UNATTRIBUTED),
    ],
)
def test_owner_of_a_path(posts: list[Record], open_calls: list[str], owner: str) -> None:
    """Its only declarer, else the only open call that declared nothing, else shared; a call without an end owns nothing."""
    owners = settle_owners([(mixed("m", *open_calls), [b"f"]), *((record, []) for record in posts)])

    assert owners["m"] == {ALL_PATHS: owner}


def test_call_that_may_still_end_counts() -> None:
    """Before the last end, an open call may be the one: what it shares is not given to the other."""
    group = [(mixed("m", ONE, DEAD), [b"f"]), (ended("e", ONE), [])]

    assert settle_owners(group, final=False)["m"] == {ALL_PATHS: f"shared:{ONE},{DEAD}"}
    assert settle_owners(group)["m"] == {ALL_PATHS: ONE}


def test_exceptions_are_named_by_path() -> None:
    """The commonest owner stands once, whatever the number of paths."""
    group = [(mixed("m", ONE, TWO), [b"a", b"b", b"c"]), (ended("e", ONE, (b"c",)), []), (ended("f", TWO), [])]

    assert settle_owners(group)["m"] == {ALL_PATHS: TWO, b"c": ONE}


@pytest.mark.parametrize(
    ("open_calls", "turn_open", "actor"),
    [((), False, "user"), ((), True, UNATTRIBUTED), ((False,), True, "mixed"), ((True,), True, UNATTRIBUTED)],
)
def test_actor_between_calls(open_calls: tuple[bool, ...], turn_open: bool, actor: str) -> None:
    """Outside turns the user, inside a turn nobody, while a call is open both; a run that hooks took over does not count."""
    calls = [OpenCall("s", 1, 1, "c", None, deferred) for deferred in open_calls]

    assert actor_between_calls(calls, turn_open) == actor


def test_a_turn_has_what_gate_and_commit_did_in_it() -> None:
    """The whole turn takes them along, one call of it does not; the user's and nobody's changes are no part of either."""
    log = [
        Operation(b"", b"", None, Record(actor, "call" if call else "checkpoint", actor, turn=1, call=call, last_turn=1))
        for actor, call in (("commit", 0), ("gate", 0), ("user", 0), (UNATTRIBUTED, 0), ("agent", 1))
    ]

    def taken(call: int | None) -> list[str]:
        return [item.operation.id for item in operations_of_turn(log, 1, call, unattributed=False, provisional={})]

    assert (taken(None), taken(1)) == (["commit", "gate", "agent"], ["agent"])
