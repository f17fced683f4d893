"""Sub-agents of gptme: threads of its process, and processes of their own."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.adapters.gptme.conftest import DONE, Gptme, block, save, shell, text_of

STARTS = {
    "thread": block("ipython", "subagent('helper', 'write a file', use_subprocess=False); subagent_wait('helper', timeout=60)"),
    "subprocess": block(
        "ipython", "subagent('helper', 'write a file', use_subprocess=True); subagent_wait('helper', timeout=60)"
    ),
    "its own": shell("gptme -n -m scripted/one --name inner --system short 'write a file' </dev/null"),
}


@pytest.mark.parametrize("start", STARTS)
def test_a_sub_agents_calls_are_of_its_parents_turn(gptme: Gptme, start: str) -> None:
    """What a sub-agent did is undone with the turn that started it, what the parent did around it too, and the log has one turn; so
    for a thread, for a process, and for a gptme that a command starts."""
    repo = gptme.repo
    before = repo.picture()
    ran = gptme.run(
        [
            save("a.txt", "the parent's"),
            STARTS[start],
            save("helper.txt", "the helper's"),
            shell("rm -rf src"),
            block("complete", "the helper is done"),
            save("b.txt", "after it"),
            DONE,
        ],
        *("--tools", "+subagent", "do it"),
    )
    assert repo.exists("helper.txt") and not repo.exists("src") and repo.read("b.txt") == "after it\n", ran.out
    undone = gptme.run([], "/undo", name="talk-1")
    assert "Undid t1 and its " in undone.out
    repo.assert_is(before)
    assert repo.must("log").out.count("gptme") == 1


def test_sub_agents_at_the_same_time(gptme: Gptme) -> None:
    """Two that write while the other does lose nothing: the turn that started both takes the work of both back."""
    repo = gptme.repo
    before = repo.picture()
    both = "subagent_wait('one', timeout=60); subagent_wait('two', timeout=60)"
    start = "".join(f"subagent('{name}', 'I am {name}', use_subprocess=False); " for name in ("one", "two"))

    def says(messages: list[dict[str, Any]]) -> str:
        """The next of each one's lines, by how many it has said."""
        said = sum(message["role"] == "assistant" for message in messages)
        text = "\n".join(text_of(message) for message in messages if message["role"] == "user")
        who = next((name for name in ("one", "two") if f"I am {name}" in text), "")
        if who and said < 4:
            return save(f"{who}.txt", f"{said}") if said % 2 else shell(f"echo {said} > src/{who}")
        return DONE if who or said else block("ipython", f"{start}{both}")

    gptme.run([says] * 20, "--tools", "+subagent", "do it", name="both")
    assert [repo.read(path) for path in ("one.txt", "two.txt", "src/one", "src/two")] == ["3\n", "3\n", "2\n", "2\n"]
    gptme.run([], "/undo", name="both")
    repo.assert_is(before)


@pytest.mark.parametrize("process", [False, True])
def test_a_sub_agent_in_a_work_tree_of_its_own(gptme: Gptme, process: bool) -> None:
    """It is guarded there too, what it does there is on record, and undo of its parent's turn leaves the repository as it was."""
    repo = gptme.repo
    before = repo.picture()
    precious = gptme.home / "precious.txt"
    precious.write_text("the only copy\n")
    seen = gptme.home / "seen"
    inside = "import threading; from pathlib import Path; from gptme.util import git_worktree as made"
    inside += f"; made.DEFAULT_WORKTREE_BASE = Path({str(gptme.home / 'trees')!r})"
    start = f"{inside}; subagent('helper', 'write a file', isolated=True, use_subprocess={process}); subagent_wait('helper', timeout=60)"
    # a thread of gptme's, for which it does not wait itself, takes the work tree and its branch away
    start += "; [one.join(60) for one in threading.enumerate() if '(_launch_subprocess)' in one.name]"
    ran = gptme.run(
        [
            save("a.txt", "the parent's"),
            block("ipython", start),
            save("b.txt", "the helper's"),
            shell(f"rm -f {precious}; pwd > {seen}"),
            shell(f"pwd > {seen}; git -c user.name=x -c user.email=x commit -qam helper"),
            block("complete", "the helper is done"),
            DONE,
        ],
        *("--tools", "+subagent", "do it"),
        name="isolated",
    )
    assert precious.exists() and seen.read_text().startswith(str(gptme.home / "trees")), ran.out
    assert repo.read("a.txt") == "the parent's\n" and repo.read("b.txt") == "b\n"
    logs = [path.read_text() for path in repo.state.rglob("audit.jsonl")]
    tools = [sorted(set(re.findall('"tool":"([a-z]+)"', text))) for text in logs]
    assert sorted(tools) == [["complete", "save", "shell"], ["ipython", "save"]]
    gptme.run([], "/undo", name="isolated")
    repo.assert_is(before)
