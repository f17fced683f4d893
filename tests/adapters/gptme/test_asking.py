"""What may not run unasked, in gptme: with nobody there, and at its terminal."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from tests.adapters.gptme.conftest import DONE, Gptme, Reply, Script, block, save, shell, text_of
from tests.support.chat_server import chat_server
from tests.support.terminal import Terminal


def test_what_cannot_be_undone_is_stopped(gptme: Gptme) -> None:
    """With nobody to ask, the command does not run, whatever gptme's own list lets pass, and the model is told why; POST comes too."""
    precious = gptme.home / "precious"
    precious.mkdir()
    (precious / "only.txt").write_text("the only copy\n")
    ran = gptme.run(
        [
            shell(f"rm -fr {precious}"),
            block("tmux", f"new-session 'rm -fr {precious}'"),
            save("a.txt", "x"),
            DONE,
        ]
    )
    assert (precious / "only.txt").exists() and gptme.repo.read("a.txt") == "x\n"
    for number in (1, 2):
        answer = text_of(ran.asked[number][-1])
        assert "cannot be undone" in answer and "git safety allow --once" in answer, ran.out


def test_each_call_is_on_record(gptme: Gptme) -> None:
    """A read, which of a secret is refused with the reason, and calls that fail in whatever way go through PRE and POST; the audit
    log has them, and their end."""
    gptme.repo.write(".env", "TOKEN=1\n")
    broken = gptme.home / "broken.py"
    broken.write_text(
        "from gptme.tools.base import ToolSpec\n"
        "def execute(code, args, kwargs):\n"
        "    open('left.txt', 'w').write('half done')\n"
        "    raise RuntimeError('the tool broke')\n"
        "tool = ToolSpec('broken', 'raises', execute=execute, block_types=['broken'])\n"
    )
    replies = [block("read", "b.txt"), block("read .env"), save("a.txt/below", "x"), block("broken", "now"), shell("rm -fr ~"), DONE]
    ran = gptme.run(replies, "--tools", f"+read,+{broken}", "do it", "-", "/undo")
    events = [json.loads(line) for path in gptme.repo.state.rglob("audit.jsonl") for line in path.read_text().splitlines()]
    ends = [(event["tool"], event["status"]) for event in events if event["event"] == "tool.execute.post"]
    assert ends == [("read", "ok"), ("read", "error"), ("save", "ok"), ("broken", "error"), ("shell", "error")], ran.out
    assert "TOKEN=1" not in ran.out and "secret" in text_of(ran.asked[2][-1])
    assert "removed  left.txt" in ran.out and not gptme.repo.exists("left.txt")


@pytest.fixture
def talk(gptme: Gptme) -> Iterator[Callable[..., Terminal]]:
    """Starts gptme at a terminal, with a first prompt."""
    with ExitStack() as opened:

        def start(replies: Sequence[Reply], *words: str) -> Terminal:
            gptme.write_config(opened.enter_context(chat_server(answer=Script(replies))).base_url)
            args = [str(gptme.bin / "gptme"), "-m", "scripted/one", "--name", "talk", "--system", "short", *words]
            terminal = Terminal(args, gptme.repo.root, gptme.env, noise="· Auto-generated conversation name: [^\n]*\n")
            opened.callback(terminal.close)
            return terminal

        yield start


def test_a_person_is_asked_once(gptme: Gptme, talk: Callable[..., Terminal]) -> None:
    """Our question comes before gptme's; Enter means no; what was answered yes is not asked about again; what is not ours is
    gptme's to ask, and what a person saves while it asks stays theirs."""
    repo = gptme.repo
    precious = gptme.home / "precious.txt"
    precious.write_text("the only copy\n")
    terminal = talk(
        [shell(f"rm -f {precious}"), "So be it.", shell(f"rm -f {precious} && echo it-is-gone"), save("a.txt", "x"), "Done."],
        "do it",
    )
    terminal.wait_for("cannot be undone")
    terminal.wait_for("Run shell? [y/N/s/?]")
    terminal.line()
    terminal.wait_for("So be it.")
    assert precious.exists()
    terminal.wait_for("User")
    terminal.line("then do it anyway")
    terminal.wait_for("Run shell? [y/N/s/?]")
    terminal.line("y")
    terminal.wait_for("it-is-gone")
    assert not precious.exists()
    terminal.wait_for("Execute save? [Y/n")
    with repo.user():
        repo.append("a.txt", "saved while gptme asked\n")
    terminal.line("y")
    terminal.wait_for("Done.")
    terminal.wait_for("User")
    terminal.line("/undo")
    terminal.wait_for("Undid t2 and its ")
    terminal.wait_for("User")
    assert repo.read("a.txt").endswith("saved while gptme asked\n")
    assert terminal.screen.count("Execute shell?") == 0


def test_what_a_person_edits_is_judged_again(gptme: Gptme, talk: Callable[..., Terminal]) -> None:
    """A command that was harmless before it was edited in gptme's dialog goes through our guard as it is now; an edited file is
    undone as it was written."""
    precious = gptme.home / "precious.txt"
    precious.write_text("the only copy\n")
    editor = gptme.home / "editor.sh"
    editor.write_text(f"#!/bin/sh\nsed -i -e 's,.*harmless.*,rm -f {precious},' -e '/^-b/d' -e 's,^+words,other words,' \"$1\"\n")
    editor.chmod(0o755)
    gptme.env["EDITOR"] = str(editor)
    terminal = talk([shell("touch harmless"), "So be it.", save("b.txt", "words"), "Done."], "do it")
    terminal.wait_for("Execute shell? [Y/n")
    terminal.line("e")
    terminal.wait_for("cannot be undone")
    terminal.wait_for("Run shell? [y/N/s/?]")
    terminal.line("n")
    terminal.wait_for("So be it.")
    terminal.wait_for("User")
    assert precious.exists()
    terminal.line("write")
    for answer in ("e", "y"):
        terminal.wait_for("Execute save? [Y/n")
        terminal.line(answer)
    terminal.wait_for("Done.")
    terminal.wait_for("User")
    assert gptme.repo.read("b.txt") == "other words\n"
    terminal.line("/undo")
    terminal.wait_for("Undid t2 and its ")
    terminal.wait_for("User")
    assert gptme.repo.read("b.txt") == "b\n"


def test_an_interrupt_before_a_call_keeps_it_from_running(gptme: Gptme, talk: Callable[..., Terminal]) -> None:
    """Ctrl-C while we are still at work before a call: the tool does not run, and the model hears of it as of any interrupt."""
    started = gptme.home / "started"
    os.mkfifo(started)
    heard = os.open(started, os.O_RDWR)
    command = ["sh", "-c", f"echo > {started}; sleep 300"]
    gptme.settings(hooks={"PreToolUse": [{"command": command, "timeout_ms": 300_000}]})
    terminal = talk([save("a.txt", "x"), "I see."], "-y", "do it")
    terminal.wait_for("save a.txt")
    assert select.select([heard], [], [], 30)[0]
    os.close(heard)
    terminal.interrupt()
    terminal.wait_for("Interrupted by user")
    terminal.wait_for("I see.")
    terminal.wait_for("User")
    assert gptme.repo.read("a.txt").startswith("line 1")
    terminal.line("/exit")
    assert terminal.end() == 0


def test_a_turn_that_is_cut_off_is_not_committed(gptme: Gptme, talk: Callable[..., Terminal]) -> None:
    """Where the user breaks a turn off, what it did until then waits for ``/commit``."""
    gptme.settings(autocommit={"enabled": True})
    terminal = talk([save("b.txt", "y"), block("ipython", "print('no')")], "do it")
    for tool, answer in (("save", "y"), ("ipython", "n")):
        terminal.wait_for(f"Execute {tool}? [Y/n")
        terminal.line(answer)
    terminal.wait_for("declined")
    terminal.wait_for("User")
    assert gptme.repo.read("b.txt") == "y\n" and gptme.repo.git("log", "--format=%s") == "first"
    terminal.line("/commit the rest")
    terminal.wait_for("Committed")
    terminal.wait_for("User")
    assert gptme.repo.git("show", "--name-only", "--format=%s", "HEAD") == "the rest\n\nb.txt"


def test_what_no_snapshot_holds_is_taken_in_first(gptme: Gptme, talk: Callable[..., Terminal]) -> None:
    """``s`` at our question takes what would be lost into a snapshot, then runs the command; undo brings it back."""
    gptme.settings(snapshots={"max_file_mib": 1})
    whole = gptme.repo.write("large.bin", os.urandom(2 << 20)).read_bytes()
    terminal = talk([shell("rm large.bin && echo it-is-gone"), "Done."], "do it")
    terminal.wait_for("Run shell? [y/N/s/?]")
    terminal.line("s")
    terminal.wait_for("it-is-gone")
    terminal.wait_for("Done.")
    terminal.wait_for("User")
    assert not gptme.repo.exists("large.bin")
    terminal.line("/undo")
    terminal.wait_for("Undid t1 and its ")
    terminal.wait_for("User")
    assert gptme.repo.read_bytes("large.bin") == whole


def test_an_interrupt_at_our_question_is_a_no(gptme: Gptme, talk: Callable[..., Terminal]) -> None:
    """Ctrl-C there keeps the call from running, and is told as an interrupt, not as a fault of ours."""
    precious = gptme.home / "precious.txt"
    precious.write_text("the only copy\n")
    terminal = talk([shell(f"rm -f {precious}"), "I see."], "do it")
    terminal.wait_for("Run shell? [y/N/s/?]")
    terminal.line("\x03")
    terminal.wait_for("Interrupted by user")
    terminal.wait_for("User")
    assert precious.exists() and "failed" not in terminal.screen
