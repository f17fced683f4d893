"""Handlers that are not ours, through a real session: plugins from a folder and from an installed package, and handlers that fail."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from safety.hooks import plugins as discovering
from safety.runtime.open import open_session
from safety.session import Call, Session
from safety.types import Decision
from tests.support.repo import RepoBuilder

PLUGIN = """
from safety.net import Decision, HookSpec, HookType, ToolSpec

def judge(data):
    return Decision("deny", "%s says no") if data.tool_use.input.get("command") == "rm" else None

TOOL = ToolSpec("%s", "", hooks={"judge": HookSpec(HookType.TOOL_EXECUTE_PRE, judge, 60, {"role": "guard"})})
"""
RM = {"tool": "shell", "call_id": "c1", "input": {"command": "rm"}}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    discovering.clear_cache()
    yield
    discovering.clear_cache()


def configured(repo: RepoBuilder, **values: Any) -> Path:
    folder = Path(repo.env["XDG_CONFIG_HOME"]) / "git-safety"
    (folder / "plugins").mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(values))
    return folder / "plugins"


def answered(repo: RepoBuilder) -> tuple[str, list[str]]:
    answer = json.loads(repo.hook_raw("tool.execute.pre", **RM).out)
    return answer["decision"], answer.get("notices", [])


# -- plugins ---------------------------------------------------------------------------------------------------------------------


def test_a_plugin_from_the_folder(repo: RepoBuilder) -> None:
    """A module beside the settings is loaded when the settings name it, and its guard counts; its neighbour is not even imported."""
    folder = configured(repo, plugins=["mine"])
    (folder / "mine.py").write_text(PLUGIN % ("mine", "mine"))
    (folder / "other.py").write_text("import os; open(os.environ['HOME'] + '/imported', 'w')")
    done = repo.hook_raw("tool.execute.pre", **RM)
    assert (done.code, json.loads(done.out)) == (2, {"decision": "deny", "reason": "mine says no"})
    assert done.err == "mine says no\n" and not Path(repo.env["HOME"], "imported").exists()


def test_nothing_is_loaded_unasked(repo: RepoBuilder) -> None:
    """Without a name in the settings nothing of the folder runs; and a project cannot name one."""
    folder = configured(repo)
    (folder / "mine.py").write_text(PLUGIN % ("mine", "mine"))
    repo.write(".git-safety.json", json.dumps({"plugins": ["mine"]}))
    assert answered(repo)[0] == "allow"


def test_plugins_that_cannot_be_used_are_told(repo: RepoBuilder) -> None:
    """One that raises, one that exits, one that is none, one that registers what does not fit, one that is not there: a line each,
    nobody else is harmed."""
    folder = configured(repo, plugins=["broken", "leaves", "empty", "misfit", "absent", "mine"])
    (folder / "broken.py").write_text("raise RuntimeError('on import')")
    (folder / "leaves.py").write_text("import sys; sys.exit(3)")
    (folder / "empty.py").write_text("x = 1")
    wrong = '"guard"}), "wrong": HookSpec(HookType.TURN_PRE, lambda what: None)'
    (folder / "misfit.py").write_text((PLUGIN % ("misfit", "misfit")).replace('"guard"})', wrong))
    (folder / "mine.py").write_text(PLUGIN % ("mine", "mine"))
    decision, notices = answered(repo)
    assert decision == "deny" and reason(repo) == "mine says no"  # of the misfit's two hooks none is heard
    for name, word in (
        ("broken", "on import"),
        ("leaves", "SystemExit"),
        ("empty", "no plugin"),
        ("misfit", "what"),
        ("absent", "none"),
    ):
        assert [text for text in notices if text.startswith(f"git-safety: plugin {name}:") and word in text], (name, notices)
    assert not [text for text in notices if "plugin mine" in text]


def test_a_plugin_of_an_installed_package(repo: RepoBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point is loaded when it is named; the folder's plugin of the same name stands in for it; one not named is not."""
    site = tmp_path / "site"
    (site / "installed_one-1.0.dist-info").mkdir(parents=True)
    (site / "installed_one-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: installed-one\nVersion: 1.0\n")
    (site / "installed_one-1.0.dist-info/entry_points.txt").write_text(
        "[git_safety.plugins]\npacked = installed_one:TOOL\nunasked = installed_two:TOOL\n"
    )
    (site / "installed_one.py").write_text(PLUGIN % ("packed", "packed"))
    (site / "installed_two.py").write_text("raise AssertionError('not to be imported')")
    monkeypatch.syspath_prepend(str(site))
    folder = configured(repo, plugins=["packed"])
    assert answered(repo) == ("deny", []) and reason(repo) == "packed says no"
    (folder / "packed.py").write_text(PLUGIN % ("the folder", "packed"))
    assert reason(repo) == "the folder says no"
    sys.modules.pop("installed_one", None)


def reason(repo: RepoBuilder) -> str:
    return str(json.loads(repo.hook_raw("tool.execute.pre", **RM).out)["reason"])


# -- handlers that fail ----------------------------------------------------------------------------------------------------------


def raises(*given: Any) -> None:
    raise ValueError("went wrong")


def leaves(*given: Any) -> None:
    raise SystemExit(3)


def hangs(*given: Any) -> None:
    time.sleep(30)


def garbage(*given: Any) -> Any:
    return {"decision": "allow"}


def stops_halfway(*given: Any) -> Iterator[Any]:
    yield None
    raise ValueError("went wrong")


FAULTS: dict[str, tuple[Callable[..., Any], dict[str, Any], str]] = {
    "raises": (raises, {}, "ValueError: went wrong"),
    "leaves": (leaves, {}, "SystemExit: 3"),
    "hangs": (hangs, {"timeout_s": 0.05}, "took longer than 0.05 s"),
    "garbage": (garbage, {}, "a dict"),
    "halfway": (stops_halfway, {}, "ValueError: went wrong"),
}
EVENTS = ("session.start", "turn.pre", "tool.execute.pre", "tool.confirm", "tool.execute.post", "cwd.changed", "turn.post")
#: What comes of a failure, by event and role: the decision of the tool, or of the turn's end.
TABLE = {
    ("tool.execute.pre", "guard"): "deny", ("tool.execute.pre", "record"): "allow", ("tool.execute.pre", None): "deny",
    ("tool.confirm", "guard"): "deny", ("tool.confirm", "record"): "allow", ("tool.confirm", None): "deny",
    ("turn.post", "guard"): "continue", ("turn.post", "record"): "stop", ("turn.post", None): "stop",
}  # fmt: skip
#: A hang of a recorder is no opinion at an open event, and one of nobody's role denies where the event is closed (caller, note 2).
SLOW = {**TABLE, ("tool.execute.pre", "record"): "deny", ("tool.confirm", "record"): "deny"}


def conversation(repo: RepoBuilder, session: Session, number: int) -> dict[str, Any]:
    """One turn with one call that writes, by the engine protocol; gives the decisions, and the notices of each moment."""
    here = os.fsencode(repo.root)
    call = Call(f"c{number}", "shell", {"command": "./x"}, here)
    notices: dict[str, list[str]] = {}
    session.started(here)
    notices["session.start"] = session.take_notices()
    session.turn_start("x")
    notices["turn.pre"] = session.take_notices()
    decision = session.pre(call)
    notices["tool.execute.pre"] = notices["tool.confirm"] = session.take_notices()
    if decision.action != "deny":
        repo.write("a.txt", f"agent {number}\n")
    session.post(call, "fine", None)
    notices["tool.execute.post"] = session.take_notices()
    session.cwd_changed(here, here + b"/src")
    notices["cwd.changed"] = session.take_notices()
    feedback = session.turn_end()
    notices["turn.post"] = session.take_notices()
    if feedback is not None:
        session.close_turn()
    return {"tool": decision, "turn": "stop" if feedback is None else "continue", "notices": notices}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("role", [None, "guard", "record"])
def test_a_failing_handler(repo: RepoBuilder, event: str, role: Any) -> None:
    """It is told to the user at its moment and at no other, decides what the table says, and everything else goes on: the other
    handlers are heard, the call is recorded, undo takes it back."""
    for number, (fault, (func, options, words)) in enumerate(FAULTS.items()):
        session = open_session(os.fsencode(repo.root), repo.session, repo.env)
        heard: list[str] = []
        session.hooks.register("mine.fails", event, func, 95 if event != "turn.post" else 50, role=role, **options)
        session.hooks.register("mine.after", event, lambda *given, heard=heard: heard.append(event), 0)
        before = repo.read("a.txt")
        seen = conversation(repo, session, number)

        expected = (SLOW if fault == "hangs" else TABLE).get((event, role), "allow")
        tool = expected if event in ("tool.execute.pre", "tool.confirm") else "allow"
        assert seen["tool"].action == tool, (fault, seen)
        assert seen["turn"] == (expected if event == "turn.post" else "stop"), (fault, seen)
        told = {moment: [text for text in texts if "mine.fails" in text] for moment, texts in seen["notices"].items()}
        same = {"tool.execute.pre", "tool.confirm"} if event in ("tool.execute.pre", "tool.confirm") else {event}
        assert all(bool(texts) == (moment in same) for moment, texts in told.items()), (fault, told)
        assert words in told[event][0]
        ended = event in ("tool.confirm", "turn.post") and expected in ("deny", "continue")
        assert heard == ([] if ended else [event]), fault
        if tool == "deny":
            assert words in seen["tool"].reason
            continue
        repo.undo()
        assert repo.read("a.txt") == before


def test_a_failure_of_a_recorder_denies_where_the_user_says_so(repo: RepoBuilder) -> None:
    """``fail_closed_events`` in the settings makes any failure a denial."""
    configured(repo, hook_options={"fail_closed_events": ["PreToolUse"]})
    session = open_session(os.fsencode(repo.root), repo.session, repo.env)
    session.hooks.register("mine.fails", "tool.execute.pre", raises, 95, role="record")
    assert session.pre(Call("c1", "shell", {}, os.fsencode(repo.root))).action == "deny"


def test_a_decision_where_nothing_is_decided(repo: RepoBuilder) -> None:
    """Told as a failure, and it changes nothing."""
    session = open_session(os.fsencode(repo.root), repo.session, repo.env)
    session.hooks.register("mine.denies", "tool.execute.post", lambda data: Decision("deny", "too late"))
    session.turn_start("x")
    session.post(Call("c1", "shell", {}, os.fsencode(repo.root)), "fine")
    (notice,) = session.take_notices()
    assert "mine.denies" in notice and "counts for nothing" in notice
