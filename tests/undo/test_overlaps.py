"""Calls that overlap: what one of them did stays its own, however the others end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from safety.net import Decision, HookType, Net
from tests.support.repo import RepoBuilder

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def net(repo: RepoBuilder) -> Net:
    net = Net(repo.root, environ=repo.env)
    net.turn_start("x")
    return net


def begin(net: Net, call_id: str, tool: str = "shell", **args: str) -> Decision:
    return net.pre(tool, args or {"command": "./agent-step"}, call_id)


def end(net: Net, call_id: str) -> None:
    net.post("", {}, "done", call_id=call_id)


@pytest.mark.parametrize("tool", ["write", "shell"])
def test_beside_a_call_that_is_refused(repo: RepoBuilder, net: Net, tool: str) -> None:
    """A call that ended while another one was being refused is undone, also when something else changed before the turn's end."""

    def refuse(data: Any) -> Decision | None:
        if data.tool_use.id != "refused":
            return None
        end(net, "own")
        return Decision("deny", "no")

    net.hooks.register("test.refuse", HookType.TOOL_EXECUTE_PRE, refuse)
    begin(net, "own", tool, path="a.txt")
    repo.write("a.txt", "agent\n")
    assert begin(net, "refused").action == "deny"
    repo.write("c.txt", "a formatter's\n")
    net.turn_end()
    assert net.undo("t1").paths == ("a.txt",) and repo.exists("c.txt")


@pytest.mark.parametrize("ends", [Net.turn_end, Net.turn_start], ids=["the turn's end", "the next turn"])
def test_beside_a_call_that_never_ends(repo: RepoBuilder, net: Net, ends: Callable[[Net], Any]) -> None:
    """A call whose end is never heard claims nothing, and takes nothing from the one that ended."""
    begin(net, "own", "write", path="a.txt")
    begin(net, "lost")
    repo.write("a.txt", "agent\n")
    end(net, "own")
    repo.write("c.txt", "whose?\n")
    ends(net)
    net.turn_end()
    assert net.undo("t1").paths == ("a.txt",) and repo.exists("c.txt")


@pytest.mark.parametrize("command", ["ls", "cat a.txt"])
def test_beside_a_call_that_reads(repo: RepoBuilder, net: Net, command: str) -> None:
    """What changed until the end of a command that only reads is that of the call that ran beside it, of whatever session."""
    other = Net(repo.root, environ=repo.env)
    other.turn_start("y")
    begin(net, "own")
    begin(net, "reads", command=command)
    begin(other, "others", command=command)
    repo.write("a.txt", "agent\n")
    end(net, "reads")
    repo.write("b.txt", "agent\n")
    end(other, "others")
    repo.write("c.txt", "agent\n")
    end(net, "own")
    other.turn_end()
    net.turn_end()
    assert net.undo("t1").paths == ("a.txt", "b.txt", "c.txt")


def test_reading_last_takes_nothing(repo: RepoBuilder, net: Net) -> None:
    """A command that only reads and ends last does not share in what the other session's call did."""
    other = Net(repo.root, environ=repo.env)
    other.turn_start("y")
    begin(net, "own")
    begin(other, "reads", command="ls")
    repo.write("a.txt", "agent\n")
    end(net, "own")
    end(other, "reads")
    other.turn_end()
    net.turn_end()
    assert net.undo("t1").paths == ("a.txt",)


@pytest.mark.parametrize("others", [True, False], ids=["others run on", "only it was left"])
def test_beside_an_agent_that_dies(repo: RepoBuilder, net: Net, others: bool) -> None:
    """What a call did while a killed agent's call was open stays its own when that one is found dead, and so do the others' calls."""
    code = (
        f"import os, signal; from safety.net import Net\nnet = Net({str(repo.root)!r})\n"
        "net.turn_start('z'); net.pre('shell', {'command': './agent-step'})\n"
        "print(flush=True); input(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environ = {**repo.env, "PYTHONPATH": str(PROJECT)}
    with subprocess.Popen([sys.executable, "-c", code], env=environ, stdin=PIPE, stdout=PIPE, text=True) as agent:
        agent.stdout.readline()  # type: ignore[union-attr]
        other = Net(repo.root, environ=repo.env)
        other.turn_start("y")
        if others:
            begin(other, "other")
        begin(net, "own", "write", path="a.txt")
        repo.write("a.txt", "agent\n")
        end(net, "own")
        agent.communicate("\n")
    repo.write("c.txt", "whose?\n")
    with Net(repo.root, environ=repo.env) as third, third.turn("finds it dead"):
        pass
    end(other, "other")
    other.turn_end()
    net.turn_end()
    assert net.undo("t1").paths == ("a.txt",)
    handle = f"t{other.turn_number()}"
    assert other.undo(handle).paths == (("c.txt",) if others else ())
