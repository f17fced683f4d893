"""``/undo`` in gptme: the files of the turn, and its messages."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from safety.adapters.embed.gptme.hooks import is_gptmes_own
from tests.adapters.gptme.conftest import DONE, Gptme, block, native, patch, save, shell


def test_undo_takes_back_what_any_tool_did(gptme: Gptme) -> None:
    """Edits by each tool, a shell's side effects, a commit and a reset are undone in a later run; the user's edits around them stay."""
    repo = gptme.repo
    repo.write("src/app.py", "print('app')\n\n\n# the user's own\n")
    repo.write("notes.txt", "never committed\n")
    repo.write(".env", "TOKEN=1\n", 0o600)
    repo.write(".gitattributes", "* text=auto\n")
    repo.write("dos.txt", "one\r\ntwo\r\n")
    repo.git("init", "-q", "inner")
    repo.write("inner/own.txt", "of the inner repository\n")
    repo.git("add", "-N", "notes.txt")
    before = repo.picture()
    outside = gptme.home / "elsewhere"
    outside.mkdir()
    ran = gptme.run(
        [
            save("new/file.txt", "new"),
            patch("a.txt", "line 2", "line two"),
            block("append b.txt", "more"),
            patch("src/app.py", "print('app')", "print('other')", "patch_many"),
            block("ipython", "import pathlib; pathlib.Path('src/lib/util.py').unlink()"),
            shell("rm -rf tool.sh && git add src/lib/util.py a.txt && git commit -qm 'of the agent'"),
            shell('python3 -c \'import os; os.unlink(".env"); open("dos.txt", "w").close(); os.chmod("b.txt", 0)\'; rm -r inner'),
            shell("git -C . reset --hard -q HEAD && echo gone"),
            shell(f"cd {outside}"),
            save("left.txt", "outside of the workspace"),
            DONE,
        ],
        name="one",
        env={"GIT_INDEX_FILE": str(repo.root / ".git/index"), "GIT_AUTHOR_NAME": "Dana"},
    )
    assert (outside / "left.txt").exists()
    assert repo.read("a.txt").count("line two") == 1 and repo.read("src/app.py") == "print('app')\n"
    assert "gone" in ran.told
    with repo.user():
        repo.append("a.txt", "the user, later\n")

    undone = gptme.run([], "/undo", name="one")

    assert not (outside / "left.txt").exists()
    assert "Undid t1 and its " in undone.out and '"do it"' in undone.out
    assert undone.said("user") == [] and undone.logged.count("git-safety: the user typed /undo. Undid t1") == 1
    assert repo.read("a.txt").endswith("line 9\nthe user, later\n") and "line two" not in repo.read("a.txt")
    repo.replace("a.txt", "the user, later\n", "")
    repo.assert_is(before)


def test_native_calls_are_undone_and_redone(gptme: Gptme) -> None:
    """Native tool calls, of which ids repeat, are calls like any other; redo brings the files and the messages back."""
    repo = gptme.repo
    before = repo.picture()
    patches = [{"path": "b.txt", "patch": "<<<<<<< ORIGINAL\nb\n=======\nB\n>>>>>>> UPDATED"}]
    ran = gptme.run(
        [
            native("save", path="a.txt", content="changed\n"),
            native("shell", command="rm -rf src"),
            native("patch_many", patches=patches),
            native("complete"),
            native("save", path="c.txt", content="second\n"),
            "Done.",
        ],
        *("--tool-format", "tool", "do it", "-", "and more", "-", "/undo t1", "-", "/redo", "-", "/undo t1 --files"),
    )
    assert "3 calls" in repo.must("log").out
    assert ran.out.count("Undid t1 and its 9 messages") == 1 and ran.out.count('Undid t1: "do it"') == 1, ran.out
    assert ran.said("user") == ["do it", "and more"]
    assert repo.read("c.txt") == "second\n"
    repo.remove("c.txt")
    repo.assert_is(before)


def test_what_gptme_prods_the_model_to_is_the_same_exchange(gptme: Gptme) -> None:
    """A turn that gptme made the model go on with after its end is one to the user, and undone as one."""
    before = gptme.repo.picture()
    gptme.run([save("a.txt", "x"), "Finished.", save("b.txt", "y"), DONE], name="prodded")
    ran = gptme.run([], "/undo", name="prodded")
    assert 'Undid t2, t1 and its 9 messages: "do it"' in ran.out, ran.out
    gptme.repo.assert_is(before)


def test_gptmes_prodding_is_known_by_its_texts(gptme: Gptme) -> None:
    """Each that gptme has is known, and nothing else that stands in the same tag."""
    (source,) = gptme.bin.parent.glob("lib/python*/site-packages/gptme/tools/complete.py")
    said = [text for text in _texts(ast.parse(source.read_text())) if text.startswith("<system>") and text.endswith("</system>")]
    assert len(said) == 4 and all(map(is_gptmes_own, said)), said
    assert not any(map(is_gptmes_own, ("<system> I want b", "<system>No tool call detected.</system>", f"{said[0]} and more")))


def _texts(tree: ast.AST) -> Iterator[str]:
    """The texts that a program's messages are made of, with a word for each value in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "value" for part in node.values)


def test_a_prompt_of_the_users_own_in_gptmes_tag(gptme: Gptme) -> None:
    """A prompt that begins as gptme's prodding does is the user's, and a turn of its own."""
    replies = [save("a.txt", "x"), DONE, save("b.txt", "y"), DONE]
    ran = gptme.run(replies, "keep me", "-", "<system> I want b", "-", "/undo")
    assert "Undid t2 and its 5 messages" in ran.out, ran.out
    assert ran.said("user") == ["keep me"] and gptme.repo.read("a.txt") == "x\n" and gptme.repo.read("b.txt") == "b\n"


def test_redo_puts_messages_where_they_stood(gptme: Gptme) -> None:
    """Whatever the order in which turns are undone and redone, the conversation is as it was said."""
    said = ["first", "second", "third"]
    replies = [reply for name in said for reply in (save(f"{name}.txt", name), DONE)]
    prompts = ["first", "-", "second", "-", "third"]
    for before, turns in ((0, (1, 2)), (3, (2, 3)), (6, (3, 1))):
        undos = [word for verb in ("undo", "redo") for turn in turns for word in ("-", f"/{verb} t{before + turn}")]
        ran = gptme.run(replies, *prompts, *undos)
        assert ran.out.count("Redid") == 2 and ran.said("user") == said, ran.out
        for name in said:
            gptme.repo.remove(f"{name}.txt")


def test_undo_removes_no_message_too_many(gptme: Gptme) -> None:
    """Each of the turn's messages is taken out, hidden ones too, and no other; ``--messages`` and ``--files`` do one of the two."""
    repo = gptme.repo
    ran = gptme.run(["Hello.", save("a.txt", "x"), DONE], "hello", "-", "change it", "-", "/undo")
    assert "Undid t2 and its 5 messages" in ran.out, ran.out
    assert ran.said("user")[0] == "hello" and "change it" not in ran.logged and "/undo" not in ran.said("user")
    assert "Hello." in ran.logged and repo.read("a.txt").startswith("line 1")

    ran = gptme.run([save("a.txt", "x"), DONE], "change it", "-", "/undo --files", name="files")
    assert ran.said("user") == ["change it"] and repo.read("a.txt").startswith("line 1")
    ran = gptme.run([save("a.txt", "x"), DONE], "change it", "-", "/undo --messages", "-", "/undo 2 3", "-", "/undo 2", name="messages")
    assert ran.said("user") == [] and repo.read("a.txt") == "x\n"
    assert ran.out.count("it is typed /undo [tN] [--files | --messages]") == 2


def test_undo_takes_out_the_messages_of_its_own_turn_only(gptme: Gptme) -> None:
    """A turn whose messages are gone already, and one of another conversation, take no others with them; nor does it fail where there
    are none at all."""
    repo = gptme.repo
    gptme.run([save("a.txt", "one"), DONE, save("b.txt", "two"), DONE], "first", "-", "second", "-", "/undo", name="one")
    ran = gptme.run(["Hello.", DONE], "third", "-", "/undo t2", name="one")
    assert ran.said("user") == ["first", "third"] and "and its" not in ran.out, ran.out
    ran = gptme.run(["Hello.", DONE], "of another", "-", "/undo t1", name="other")
    assert ran.said("user") == ["of another"] and "Undid t1: " in ran.out, ran.out
    ran = gptme.run([], "/undo t1", "-", "/undo --messages", name="empty")
    assert "Nothing undone of t1: " in ran.out and "there is no such turn" in ran.out and "failed" not in ran.out, ran.out
    assert repo.read("a.txt").startswith("line 1")


def test_undo_in_a_fork_says_that_messages_stay(gptme: Gptme) -> None:
    """What was done before a fork was another conversation's turn: its files are taken back, and that its messages stay is told."""
    ran = gptme.run([save("a.txt", "one"), DONE], "first", "-", "/fork forked", "-", "/undo t1", name="forked-from")
    assert "The messages of t1 stay: it was a turn of another conversation, forked-from." in ran.out, ran.out
    assert gptme.repo.read("a.txt").startswith("line 1")
    assert [one["content"] for one in gptme.read_log("forked") if one["role"] == "user"] == ["first"]


def test_undo_of_what_the_user_changed_since_is_told_once(gptme: Gptme) -> None:
    """Where each file is kept, the turn is undone once, and the model is told once."""
    repo = gptme.repo
    gptme.run([save("b.txt", "agent"), DONE], name="kept")
    with repo.user():
        repo.write("b.txt", "the user's\n")
    ran = gptme.run([], "/undo", name="kept")
    assert "Undid t1 and its 5 messages" in ran.out and ran.out.count("kept  b.txt") == 1, ran.out
    assert ran.logged.count("the user typed /undo") == 1 and repo.read("b.txt") == "the user's\n"


def test_undo_leaves_what_gptme_pinned(gptme: Gptme) -> None:
    """The prompt that gptme makes anew when a tool is loaded stands after an exchange and is none of it; nor is what was told of an
    undo. Redo puts back the exchange alone."""
    ran = gptme.run(
        [save("a.txt", "x"), DONE, block("append b.txt", "more"), DONE],
        *("--tools", "save", "one", "-", "/tools load append", "-", "two", "-", "/undo", "-", "/undo", "-", "/redo", "-", "/undo"),
    )
    assert "Undid t2 and its 5 messages" in ran.out and ran.out.count("Undid t1 and its 5 messages") == 2, ran.out
    assert [message["content"][:9] for message in ran.log if message["role"] != "system"] == []
    assert ran.logged.count("You are gptme") == 2 and ran.logged.count("git-safety: the user typed") == 4
    assert gptme.repo.read("b.txt") == "b\n" and gptme.repo.read("a.txt").startswith("line 1")
