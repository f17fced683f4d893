"""The Python API: tools that are wrapped, turns that are with-blocks, what they changed and its undo as plain data."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from safety.net import Call, Decision, Denied, HookType, Net, SafetyError, current_session
from tests.support.repo import NINE_LINES, RepoBuilder
from tests.support.typed import assert_only_the_wrong_is_found

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def net(repo: RepoBuilder) -> Iterator[Net]:
    """A net that has nothing to complain about until its end."""
    with Net(repo.root, environ=repo.env) as net:
        yield net
    assert net.notices == ()


class Tools:
    """What an agent works with: tools that act in the workspace, each in another way of telling what it changes."""

    def __init__(self, repo: RepoBuilder) -> None:
        self.repo = repo
        self.ran: list[str] = []

    def write_file(self, path: str, content: str = "agent\n") -> str:
        """Write a file.

        Args:
            path: The file.
            content: What it is to hold.
        """
        self.ran.append(f"write_file {path}")
        self.repo.write(path, content)
        return f"wrote {path}"

    def shell(self, command: str) -> str:
        """Run a command."""
        self.ran.append(f"shell {command}")
        return self.repo.sh(command, check=False)

    async def slow(self, name: str, seconds: float = 0.05) -> str:
        """Write a file after a while, without saying which."""
        await asyncio.sleep(seconds)
        self.repo.write(name, "slow\n")
        return "done"


@pytest.fixture
def tools(repo: RepoBuilder) -> Tools:
    return Tools(repo)


def seen_by(net: Net) -> list[Call]:
    """The calls as handlers are shown them, from now on."""
    calls: list[Call] = []
    net.hooks.register("test.see", HookType.TOOL_EXECUTE_PRE, lambda data: calls.append(data.tool_use))
    return calls


def refuses(net: Net, text: str = "not that") -> None:
    net.hooks.register("test.refuse", HookType.TOOL_EXECUTE_PRE, lambda data: Decision("deny", text))


def asks(net: Net, text: str = "sure?") -> None:
    net.hooks.register("test.ask", HookType.TOOL_EXECUTE_PRE, lambda data: Decision("ask", text))


def edits(net: Net, **changes: Any) -> None:
    """Each call runs with these arguments; one that is given as None is taken away."""

    def handler(data: Any) -> Decision:
        given = {**data.tool_use.input, **changes}
        return Decision("edit", input={name: value for name, value in given.items() if value is not None})

    net.hooks.register("test.edit", HookType.TOOL_EXECUTE_PRE, handler)


# -- turns and their undo --------------------------------------------------------------------------------------------------------


def test_a_turn_is_told_and_taken_back_as_one(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """What declared and undeclared tools did is told path by path, undone as planned, redone, and is in the log of the command line."""
    write, shell = net.protect([tools.write_file, tools.shell])
    before = repo.picture()
    with net.turn("tidy up") as turn:
        assert write("src/new.py", content="new\n") == "wrote src/new.py"
        shell("rm b.txt; echo more >> a.txt; chmod +x src/app.py")
    after = repo.picture()

    assert [(one.path, one.how, one.before, one.after) for one in turn.changes] == [
        ("a.txt", "modified", NINE_LINES.encode(), f"{NINE_LINES}more\n".encode()),
        ("b.txt", "deleted", b"b\n", None),
        ("src/app.py", "mode", b"print('app')\n", b"print('app')\n"),
        ("src/new.py", "added", None, b"new\n"),
    ]
    plan = turn.undo(dry_run=True)
    assert plan.dry_run and plan.paths == ("a.txt", "b.txt", "src/app.py", "src/new.py")
    repo.assert_is(after)
    done = turn.undo()
    assert (done.handle, done.restored, done.removed) == ("t1", ("a.txt", "b.txt", "src/app.py"), ("src/new.py",))
    repo.assert_is(before)
    assert net.redo().paths == done.paths
    repo.assert_is(after)
    assert turn.handle == "t1" and "tidy up" in repo.must("log").out
    assert [(row.handle, row.agent, row.calls) for row in net.log() if row.actor == "agent"] == [("t1", "Python", 2)]
    assert (turn.undo().paths, turn.undo().unchanged) == (done.paths, done.paths)


def test_a_part_of_a_turn_is_taken_back(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """``paths`` are meant from the net's folder, a folder stands for what is in it, an absolute path is one too, and a text one path."""
    shell = net.protect(tools.shell)
    with net.turn() as turn:
        shell("echo x > src/app.py; echo x > src/lib/util.py; echo x > a.txt; echo x > b.txt")
    assert turn.undo(paths=["src"]).restored == ("src/app.py", "src/lib/util.py")
    assert turn.undo(paths=[repo.path("b.txt")]).restored == ("b.txt",)
    assert repo.read("a.txt") == "x\n"
    shell("echo y > b.txt; echo y > src/app.py")
    assert net.undo(paths="b.txt").restored == ("b.txt",) and net.undo(paths=Path("src")).restored == ("src/app.py",)
    assert turn.undo(paths=[]).nothing == "no paths were named"
    with pytest.raises(SafetyError, match="no file of that name"):
        turn.undo(paths=["a\0b"])
    assert repo.read("a.txt") == "x\n"


def test_a_path_given_out_is_taken_in_as_the_same(repo: RepoBuilder, tools: Tools) -> None:
    """In a net over a folder of a repository, or over a link to one, files of the same name above and below are told apart."""
    (repo.root.parent / "link").symlink_to(repo.path("src"))
    for folder in (repo.path("src"), repo.root.parent / "link"):
        with Net(folder, environ=repo.env) as net:
            with net.turn() as turn:
                net.protect(tools.shell)("for f in a.txt src/a.txt src/~/a.txt; do mkdir -p $(dirname $f); echo x > $f; done")
            told = [one.path for one in turn.changes]
            assert told == ["../a.txt", "a.txt", "~/a.txt"] and turn.undo(dry_run=True).paths == tuple(told)
            assert [turn.undo(paths=path).paths for path in told] == [(path,) for path in told]
        assert repo.read("a.txt") == NINE_LINES and not repo.exists("src/a.txt")


def test_what_the_user_did_meanwhile_stays(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """A line of the user's in a file of the agent's is merged, an edit of the same line is kept, and each is named."""
    shell = net.protect(tools.shell)
    with net.turn() as turn:
        shell("sed -i 's/line 2/AGENT/' a.txt; echo agent > b.txt")
    with repo.user():
        repo.replace("a.txt", "line 8", "mine")
        repo.write("b.txt", "mine too\n")
    done = turn.undo()
    assert (done.merged, done.kept) == (("a.txt",), ("b.txt",))
    assert repo.read("a.txt") == NINE_LINES.replace("line 8", "mine") and repo.read("b.txt") == "mine too\n"


def test_changes_say_what_no_content_can(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """A link, an empty folder and a file that is too large are told without a content that nobody has."""
    shell = net.protect(tools.shell)
    with net.turn() as turn:
        shell("ln -s a.txt link; mkdir empty; truncate -s 40M big; rm b.txt; ln -s a.txt b.txt")
        told = {one.path: one for one in turn.changes}
    assert (told["link"].after, told["b.txt"].how, told["b.txt"].before) == (b"a.txt", "type", b"b\n")
    assert (told["empty"].note, told["empty"].after) == ("folder", None)
    assert told["big"].after is None and told["big"].note.startswith("not covered")


def test_a_turn_that_changed_nothing(net: Net, tools: Tools) -> None:
    """It has no changes, and its undo says why there is nothing to do."""
    with net.turn("look") as turn:
        assert turn.changes == ()
        assert turn.undo().nothing
    assert turn.changes == () and "changed nothing" in turn.undo().nothing
    assert "no turn of this conversation" in net.undo().nothing


def test_turns_inside_join(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """A turn in a turn is that turn, in another thread as well; the last to leave ends it."""
    write = net.protect(tools.write_file)
    inside, leave = threading.Event(), threading.Event()

    def helper() -> Any:
        with net.turn("helper") as turn:
            inside.set()
            leave.wait(20)
            write("c.txt")
            return turn

    with ThreadPoolExecutor(1) as pool:
        with net.turn("outer") as outer:
            future = pool.submit(helper)
            inside.wait(20)
            with net.turn("inner") as inner:
                write("a.txt")
            write("b.txt")
        leave.set()
        assert inner is outer and future.result() is outer
    assert [one.path for one in outer.changes] == ["a.txt", "b.txt", "c.txt"]
    assert [row.text for row in net.log() if row.actor == "agent"] == ["outer"]
    with net.turn("next") as after:
        pass
    assert after is not outer and after.handle == "t2"


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it waits for ever"


@pytest.mark.parametrize(
    ("moment", "priority", "how"),
    [
        *((moment, 0, how) for moment in (HookType.TURN_PRE, HookType.TURN_POST) for how in ("here", "in a loop", "in a thread")),
        *((HookType.TURN_PRE, 99, how) for how in ("here", "in a loop")),  # before the snapshots open the turn
    ],
)
def test_a_handler_may_open_a_turn(repo: RepoBuilder, net: Net, tools: Tools, moment: Any, priority: int, how: str) -> None:
    """At a turn's end and beginning it is that turn, wherever it is opened; nobody waits for anybody, nobody is asked twice."""
    inside: list[Any] = []

    def opens() -> None:
        with net.turn("inner") as turn:
            inside.append(turn)

    async def opens_later() -> None:
        async with net.aturn("inner") as turn:
            inside.append(turn)

    def handler() -> None:
        if how == "in a loop":
            asyncio.run(opens_later())
        elif how == "in a thread":
            in_a_thread(opens)
        else:
            opens()

    net.hooks.register("test.opens", moment, handler, priority)

    def work() -> None:
        with net.turn("outer") as turn:
            net.protect(tools.write_file)("a.txt")
        assert inside == [turn] and turn.handle == "t1" and turn.undo().restored == ("a.txt",)
        with net.turn("next") as later:
            pass
        assert later.handle == "t2"
        inside.append("done")

    in_a_thread(work)
    assert inside[-1] == "done"


def test_whoever_joins_while_a_turn_ends_is_in_it(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """The last to leave ends it: what came after the first was judged is judged as well, and is of the same turn."""
    joined, judged = threading.Event(), threading.Event()
    seen: list[list[str]] = []

    def judge() -> None:
        seen.append(sorted(one.path for one in turn.changes))
        if len(seen) == 1:
            pool.submit(joins)
            assert joined.wait(20)

    def joins() -> None:
        with net.turn("late") as late:
            assert late is turn
            joined.set()
            judged.wait(20)
            net.protect(tools.write_file)("b.txt")

    net.hooks.register("test.judge", HookType.TURN_POST, judge)
    with ThreadPoolExecutor(1) as pool:
        with net.turn("early") as turn:
            net.protect(tools.write_file)("a.txt")
        assert "running" in repo.must("log").out
        judged.set()
    assert seen == [["a.txt"], ["a.txt", "b.txt"]]
    assert "running" not in repo.must("log").out and turn.undo().paths == ("a.txt", "b.txt")


def test_an_exception_ends_the_turn_and_passes(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """The turn is over, can be undone, and nobody judges what was left half-done."""
    judged: list[str] = []
    net.hooks.register("test.judge", HookType.TURN_POST, lambda: judged.append("judged"))
    with pytest.raises(ZeroDivisionError), net.turn() as turn:
        net.protect(tools.write_file)("a.txt")
        raise ZeroDivisionError
    assert judged == [] and turn.feedback is None
    assert "running" not in repo.must("log").out
    assert turn.undo().restored == ("a.txt",)


def test_an_agent_is_sent_back_until_nothing_is_said(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """``end`` gives the text for the agent and the turn goes on; None: it is over, and leaving it asks nobody again."""
    asked: list[bool] = []

    def judge() -> Decision | None:
        asked.append(repo.exists("fix.txt"))
        return None if asked[-1] else Decision("deny", "fix.txt is missing")

    net.hooks.register("test.judge", HookType.TURN_POST, judge)
    write = net.protect(tools.write_file)
    with net.turn() as turn:
        write("a.txt")
        said = []
        while feedback := turn.end():
            said.append(feedback)
            write("fix.txt")
    assert (said, asked, turn.feedback) == (["fix.txt is missing"], [False, True], None)
    assert turn.undo().paths == ("a.txt", "fix.txt")


def test_leaving_a_turn_asks_once_and_keeps_what_was_said(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """Whoever does not call ``end`` finds the text in ``feedback``; the turn is over all the same."""
    net.hooks.register("test.judge", HookType.TURN_POST, lambda: Decision("deny", "not good"))
    with net.turn() as turn:
        net.protect(tools.write_file)("a.txt")
    assert turn.feedback == "not good"
    assert "running" not in repo.must("log").out


def test_a_call_outside_of_a_turn_opens_one(repo: RepoBuilder, tools: Tools) -> None:
    """Nothing is lost: the calls are one turn in the log, which the next turn or the net's end closes."""
    with Net(repo.root, environ=repo.env, agent="my agent") as net:
        write = net.protect(tools.write_file)
        write("a.txt")
        write("b.txt")
        assert net.undo(dry_run=True).paths == ("a.txt", "b.txt")
        with net.turn("next") as turn:
            write("c.txt")
        write("d.txt")
    rows = [(row.handle, row.agent, row.calls, row.state) for row in net.log() if row.actor == "agent"]
    assert rows == [("t3", "my agent", 1, ""), ("t2", "my agent", 1, ""), ("t1", "my agent", 2, "")]
    assert turn.undo().removed == ("c.txt",)
    assert [net.undo().paths, net.undo().paths] == [("d.txt",), ("a.txt", "b.txt")]


def test_undo_takes_only_this_conversation(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """Without a handle another agent's newer turn is left alone; with its handle, or its id, it is taken back."""
    with net.turn():
        net.protect(tools.write_file)("a.txt")
    with Net(repo.root, environ=repo.env, session_id="other") as other, other.turn():
        other.protect(tools.write_file)("b.txt")
    assert net.undo().paths == ("a.txt",)
    with Net(repo.root, environ=repo.env, session_id="other") as later:
        assert later.undo().handle == "t2"
    assert repo.read("b.txt") == "b\n"
    with pytest.raises(SafetyError, match="there is no turn t9"):
        net.undo("t9")


def test_an_undo_again_is_none(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """What is undone already is undone no second time, so that a redo takes back the undo that did something."""
    with net.turn() as turn:
        net.protect(tools.write_file)("a.txt")
    assert turn.undo().restored == ("a.txt",)
    assert turn.undo().unchanged == ("a.txt",)
    assert net.redo().restored == ("a.txt",) and repo.read("a.txt") == "agent\n"


# -- tools -----------------------------------------------------------------------------------------------------------------------


class Callable_:
    """An object that can be called."""

    def __call__(self, path: Path, times: int = 2) -> list[str]:
        """Callable's own words."""
        return [str(path)] * times


class AsyncCallable:
    async def __call__(self, path: str) -> str:
        """Async words."""
        return path


def plain(path: str, *rest: int, flag: bool = False, **more: str) -> str:
    """Plain words."""
    return f"{path} {rest} {flag} {more}"


async def awaited(path: str) -> str:
    """Awaited words."""
    return path


SHAPES: dict[str, Callable[..., Any]] = {
    "function": plain,
    "async function": awaited,
    "method": Callable_().__call__,
    "partial": functools.partial(plain, flag=True),
    "async partial": functools.partial(awaited),
    "object": Callable_(),
    "async object": AsyncCallable(),
    "function of a module": os.path.basename,
    "builtin": os.fspath,
    "lambda": lambda path: path,
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_tool_looks_as_it_did(name: str, net: Net) -> None:
    """Signature, docstring, type hints and being async are those of the tool; and a protected tool is not wrapped again."""
    tool = SHAPES[name]
    wrapped = net.protect(tool)
    function = tool.func if isinstance(tool, functools.partial) else tool if hasattr(tool, "__name__") else type(tool).__call__
    assert inspect.signature(wrapped) == inspect.signature(tool)
    assert wrapped.__doc__ == function.__doc__
    hints = typing.get_type_hints(function)
    assert typing.get_type_hints(wrapped) == {
        k: v for k, v in hints.items() if k in {*inspect.signature(tool).parameters, "return"}
    }
    assert inspect.iscoroutinefunction(wrapped) == ("async" in name)
    assert wrapped.__name__ == (function.__name__ if hasattr(tool, "__name__") or "partial" in name else type(tool).__name__)
    assert net.protect(wrapped) is wrapped and net.protect([wrapped]) == [wrapped]
    given = wrapped("some/a.txt")
    assert (asyncio.run(given) if "async" in name else given) == (
        asyncio.run(tool("some/a.txt")) if "async" in name else tool("some/a.txt")
    )


def test_arguments_are_known_by_name(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """Positional, by keyword, as a default or as a path object: handlers see the same input, and the declared path with it."""
    calls = seen_by(net)

    def write_file(path: str | Path = "a.txt", content: str = "x\n", context: object = None) -> str:
        repo.write(os.fspath(path), content)
        return "ok"

    wrapped = net.protect(write_file)
    with net.turn():
        wrapped()
        wrapped("a.txt", "x\n")
        wrapped(content="x\n", path=Path("a.txt"), context=object())
        wrapped(str(repo.path("a.txt")))
    assert [call.input for call in calls[:2]] == [{"path": "a.txt", "content": "x\n", "context": None}] * 2
    assert calls[2].input == {"path": "a.txt", "content": "x\n"}  # an object is nobody's but the tool's
    assert {call.paths for call in calls} == {(os.fsencode(repo.path("a.txt")),)} and {call.tool for call in calls} == {
        "write_file"
    }


def test_more_arguments_and_methods(repo: RepoBuilder, net: Net) -> None:
    """Extra keywords stand beside the others, positional ones under their name, and the object of a method nowhere."""
    calls = seen_by(net)

    class Kit:
        @net.protect
        def note(self, text: str, *rest: int, **more: str) -> str:
            return f"{text}{rest}{more}"

        @net.protect(reads=True)
        @staticmethod
        def peek(path: str) -> str:
            return path

        @net.protect
        @classmethod
        def make(cls, text: str) -> str:
            return cls.__name__ + text

    assert Kit().note("a", 1, 2, key="v") == "a(1, 2){'key': 'v'}"
    assert Kit().peek("p") == "p" and Kit.make("!") == "Kit!"
    assert [(call.input, call.paths) for call in calls] == [
        ({"text": "a", "rest": [1, 2], "key": "v"}, None),
        ({"path": "p"}, ()),
        ({"text": "!"}, None),
    ]


def test_paths_of_unusual_tools(repo: RepoBuilder, net: Net) -> None:
    """Parameters that hold the paths, one or several, or a function that knows; None from it: anything may change."""
    calls = seen_by(net)

    def render(target: str | None, copies: list[str], deep: bool = False) -> None:
        return None

    net.protect(render, paths="target")("out.txt", [])
    net.protect(render, paths=["target", "copies"])("out.txt", ["a", "b"])
    net.protect(render, paths=["target", "copies"])(None, [])
    net.protect(render, paths=lambda target, copies, deep: None if deep else [Path(target).with_suffix(".html")])("out.txt", [])
    net.protect(render, paths=lambda target, copies, deep: None if deep else [target])("out.txt", [], deep=True)
    net.protect(render, paths=lambda target, copies, deep: target)("out.txt", [])
    net.protect(render, paths=lambda target, copies, deep: Path(target))("out.txt", [])
    root = os.fsencode(repo.root)
    assert [call.paths for call in calls] == [
        (root + b"/out.txt",),
        (root + b"/out.txt", root + b"/a", root + b"/b"),
        None,
        (root + b"/out.html",),
        None,
        (root + b"/out.txt",),
        (root + b"/out.txt",),
    ]


def test_a_function_that_cannot_tell_the_paths(repo: RepoBuilder, tools: Tools) -> None:
    """The tool runs as one that may change anything, and the user is told; strict, it does not run and the model reads why."""
    for strict in (False, True):
        with Net(repo.root, environ=repo.env, strict=strict) as net:
            calls = seen_by(net)
            shell = net.protect(tools.shell, paths=lambda command: [command.missing])
            with net.turn() as turn:
                said = shell("echo x > new.txt; echo ran")
        if strict:
            assert said.startswith("not run: the paths of shell") and not calls and len(tools.ran) == 1
        else:
            assert said == "ran" and calls[0].paths is None and turn.undo().removed == ("new.txt",)
            assert "the paths of shell could not be told" in "".join(turn.notices)


def test_a_path_from_the_process_folder_counts_too(
    repo: RepoBuilder, net: Net, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that works in a folder of the workspace writes there, whatever folder the net was opened over."""
    monkeypatch.chdir(repo.root / "src")

    def write_file(path: str) -> str:
        Path(path).write_text("agent\n")
        return "ok"

    with net.turn() as turn:
        net.protect(write_file)("app.py")
    assert turn.undo().restored == ("src/app.py",)


def test_what_a_tool_changes_beside_its_paths_is_told(repo: RepoBuilder, net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the turn has no other change, and where the tool has gone into another folder: undo names it and leaves it alone."""
    monkeypatch.chdir(repo.root)

    @net.protect
    def write_file(path: str, folder: str) -> str:
        os.chdir(repo.path(folder))
        Path("beside.txt" if folder == "." else path).write_text("x\n")
        os.chdir(repo.root)
        return "ok"

    for folder, beside in ((".", "beside.txt"), ("src", "src/named.txt")):
        with net.turn() as turn:
            write_file("named.txt", folder)
        done = turn.undo()
        assert (done.paths, done.nothing) == ((), f"no call of {turn.handle} explains what changed meanwhile")
        assert beside in "".join(done.notices) and repo.exists(beside)
        assert beside in repo.must("undo", turn.handle, code=4).text


def test_a_refusal_is_text_where_the_tool_gives_text(net: Net, tools: Tools) -> None:
    """The tool does not run; the model reads why as its result. Where no text can be the result, and where it is wanted: Denied."""
    refuses(net)
    ran: list[str] = []

    def text() -> str:
        ran.append("text")
        return ""

    def maybe() -> str | None:
        return ran.append("maybe")

    def annotated() -> typing.Annotated[str, "what it says"]:
        ran.append("annotated")
        return ""

    def number() -> int:
        ran.append("number")
        return 1

    def untold():  # type: ignore[no-untyped-def]
        ran.append("untold")

    assert [net.protect(tool)() for tool in (text, maybe, annotated, untold)] == ["not that"] * 4
    assert net.protect(number, denied="text")() == "not that"  # type: ignore[comparison-overlap]
    for wrapped in (net.protect(number), net.protect(text, denied="raise")):
        with pytest.raises(Denied, match="not that"):
            wrapped()
    assert asyncio.run(net.protect(awaited)("a")) == "not that"
    assert ran == []


def test_an_edit_reaches_the_tool(net: Net) -> None:
    """In the place and the kind in which the argument came; other arguments, and those that nobody sees, are as they were."""
    edits(net, path="other.txt")
    hidden = object()

    def tool(path: str | Path, hidden: object, /, count: int = 1, *, more: str = "") -> list[object]:
        return [path, hidden, count, more]

    assert net.protect(tool)("a.txt", hidden, 3, more="m") == ["other.txt", hidden, 3, "m"]
    assert net.protect(tool)(Path("a.txt"), hidden)[0] == Path("other.txt")
    assert net.protect(plain)("a.txt", 5, key="v") == "other.txt (5,) False {'key': 'v'}"
    assert asyncio.run(net.protect(awaited)("a.txt")) == "other.txt"


@pytest.mark.parametrize(
    ("change", "said"),
    [({"nonsense": 1}, "changed nonsense"), ({"path": None}, "took away path"), ({"hidden": 1}, "changed hidden")],
)
def test_an_edit_that_does_not_fit_refuses(net: Net, change: dict[str, Any], said: str) -> None:
    """A tool never runs with something else than what was decided."""
    edits(net, **change)
    ran: list[str] = []

    def tool(path: str, hidden: object = None) -> str:
        ran.append(path)
        return "ran"

    assert said in net.protect(tool)("a.txt", object())
    assert ran == []


def test_what_the_tool_raises_passes(repo: RepoBuilder, net: Net) -> None:
    """Also an interrupt; what it did before is the turn's, and wrong arguments are the tool's own error."""

    def tool(path: str, fault: BaseException) -> str:
        repo.write(path, "half\n")
        raise fault

    wrapped = net.protect(tool)
    with net.turn() as turn:
        for name, fault in (("x", ValueError("no")), ("y", KeyboardInterrupt())):
            with pytest.raises(type(fault)):
                wrapped(name, fault)
        with pytest.raises(TypeError, match="missing a required argument"):
            wrapped("z")  # type: ignore[call-arg]
    assert turn.undo().removed == ("x", "y")


def test_a_tool_that_refuses_by_itself(net: Net) -> None:
    """What it raises is its caller's, also where it is the refusal of a tool in it or of this package: the tool did run."""
    inner = net.protect(lambda: "ran", denied="raise")

    def outer() -> str:
        return inner()

    async def later() -> str:
        raise Denied("its own")

    with pytest.raises(Denied, match="its own"):
        asyncio.run(net.protect(later)())
    with net.turn():
        net.hooks.register(
            "test.inner",
            HookType.TOOL_EXECUTE_PRE,
            lambda data: Decision("deny", "no") if data.tool_use.tool != "outer" else None,
        )
        with pytest.raises(Denied, match="no"):
            net.protect(outer)()


def test_what_cannot_be_protected_is_refused(net: Net) -> None:
    """Work that begins after the call, a class, and what cannot be called: an error that says what to do instead."""

    def generates() -> Iterator[str]:
        yield ""

    async def generates_later() -> AsyncIterator[str]:
        yield ""

    for tool in (generates, generates_later, functools.partial(generates)):
        with pytest.raises(TypeError, match="is a generator.*async def"):
            net.protect(tool)
    with pytest.raises(TypeError, match="is a class"):
        net.protect(Callable_)
    with pytest.raises(TypeError, match="protect the function first"):
        net.protect([plain, object()])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="gives a coroutine"):
        net.protect(lambda: awaited("x"))()
    for result in (generates(), map(str, []), generates_later()):
        with pytest.raises(TypeError, match=f"gives a {type(result).__name__}"):
            net.protect(lambda result=result: result)()


def test_a_tool_finds_its_session(net: Net) -> None:
    """Inside of a protected tool, and of a protected tool in it, the session is the current one."""
    inner = net.protect(lambda: current_session())
    found = net.protect(lambda: (current_session(), inner()))()
    assert found == (net.session, net.session) and current_session() is None


def test_a_call_reaches_the_tool_as_it_was_made(net: Net) -> None:
    """A decorator that shows another signature than its own gets the arguments that it was given, and may add some."""

    def by_keyword(tool: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(tool)(lambda **given: tool(**given))

    def with_database(tool: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(tool)(lambda *given: tool("db", *given))

    def pair(first: str, second: str) -> str:
        return first + second

    assert net.protect(by_keyword(pair))(first="a", second="b") == "ab"
    assert net.protect(with_database(pair))("b") == "dbb"
    with pytest.raises(TypeError, match="missing a required argument"):
        net.protect(pair)("a")


def test_arguments_that_are_no_paths(repo: RepoBuilder, net: Net) -> None:
    """Bytes and sets name paths as texts do; what names none stops no call, and anything may change then."""
    calls = seen_by(net)

    def render(target: object) -> None:
        return None

    for target in (b"out.txt", {"out.txt"}, 1, ["out.txt", 1]):
        net.protect(render, paths="target")(target)
    net.protect(render, paths=lambda target: [target])(b"out.txt")
    out = (os.fsencode(repo.path("out.txt")),)
    assert [call.paths for call in calls] == [out, out, None, None, out]


def test_a_path_has_the_name_of_its_parameter(repo: RepoBuilder, net: Net) -> None:
    """An extra keyword of the same name as a parameter that is positional only takes its place neither for guards nor for undo."""
    calls = seen_by(net)

    def write_file(path: str, /, **more: str) -> str:
        return path

    assert net.protect(write_file)("a.txt", path="b.txt") == "a.txt"
    assert calls[0].input == {"path": "a.txt"} and calls[0].paths == (os.fsencode(repo.path("a.txt")),)


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("no words")


def holds_itself() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


@pytest.mark.parametrize("value", [Unspeakable(), holds_itself(), 10**5000, {1: 1, "a": 2}, b"\xff", "\ud800"], ids=type)
def test_values_that_are_no_text(repo: RepoBuilder, net: Net, value: object) -> None:
    """An argument or a result without a text costs neither the call nor its protection, wrapped or heard of by hooks."""

    def tool(given: object) -> object:
        repo.write("a.txt", "agent\n")
        return given

    with net.turn() as turn:
        assert net.protect(tool)(value) is value
        net.pre("tool", {"given": value})
        repo.write("b.txt", "agent\n")
        net.post("tool", {"given": value}, value)
        net.pre("tool", {"given": value})
        net.post("tool", {"given": value}, error=value)
        assert not net.session.sessions.load(net.session.id).pending
    assert turn.undo().restored == ("a.txt", "b.txt")


# -- at once ---------------------------------------------------------------------------------------------------------------------


def test_threads_at_once(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """Eight threads of a framework call declared and undeclared tools in one turn; all they did is the turn's and is taken back."""
    before = repo.picture()
    write, shell = net.protect([tools.write_file, tools.shell])
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait(20)
        write(f"w{number}.txt")
        shell(f"echo x > s{number}.txt; echo {number} >> a.txt")

    with ThreadPoolExecutor(8) as pool, net.turn() as turn:
        list(pool.map(work, range(8)))
    assert [one.path for one in turn.changes] == ["a.txt", *(f"{kind}{n}.txt" for kind in "sw" for n in range(8))]
    assert len(turn.undo().paths) == 17
    repo.assert_is(before)


def test_tasks_at_once(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """Two undeclared calls of one reply overlap and neither waits for the other; undo takes back both; the loop goes on meanwhile."""
    slow = net.protect(tools.slow)
    before = repo.picture()
    running: list[int] = []
    together: list[int] = []

    async def counted(name: str) -> str:
        running.append(1)
        await asyncio.sleep(0.05)
        together.append(len(running))
        repo.write(name, "x\n")
        return await slow(f"{name}.slow")

    async def agent() -> Any:
        async with net.aturn("two at once") as turn:
            both = net.protect(counted)
            assert await asyncio.gather(both("one"), both("two")) == ["done", "done"]
            async with net.aturn() as inner:
                assert inner is turn
        return turn

    turn = asyncio.run(agent())
    assert together == [2, 2]
    assert turn.undo().removed == ("one", "one.slow", "two", "two.slow")
    repo.assert_is(before)


def test_a_cancelled_task_is_recorded(repo: RepoBuilder, net: Net) -> None:
    """What a tool did before it was cancelled is the turn's."""

    async def tool() -> str:
        repo.write("half.txt", "half\n")
        await asyncio.sleep(60)
        return "never"

    async def agent() -> Any:
        async with net.aturn() as turn:
            task = asyncio.create_task(net.protect(tool)())
            while not repo.exists("half.txt"):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return turn

    assert asyncio.run(agent()).undo().removed == ("half.txt",)


def test_a_cancelled_start_leaves_no_turn_open(repo: RepoBuilder, net: Net) -> None:
    """A task that was cancelled while its turn began has not joined it: the next turn is another one."""

    async def agent() -> None:
        began, go_on = threading.Event(), threading.Event()

        def slow() -> None:
            began.set()
            go_on.wait(20)

        net.hooks.register("test.slow", HookType.TURN_PRE, slow)

        async def turn() -> None:
            async with net.aturn("cancelled"):
                raise AssertionError

        task = asyncio.create_task(turn())
        await asyncio.to_thread(began.wait, 20)
        task.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with net.aturn("next") as after:
            assert (after.prompt, after.handle) == ("next", "t2")

    asyncio.run(agent())


def test_a_task_whose_loop_is_gone(repo: RepoBuilder, net: Net) -> None:
    """Its tool is over and recorded, and nobody hears of a fault of ours."""
    faults: list[object] = []

    @net.protect
    async def tool() -> str:
        repo.write("a.txt", "half\n")
        await asyncio.Event().wait()
        return "never"

    async def until_it_runs() -> None:
        while repo.read("a.txt") != "half\n":
            await asyncio.sleep(0.01)

    loop = asyncio.new_event_loop()
    tool_runs: Any = tool()
    task = loop.create_task(tool_runs)
    loop.set_exception_handler(lambda loop, context: None)  # that it was destroyed is asyncio's to tell, and true
    loop.run_until_complete(until_it_runs())
    loop.close()
    old, sys.unraisablehook = sys.unraisablehook, faults.append
    try:
        del task
        tool_runs.close()
    finally:
        sys.unraisablehook = old
    assert faults == [] and current_session() is None
    assert net.undo().restored == ("a.txt",)


def test_a_worker_that_was_forked_ends_alone(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """A call in a process forked from the agent's is the turn's, and that process's end is not the agent's."""
    write = net.protect(tools.write_file)
    with net.turn() as turn:
        write("a.txt")
        child = os.fork()
        if not child:
            write("child.txt")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with Net(repo.root, environ=repo.env) as other, other.turn() as theirs:
            other.protect(tools.write_file)("b.txt")
        write("c.txt")
    assert (turn.handle, theirs.handle) == ("t1", "t2")
    assert [one.path for one in turn.changes] == ["a.txt", "c.txt", "child.txt"]


class Busy(list[str]):
    """A list to which another thread adds just when it has been read."""

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        self.append("late")

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        self.append("late")
        return found


def test_nothing_told_is_lost_between_threads(net: Net) -> None:
    """What one thread adds while another one takes is there for the next to take."""
    session = dataclasses.replace(net.session, notices=Busy(["early"]), messages=Busy(["early"]))
    assert session.take_notices() == ["early"] and "late" in session.notices
    assert session.take_messages() == ("early",) and "late" in session.messages


# -- questions -------------------------------------------------------------------------------------------------------------------


def test_a_question_is_put_to_the_program(repo: RepoBuilder, tools: Tools) -> None:
    """``on_ask`` hears the call and the reason; only True is a yes, and nobody to ask is a no."""
    heard: list[tuple[str, str]] = []

    def answering(answer: object) -> str:
        def on_ask(call: Call, reason: str) -> Any:
            heard.append((call.tool, reason))
            return answer

        with Net(repo.root, environ=repo.env, on_ask=None if answer == "nobody" else on_ask) as net:
            asks(net)
            return net.protect(tools.shell)("echo ran")

    assert [answering(each) for each in (True, False, None, "yes", "nobody")] == ["ran", *["sure?"] * 4]
    assert heard == [("shell", "sure?")] * 4


def test_what_cannot_be_undone_needs_a_yes(repo: RepoBuilder, tools: Tools) -> None:
    """The guard's own question is answered by ``on_ask``; without it the model reads what would be lost."""
    repo.write("big.bin", b"x" * (33 << 20))
    with Net(repo.root, environ=repo.env) as net:
        refused = net.protect(tools.shell)("rm big.bin")
    assert "big.bin" in refused and repo.exists("big.bin")
    with Net(repo.root, environ=repo.env, on_ask=lambda call, reason: "big.bin" in reason) as net:
        net.protect(tools.shell)("rm big.bin")
    assert not repo.exists("big.bin")


def test_a_text_with_half_a_character_is_judged(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """What JSON can say and no file can hold is judged like any other text, not taken for a fault of the guard."""
    shell = net.protect(lambda command: tools.ran.append(command))
    assert "cannot be undone" in shell("git push --delete origin main # \ud800")
    shell("echo \ud800")
    assert tools.ran == ["echo \ud800"]


def test_an_async_answer(repo: RepoBuilder, tools: Tools) -> None:
    """It is awaited in the loop of the tool that waits for it; a tool that is not awaited has none, and gets the answer all the same."""
    loops: list[asyncio.AbstractEventLoop] = []

    async def on_ask(call: Call, reason: str) -> bool:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return True

    with Net(repo.root, environ=repo.env, on_ask=on_ask) as net:
        asks(net)

        async def agent() -> asyncio.AbstractEventLoop:
            assert await net.protect(tools.slow)("s.txt", 0) == "done"
            assert net.protect(tools.shell)("echo ran") == "ran"
            return asyncio.get_running_loop()

        loop = asyncio.run(agent())
        assert net.protect(tools.shell)("echo ran") == "ran"
    assert [each is loop for each in loops] == [True, False, False]


def test_an_async_answer_for_a_tool_in_a_tool(repo: RepoBuilder, tools: Tools) -> None:
    """A plain tool that an awaited one calls stands in the loop's way, so its question is not put to that loop."""

    async def on_ask(call: Call, reason: str) -> bool:
        return True

    with Net(repo.root, environ=repo.env, on_ask=on_ask) as net:
        asks(net)
        shell = net.protect(tools.shell)

        @net.protect
        async def outer() -> str:
            return shell("echo ran")

        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(asyncio.run, outer()).result(60) == "ran"


def test_a_question_that_fails_is_a_no(repo: RepoBuilder, tools: Tools) -> None:
    """An exception of ``on_ask`` refuses the call, and the user is told."""

    def on_ask(call: Call, reason: str) -> bool:
        raise ZeroDivisionError("oops")

    with Net(repo.root, environ=repo.env, on_ask=on_ask) as net:
        asks(net)
        net.protect(tools.shell)("echo ran")
    assert tools.ran == [] and "oops" in "".join(net.notices)


# -- what could not be protected -------------------------------------------------------------------------------------------------


def unusable(repo: RepoBuilder) -> dict[str, str]:
    repo.write("no-folder", "")
    return {**repo.env, "GIT_SAFETY_HOME": str(repo.path("no-folder"))}


def test_a_store_that_cannot_be_opened(repo: RepoBuilder, tools: Tools) -> None:
    """The tools run and the user is warned; what was not recorded is an error, not an empty answer; strict, it is one at once."""
    environ = unusable(repo)
    with pytest.warns(RuntimeWarning, match="not protected"):
        net = Net(repo.root, environ=environ)
    with net, net.turn() as turn:
        assert net.protect(tools.shell)("echo ran") == "ran"
        assert asyncio.run(net.protect(tools.slow)("s.txt", 0)) == "done"
        assert net.pre("shell", {}) == Decision() and net.turn_end() is None
    assert len(net.notices) == 1 and turn.handle == "" and turn.notices == net.notices
    for look in (lambda: turn.changes, turn.undo, net.undo, net.redo, net.log):
        with pytest.raises(SafetyError):
            look()
    assert "no-folder" in net.tools()[0]()
    with pytest.raises(SafetyError):
        Net(repo.root, environ=environ, strict=True)


def broken(repo: RepoBuilder) -> None:
    """From now on nothing can be stored."""
    for objects in repo.state.glob("stores/*.git/objects"):
        objects.rename(objects.with_name("away"))
        objects.write_text("")


def mended(repo: RepoBuilder) -> None:
    for away in repo.state.glob("stores/*.git/away"):
        objects = away.with_name("objects")
        objects.unlink()
        away.rename(objects)


def test_a_capture_that_fails(repo: RepoBuilder, tools: Tools) -> None:
    """The tool runs, the turn says that it was not protected, and the program is warned once; strict, the tool does not run."""
    net = Net(repo.root, environ=repo.env)
    with pytest.warns(RuntimeWarning, match="t1 could not be protected"), net.turn() as turn:
        broken(repo)
        assert net.protect(tools.shell)("echo ran; echo x > x.txt") == "ran"
        mended(repo)
    assert "not protected" in "".join(turn.notices)
    repo.remove("x.txt")
    strict = Net(repo.root, environ=repo.env, strict=True)
    with pytest.warns(RuntimeWarning), strict.turn():
        broken(repo)
        assert "fail_closed" in strict.protect(tools.shell)("echo again")
        assert strict.pre("shell", {"command": "x"}).action == "deny"
        mended(repo)
    assert len(tools.ran) == 1
    strict.close()
    net.close()


def test_a_turn_that_could_not_begin_is_no_other(repo: RepoBuilder, tools: Tools) -> None:
    """Its changes and its undo are never those of the turn before; what a later call of it could record is its own."""
    net = Net(repo.root, environ=repo.env)
    write = net.protect(tools.write_file)
    with net.turn("first"):
        write("a.txt")
    repo.write("mine.txt", "mine\n")
    broken(repo)
    with net.turn("lost") as lost:
        assert lost.handle == ""
    for look in (lambda: lost.changes, lost.undo):
        with pytest.raises(SafetyError, match="nothing of this turn"):
            look()
    with net.turn("late") as late:
        mended(repo)
        write("b.txt")
    assert (lost.handle, late.handle, late.undo().paths) == ("", "t2", ("b.txt",))
    assert repo.read("a.txt") == "agent\n" and "not protected" in "".join(lost.notices)
    net.close()


@pytest.mark.parametrize("lost", ["", "workspaces", "stores"])
def test_a_store_that_is_lost(repo: RepoBuilder, tools: Tools, lost: str) -> None:
    """Gone in mid-turn, it is an error of ours to whoever asks for what it held, and to the agent nothing."""
    net = Net(repo.root, environ=repo.env)
    with pytest.warns(RuntimeWarning, match="could not be protected"), net.turn() as turn:
        net.protect(tools.write_file)("a.txt")
        known = turn.changes
        folder, aside = repo.state / lost, repo.path("../aside")
        folder.rename(aside)
        folder.write_text("")
        assert net.protect(tools.shell)("echo ran") == "ran"
        for look in (lambda: turn.changes, turn.undo, net.undo, net.redo):
            with pytest.raises(SafetyError, match="the store cannot be used"):
                look()
    if lost != "workspaces":
        for look in (net.log, lambda: known[0].before):
            with pytest.raises(SafetyError, match="the store cannot be used"):
                look()
    assert "not protected" in "".join(turn.notices)
    folder.unlink()
    aside.rename(folder)


def test_a_workspace_that_was_removed(repo: RepoBuilder, net: Net) -> None:
    """It is told by what was in it, whatever the mode of the folder, and comes back with that mode."""
    repo.root.chmod(0o750)
    with net.turn() as turn:
        net.protect(lambda: shutil.rmtree(repo.root))()
    assert {one.how for one in turn.changes} == {"deleted"} and "a.txt" in [one.path for one in turn.changes]
    assert "a.txt" in turn.undo().restored and repo.read("a.txt") == NINE_LINES
    assert repo.root.stat().st_mode & 0o777 == 0o750


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    """A wrong path is an error at once, as is an id that stands for something else."""
    with pytest.raises(SafetyError, match="is no folder"):
        Net(tmp_path / "none")
    with pytest.raises(ValueError, match="run-"):
        Net(tmp_path, session_id="run-1")


@pytest.mark.parametrize("ignored_by", ["the repository", "the one around it"])
def test_a_folder_that_no_capture_of_its_repository_sees(repo: RepoBuilder, tools: Tools, ignored_by: str) -> None:
    """It is a workspace of its own, strict or not, however deep: what tools do there is told and taken back."""
    repo.write(".gitignore", "build/\n")
    folder = repo.path("build/agent/here")
    folder.mkdir(parents=True)
    if ignored_by == "the one around it":
        repo.sh("git init -q build/agent")
        with Net(repo.root, environ=repo.env) as outer, outer.turn():  # known, so it holds what lies below
            outer.protect(tools.write_file)("a.txt")
    for strict in (False, True):
        with Net(folder, environ=repo.env, strict=strict) as net, net.turn() as turn:
            net.protect(tools.shell)("echo x > build/agent/here/new.txt")
        assert [one.path for one in turn.changes] == ["new.txt"] and turn.undo().removed == ("new.txt",)
        assert net.session.root == os.fsencode(folder) and net.notices == ()
    assert not list(folder.iterdir())


def test_opening_and_working_leave_no_trace_in_the_process(repo: RepoBuilder, tools: Tools) -> None:
    """No thread outlives a call, no logging is touched, no signal, no hook of the interpreter; opening records nothing."""

    def traces() -> tuple[object, ...]:
        names = [None, *logging.root.manager.loggerDict]
        signals = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
        handlers = [(name, list(logging.getLogger(name).handlers), logging.getLogger(name).level) for name in names]
        return threading.active_count(), handlers, signals, sys.excepthook, threading.excepthook, os.getcwd(), dict(os.environ)

    Net(repo.root, environ=repo.env).close()
    before = traces()
    net = Net(repo.root, environ=repo.env)
    assert net.session.log.head_id() is None
    with net.turn():
        net.protect(tools.shell)("echo x > a.txt")
        asyncio.run(net.protect(tools.slow)("s.txt", 0))
    net.undo()
    assert traces() == before


def test_a_process_that_died_runs_no_more(repo: RepoBuilder) -> None:
    """A program that is killed in a turn leaves one that has ended: its finished calls are undone without a question."""
    code = (
        "import os, signal, sys; from safety.net import Net\n"
        f"net = Net({str(repo.root)!r})\n"
        "def write_file(path: str) -> str:\n    open(path, 'w').write('agent\\n'); return ''\n"
        "with net.turn('die'):\n    net.protect(write_file)('a.txt'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repo.root, env={**repo.env, "PYTHONPATH": str(PROJECT)})
    assert done.returncode == -signal.SIGKILL and repo.read("a.txt") == "agent\n"
    assert "running" not in repo.must("log").out
    repo.undo()
    assert repo.read("a.txt") == NINE_LINES


# -- for adapters ----------------------------------------------------------------------------------------------------------------


def test_a_framework_in_ten_lines(repo: RepoBuilder, tools: Tools) -> None:
    """The gate that docs/python.md shows drives a loop of a framework's own: veto, edit, parallel calls, sent back, undone."""
    from tests.adapters.framework_gate import FEEDBACK, VETO, Gate, with_rules

    gate = with_rules(Gate(str(repo.root), environ=repo.env))
    before = repo.picture()
    seen: list[str] = []

    def call(tool: str, **args: Any) -> None:
        answer = gate.pre(tool, args)
        if answer.action == "deny":
            seen.append(answer.message)
            return gate.post(tool, args, answer.message)  # some frameworks call it after a veto, too
        args = dict(answer.args or args)
        seen.append(tools.write_file(**args) if tool == "write_file" else tools.shell(**args))
        return gate.post(tool, args, seen[-1])

    gate.turn_start("go")
    call("write_file", path="new.txt", content="hello")
    call("write_file", path=".env", content="SECRET")
    call("write_file", path="b.txt", content="EDIT-ME")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda number: call("shell", command="sleep 0.1; echo x >> a.txt"), range(2)))
    assert gate.turn_end() == FEEDBACK
    gate.turn_start(FEEDBACK)
    call("write_file", path="fix.txt", content="fixed")
    assert gate.turn_end() is None and gate.turn_end() is None
    assert VETO in seen and not repo.exists(".env") and repo.read("b.txt") == "EDITED"
    assert gate.net.undo().paths == ("a.txt", "b.txt", "fix.txt", "new.txt")
    repo.assert_is(before)
    gate.net.close()
    assert gate.net.notices == ()


def test_ends_find_their_beginnings(repo: RepoBuilder, net: Net) -> None:
    """By id, else by tool and arguments, each once; an end of nothing is no news and records nothing."""
    ended: list[str] = []
    net.hooks.register("test.end", HookType.TOOL_EXECUTE_POST, lambda data: ended.append(data.tool_use.id))
    net.turn_start("x")
    same = {"command": "true"}
    for call_id in ("one", "two"):
        net.pre("shell", same, call_id=call_id)
    net.pre("shell", same)
    net.post("shell", same, "fine", call_id="two")
    net.post("shell", same, error=ValueError("no"))
    net.post("shell", same)
    net.post("shell", {"command": "other"})
    net.post("shell", same, call_id="never")
    net.post("shell", same, call_id="one", error=True)
    net.post("shell", same, call_id="one")
    assert ended[0] == "two" and ended[2] == "one" and len(ended) == 3
    assert {each: done.status for each, done in net.session.finished_calls().items()} == {
        "two": "ok",
        ended[1]: "error",
        "one": "error",
    }
    net.turn_end()


def test_an_end_that_was_lost_takes_no_other(repo: RepoBuilder, net: Net) -> None:
    """The same call again, in the turn and in the next one, has an end of its own."""
    args = {"command": "./go"}
    for prompt in ("x", "y"):
        net.turn_start(prompt)
        net.pre("shell", args)  # the framework died on it
        net.pre("shell", args)
        repo.append("a.txt", f"{prompt}\n")
        net.post("shell", args, "done")
        net.turn_end()
    assert net.undo("t2").restored == ("a.txt",) and repo.read("a.txt") == f"{NINE_LINES}x\n"
    assert net.undo("t1").restored == ("a.txt",) and repo.read("a.txt") == NINE_LINES


def test_hooks_of_a_framework_join_the_program_s_turn(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """Where the program has opened a turn, what a middleware starts and ends in it is part of it."""
    with net.turn("outer") as turn:
        assert not net.turn_start("inner").handled
        net.pre("shell", {"command": "x"}, call_id="c")
        repo.write("a.txt", "agent\n")
        net.post("shell", {"command": "x"}, "", call_id="c")
        assert net.turn_end() is None
        net.protect(tools.write_file)("b.txt")
    assert turn.undo().paths == ("a.txt", "b.txt")


def test_a_typed_command_is_carried_out(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """``/undo`` as a prompt is not for the model; what it did is told to both."""
    with net.turn():
        net.protect(tools.write_file)("a.txt")
    start = net.turn_start("/undo")
    assert start.handled and "Undid t1" in start.notices[0] and "/undo" in start.messages[0]
    assert repo.read("a.txt") == NINE_LINES


def test_a_fault_of_ours_stops_no_agent(repo: RepoBuilder, net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """What adapters call never raises: the user is told, and the call runs unless the net is strict."""

    def fails(*args: object) -> None:
        raise ZeroDivisionError("ours")

    strict = Net(repo.root, environ=repo.env, strict=True)
    monkeypatch.setattr("safety.session.Session.pre", fails)
    monkeypatch.setattr("safety.session.Session.turn_start", fails)
    assert net.pre("shell", {}).action == "allow" and strict.pre("shell", {}).action == "deny"
    assert net.turn_start("x").messages == ()
    assert [text.count("ours") for text in net.notices] == [1, 1]
    net._notices.clear()


# -- for the model ---------------------------------------------------------------------------------------------------------------


def test_tools_for_the_model(repo: RepoBuilder, net: Net, tools: Tools) -> None:
    """Plain typed functions that say what they do and give text; undo only where the program hands it out."""
    given = net.tools()
    assert [tool.__name__ for tool in given] == ["safety_snapshot", "safety_check", "safety_explain"]
    for tool in net.tools(undo=True):
        assert typing.get_type_hints(tool)["return"] is str and tool.__doc__
        assert all(f"{name}: " in tool.__doc__ for name in inspect.signature(tool).parameters)
        assert all(hint in (str, bool) for hint in typing.get_type_hints(tool).values())
    snapshot, check, explain, undo = net.tools(undo=True)
    assert net.protect([undo]) == [undo]
    assert snapshot().startswith("Snapshot") and "1 files" in snapshot("a.txt")
    assert snapshot("none.txt") == f"git-safety: there is no {repo.path('none.txt')}"
    assert explain("rm -rf /").startswith("deny") and explain("rm a.txt").startswith("allow")
    assert "No checks" in check()
    with net.turn():
        net.protect(tools.write_file)("a.txt")
        assert undo(dry_run=True) == "Would undo t1.\nrestored: a.txt"
        assert undo() == "Undid t1.\nrestored: a.txt"
    assert "no turn of this conversation" in undo()


# -- for the type checker and the importer ---------------------------------------------------------------------------------------

SAMPLE = """\
from pathlib import Path
from typing import Awaitable, Callable
from safety.net import Net

net = Net(".")
def write(path: str, times: int = 1) -> str: return path
async def later(path: Path) -> int: return 1

kept: Callable[[str, int], str] = net.protect(write)
net.protect(write, reads=True)("a", times=2).upper()
async def use() -> int: return await net.protect(later, denied="raise")(Path("a"))
tools: list[Callable[..., object]] = net.protect([write, later])
@net.protect
def plain(path: str) -> str: return path
@net.protect(paths="path")
def named(path: str) -> str: return path
plain("a").upper(); named(path="a").upper()
with net.turn("x") as turn:
    for change in turn.changes:
        text: bytes | None = change.after
    paths: tuple[str, ...] = turn.undo(dry_run=True).paths
net.protect(write)(1)  # wrong
net.protect(write)("a", other=1)  # wrong
wrong: int = net.protect(write)("a")  # wrong
plain(1)  # wrong
named(1)  # wrong
net.protect(write, denied="never")  # wrong
net.turn(5)  # wrong
"""


def test_the_type_checker_knows_protected_tools(tmp_path: Path) -> None:
    """mypy takes each right use of the sample and finds fault with each wrong one: a protected tool has the type it had."""
    assert_only_the_wrong_is_found(SAMPLE, tmp_path)


def test_the_net_loads_what_it_needs() -> None:
    """Naming ``Net`` loads no event loop, no database, no drawing, no watcher and no framework."""
    code = "import sys; old = set(sys.modules); from safety.net import Net; print(*set(sys.modules) - old)"
    env = {"PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "safety.session" in loaded
    assert not loaded & {
        "asyncio",
        "pygit2",
        "git",
        "rich",
        "watchdog",
        "concurrent.futures",
        "tree_sitter",
        "safety.store.capture",
    }
