"""The examples of the documentation do what they show.

A fenced ``console`` block below ``<!-- run: NAME -->`` is run: lines after ``$ `` by bash, all blocks of one NAME in a file one
after the other in one empty folder. What follows a command is its whole output; ``...`` stands for anything, and alone on a line
for any number of lines. With ``<!-- run: NAME whole -->`` only the first line is a command. A fenced block below
``<!-- file: NAME PATH -->`` is written to that path (from that folder, ``~/`` is the home) when the story comes to it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.environment import isolated

PROJECT = Path(__file__).resolve().parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
_BLOCK = re.compile(
    r"<!-- run: (?P<name>[\w-]+)(?P<whole> whole)? -->\n+```console\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_FILE = re.compile(r"<!-- file: (?P<name>[\w-]+) (?P<path>\S+) -->\n+```\w*\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(#[^)]*)?\)")


@dataclass(frozen=True)
class Example:
    """One command and the output that the page shows for it."""

    command: str
    shown: str


@dataclass(frozen=True)
class File:
    """A file that the page shows."""

    path: str
    text: str


def examples(page: Path) -> dict[str, list[Example | File]]:
    """The page's examples by the name of their story."""
    text = page.read_text()
    found: dict[str, list[Example | File]] = {}
    for block in sorted((*_BLOCK.finditer(text), *_FILE.finditer(text)), key=re.Match.start):
        steps = found.setdefault(block["name"], [])
        if block.re is _FILE:
            steps.append(File(block["path"], block["text"]))
        else:
            steps.extend(_commands(block["text"], bool(block["whole"])))
    return found


def _commands(text: str, whole: bool) -> Iterator[Example]:
    for part in re.split(r"^\$ ", text, maxsplit=int(whole), flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield Example(command, shown)


STORIES = [(page, name) for page in PAGES for name in examples(page)]


@pytest.mark.parametrize(("page", "name"), STORIES, ids=lambda value: value.name if isinstance(value, Path) else value)
def test_examples_do_what_they_show(page: Path, name: str, tmp_path: Path) -> None:
    """Every command gives the output that stands under it."""
    env = isolated(tmp_path)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    script = bin_folder / "git-safety"
    env["PYTHONPATH"] = str(PROJECT)  # examples in Python import the package
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{PROJECT}" exec "{sys.executable}" -m safety.terminal "$@"\n')
    script.chmod(0o755)
    env |= {"PATH": f"{bin_folder}:{env['PATH']}", "PYTHONPATH": str(PROJECT)}
    env["PYTEST_PLUGINS"] = "safety.adapters.embed.pytest_plugin"  # as an installed one announces it
    folder = tmp_path / "project"
    folder.mkdir()
    for example in examples(page)[name]:
        if isinstance(example, File):
            file = folder / example.path.replace("~", env["HOME"])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(example.text)
            continue
        done = subprocess.run(
            ["bash", "-c", example.command],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = f"$ {example.command}\n{done.stdout}\n-- but {page.name} shows --\n{example.shown}"
        assert matches(example.shown, done.stdout), said


def matches(shown: str, output: str) -> bool:
    """Whether the output is what was shown, ``...`` standing for anything."""
    parts = []
    for line in shown.splitlines():
        parts.append("(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n")
    return re.fullmatch("".join(parts), output) is not None


def test_a_wrong_example_would_be_seen() -> None:
    """The comparison is of whole lines and of all of them."""
    assert matches("a\n...\nc ... e\n", "a\nb\nb\nc d e\n")
    assert not matches("a\n", "a\nb\n")
    assert not matches("a\n...\n", "b\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file that is there."""
    for link in _LINK.finditer(page.read_text()):
        assert (page.parent / link[1]).exists(), link[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_only_what_exists(page: Path) -> None:
    """Every `git safety VERB` on a page is a verb, and every option shown with it is known."""
    from safety.terminal.arguments import parser
    from safety.terminal.verbs import BY_NAME

    for verb, rest in re.findall(r"git safety ([a-z]+)\b([^`\n#]*)", page.read_text()):
        assert verb in BY_NAME, f"git safety {verb}"
        known = {option for action in parser(BY_NAME[verb])._actions for option in action.option_strings}
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest.partition(" -- ")[0]):
            assert option in known, f"git safety {verb} {option}"


def test_every_topic_is_a_real_setting() -> None:
    """The settings that the pages name are those that are read."""
    from safety.runtime.config import Settings

    names = {
        name
        for page in PAGES
        for name in re.findall(
            r"`((?:snapshots|store|run|ui|gate|autocommit|trust(?!\.json)|agents_md|screening|watch|daemon)\.[a-z_]+)`",
            page.read_text(),
        )
    }
    assert {name.replace(".", "_") for name in names} <= set(Settings.__dataclass_fields__)
