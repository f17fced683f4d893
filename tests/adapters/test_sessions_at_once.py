"""Eight sessions at once, each in a workspace and a context of its own, with one question server: nothing gets mixed up."""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from safety.adapters.question_server import QuestionServer
from safety.hooks import HookRegistry, HookType, elicit, get_hooks, get_registry, register_hook, set_registry, trigger_hook
from safety.hooks.answers import ElicitationRequest
from safety.runtime.open import open_session
from safety.session import Call, Denied, Session, current_session
from safety.store.packs import write_whole
from tests.adapters.test_questions import nothing_stays
from tests.support.questions import Beside, Follower, answer
from tests.support.repo import RepoBuilder, assert_store_sound

__all__ = ["nothing_stays"]  # the fixture holds here too
NAMES = tuple(f"s{number}" for number in range(8))
ALLOWED = NAMES[::2]


@pytest.fixture
def workspaces(tmp_path: Path, env: dict[str, str]) -> Iterator[dict[str, RepoBuilder]]:
    """Eight repositories with a file that no snapshot holds, below one state folder."""
    folder = Path(env["XDG_CONFIG_HOME"]) / "git-safety"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({"snapshots": {"max_file_mib": 1}}))
    made = {name: RepoBuilder(tmp_path / name, env) for name in NAMES}
    for name, repo in made.items():
        repo.commit(a_txt=name)
        repo.write("data/raw.bin", name.encode() * (1 << 20))
    yield made
    for repo in made.values():
        assert_store_sound(repo)


def opened(repo: RepoBuilder, name: str) -> Session:
    session = open_session(os.fsencode(repo.root), name, repo.env)
    session.turn_start(f"for {name}")
    return session


def removal(repo: RepoBuilder) -> Call:
    return Call("c1", "shell", {"command": "rm -rf data"}, os.fsencode(repo.root))


def told(heard: list[tuple[str, str]], name: str) -> None:
    """Registers in this context's registry what notes each generation that it hears of."""

    def hear(message: Any) -> None:
        heard.append((name, message))

    register_hook(f"{name}.hear", HookType.GENERATION_POST, hear)


def answer_all(server: QuestionServer, tab: Follower, kind: str, bodies: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Waits until all eight have asked, then answers each its own, the last one first; the questions by session."""
    asked: list[dict[str, Any]] = []
    try:
        while len(asked) < len(NAMES):
            asked.append(tab.next("question"))
        assert {(question["session"], question["kind"]) for question in asked} == {(name, kind) for name in NAMES}
        for question in reversed(asked):
            assert answer(server, question["id"], **bodies[question["session"]]).status == 200
            assert tab.next("answered")["session"] == question["session"]
    except BaseException as error:
        server.end()  # so that nobody waits for an answer any more
        raise AssertionError(f"asked: {[question['session'] for question in asked]}") from error
    return {question["session"]: question for question in asked}


CONFIRMS: dict[str, dict[str, Any]] = {
    name: {"action": "confirm"} if name in ALLOWED else {"action": "skip", "message": f"no, {name}"} for name in NAMES
}
NAMED: dict[str, dict[str, Any]] = {name: {"value": f"value of {name}"} for name in NAMES}


def test_eight_threads(workspaces: dict[str, RepoBuilder]) -> None:
    """All eight wait at once for what the guard asks and for what the agent asks; each gets its own answer, and hears only its own."""
    heard: list[tuple[str, str]] = []
    together = threading.Barrier(len(NAMES))

    def work(name: str) -> tuple[str, str | None, list[str]]:
        repo, session = workspaces[name], opened(workspaces[name], name)
        set_registry(session.hooks)
        told(heard, name)
        server.attach(session)
        together.wait(60)
        try:
            done = session.around(removal(repo), lambda given: repo.sh(given["command"]) or f"{current_session().id} ran it")  # type: ignore[union-attr]
        except Denied as refused:
            done = str(refused)
        together.wait(60)
        value = elicit(ElicitationRequest("text", f"Name of {name}?")).value
        trigger_hook(HookType.GENERATION_POST, message=f"by {name}")
        session.turn_end()
        assert get_registry() is session.hooks
        return done, value, session.take_notices()

    outside = get_registry()
    with QuestionServer() as server, Follower(server) as tab:
        working = {name: Beside(work, name) for name in NAMES}
        confirms = answer_all(server, tab, "confirm", CONFIRMS)
        elicited = answer_all(server, tab, "elicit", NAMED)
        done = {name: each.result() for name, each in working.items()}
    for name, repo in workspaces.items():
        assert (confirms[name]["workspace"], confirms[name]["unrecoverable"]) == (str(repo.root), True)
        assert "data/raw.bin" in confirms[name]["reason"]
        assert elicited[name]["prompt"] == f"Name of {name}?"
        assert done[name] == (f"{name} ran it" if name in ALLOWED else f"no, {name}", f"value of {name}", [])
        assert repo.exists("data") == (name not in ALLOWED)
    assert sorted(heard) == [(name, f"by {name}") for name in NAMES]
    assert get_registry() is outside and not get_hooks(HookType.ELICIT)


def test_eight_tasks(workspaces: dict[str, RepoBuilder]) -> None:
    """The same in one event loop: no session that waits for a person keeps another, or the loop, from going on."""
    heard: list[tuple[str, str]] = []

    async def work(name: str) -> tuple[str, HookRegistry]:
        repo = workspaces[name]
        session = opened(repo, name)
        set_registry(session.hooks)
        told(heard, name)
        server.attach(session)

        async def run(given: Any) -> str:
            await asyncio.sleep(0)
            return repo.sh(given["command"]) or f"{current_session().id} ran it"  # type: ignore[union-attr]

        try:
            done = await session.aaround(removal(repo), run)
        except Denied as refused:
            done = str(refused)
        trigger_hook(HookType.GENERATION_POST, message=f"by {name}")
        session.turn_end()
        return done, get_registry()

    async def main() -> list[tuple[str, HookRegistry]]:
        return await asyncio.gather(*(work(name) for name in NAMES))

    with QuestionServer() as server, Follower(server) as tab:
        client = Beside(answer_all, server, tab, "confirm", CONFIRMS)
        found = asyncio.run(main())
        client.result()
    assert [done for done, _ in found] == [f"{name} ran it" if name in ALLOWED else f"no, {name}" for name in NAMES]
    assert len({id(registry) for _, registry in found}) == len(NAMES)
    assert sorted(heard) == [(name, f"by {name}") for name in NAMES]


def test_one_file_written_by_all(tmp_path: Path) -> None:
    """A small file that several threads replace at once is always one of them whole."""
    file = tmp_path / "file"

    def write(name: str) -> None:
        for _ in range(200):
            write_whole(file, name.encode() * 100, durable=False)

    for each in [Beside(write, name) for name in NAMES]:
        each.result()
    assert file.read_text() in {name * 100 for name in NAMES}
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_task_sees_the_registry_of_its_context() -> None:
    """A task starts with that of who made it, as do a thread's worker and a copied context; what it sets is its own."""

    async def child() -> tuple[HookRegistry, HookRegistry]:
        given = get_registry()
        set_registry(HookRegistry())
        await asyncio.sleep(0)
        return given, get_registry()

    async def parent() -> None:
        mine = HookRegistry()
        set_registry(mine)
        register_hook("mine", HookType.TURN_PRE, lambda: None)
        children = await asyncio.gather(*(child() for _ in NAMES))
        assert all(given is mine for given, _ in children)
        assert len({id(own) for _, own in children} | {id(mine)}) == len(NAMES) + 1
        assert get_registry() is mine and await asyncio.to_thread(get_registry) is mine
        assert contextvars.copy_context().run(get_registry) is mine
        assert Beside(get_registry).result() is not mine  # a plain thread begins with none

    asyncio.run(parent())
