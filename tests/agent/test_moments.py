"""Each of the 23 moments is triggered by the loop for real, with what its row says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from safety.agent import messages as m
from safety.agent.scripted import Say, Scripted
from safety.hooks.events import EVENTS, HookType
from safety.session import Call
from tests.agent.kit import call, listen_everywhere, loop, opened, play
from tests.support.environment import isolated
from tests.support.repo import NINE_LINES, RepoBuilder, standard

PATCH = "<<<<<<<\nline 2\n=======\nline two\n>>>>>>>\n"
EDIT = {"path": "a.txt", "old": "line 1\n", "new": "1\n"}
LINES = (
    Say("I write.\nThen I look.", (("write", {"path": "new.txt", "content": "new\n"}), ("edit", EDIT))),
    call("patch", path="a.txt", patch=PATCH),
    Say("", (("shell", {"command": "cd src && seq 3000"}), ("ask_user", {"question": "Which colour?"}))),
    *(call("shell", command="true") for _ in range(4)),
    Say("Done."),
)  # fmt: skip


class Cut(Scripted):
    """A model that is interrupted while it speaks."""

    def reply(self, messages: Sequence[m.Json], tools: Sequence[m.Json]) -> Iterator[str | m.Reply]:
        if messages[-1]["content"] == "stop me":
            yield "half a "
            raise KeyboardInterrupt
        yield from super().reply(messages, tools)


Check = Callable[[Any], bool]
FIRST: dict[HookType, dict[str, Check]] = {
    HookType.SESSION_START: {"workspace": lambda value: value.name == "work"},
    HookType.TURN_PRE: {"prompt": lambda value: value == "do it"},
    HookType.STEP_PRE: {"manager": lambda value: [each["role"] for each in value.journal.messages] == ["user"]},
    HookType.STEP_POST: {"manager": lambda value: value.journal.messages[-1]["role"] == "tool"},
    HookType.MESSAGE_TRANSFORM: {"message": lambda value: (value.role, value.content) == ("user", "do it")},
    HookType.GENERATION_PRE: {
        "messages": lambda value: [each.role for each in value] == ["system", "user"],
        "model": lambda value: value == "script",
    },
    HookType.GENERATION_CHUNK: {"chunk": lambda value: value == "I write.\n"},
    HookType.GENERATION_POST: {
        "message": lambda value: value.content == "I write.\nThen I look." and value.metadata["usage"].prompt > 0
    },
    HookType.TOOL_EXECUTE_PRE: {"data": lambda value: value.tool_use.tool == "write" and value.workspace.name == "work"},
    HookType.TOOL_CONFIRM: {"tool_use": lambda value: value.input["path"] == "new.txt"},
    HookType.FILE_SAVE_PRE: {"path": lambda value: value.name == "new.txt", "content": lambda value: value == "new\n"},
    HookType.FILE_SAVE_POST: {"path": lambda value: value.read_text() == "new\n", "created": lambda value: value is True},
    HookType.TOOL_EXECUTE_POST: {"data": lambda value: value.result_msgs[0].content == "Created new.txt."},
    HookType.TOOL_TRANSFORM: {
        "message": lambda value: value.content == "Created new.txt.",
        "tool_use": lambda value: isinstance(value, Call) and value.tool == "write",
    },
    HookType.FILE_PATCH_PRE: {"path": lambda value: value.name == "a.txt", "patch": lambda value: "line 1" in value},
    HookType.FILE_PATCH_POST: {"path": lambda value: value.name == "a.txt", "patch": lambda value: "line 1" in value},
    HookType.CWD_CHANGED: {
        "old_cwd": lambda value: Path(value).name == "work",
        "new_cwd": lambda value: Path(value).name == "src",
    },
    HookType.ELICIT: {"request": lambda value: value.prompt == "Which colour?"},
    HookType.CACHE_INVALIDATED: {
        "reason": lambda value: value == "compact",
        "tokens_before": lambda value: value > 2000,
        "tokens_after": lambda value: value < 2000,
    },
    HookType.TURN_POST: {},
    HookType.LOOP_CONTINUE: {"prompt_queue": lambda value: value == ()},
    HookType.GENERATION_INTERRUPT: {"manager": lambda value: value.journal.messages[-1]["content"] == "stop me"},
    HookType.SESSION_END: {"logdir": lambda value: (value / "conversation.jsonl").exists()},
}


Handed = dict[HookType, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> tuple[Handed, dict[tuple[HookType, str], object]]:
    """One conversation with a handler at each moment: what each was handed, and of the first what did not fit, as it was then."""
    folder = tmp_path_factory.mktemp("moments")
    repo = standard(RepoBuilder(folder / "work", isolated(folder)))
    kept: Handed = {}
    wrong: dict[tuple[HookType, str], object] = {}

    def check(moment: HookType, given: dict[str, Any]) -> None:
        if len(kept.setdefault(moment, [])) == 0:
            wrong.update({(moment, name): given.get(name) for name, fits in FIRST[moment].items() if not fits(given.get(name))})
        kept[moment].append(given)

    session = opened(repo)
    listen_everywhere(session, check)
    list(loop(repo, session=session, model=Cut(LINES), limits=m.Limits(context_tokens=2000)).run(("do it", "stop me")))
    return kept, wrong


def test_the_table_is_whole() -> None:
    """There is a line for each moment."""
    assert set(FIRST) == set(HookType)


@pytest.mark.parametrize("moment", HookType, ids=lambda moment: moment.value)
def test_each_moment_is_triggered(moment: HookType, story: tuple[Handed, dict[tuple[HookType, str], object]]) -> None:
    """A handler is called, and is handed what the moment promises: by the right names, with the right values."""
    kept, wrong = story
    assert moment in kept, "never triggered"
    assert {name: value for (at, name), value in wrong.items() if at is moment} == {}
    assert set(kept[moment][0]) <= {*EVENTS[moment].positional, *EVENTS[moment].keywords}


def test_a_user_message_at_loop_continue_goes_on(story: tuple[Handed, object]) -> None:
    """What the handler said is a turn of its own."""
    assert [each["prompt"] for each in story[0][HookType.TURN_PRE]] == ["do it", "and now the rest", "stop me"]


SCRIPT = (
    'import json, sys\nevent = json.load(sys.stdin)\nwith open("../events", "a") as file: file.write(event["event"] + "\\n")\n'
)


def test_four_commands_in_the_settings(repo: RepoBuilder) -> None:
    """The four events of the four-event style call a command each, at their moments, in their order."""
    (repo.root.parent / "note.py").write_text(SCRIPT)
    folder = Path(repo.env["XDG_CONFIG_HOME"]) / "git-safety"
    folder.mkdir()
    names = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    (folder / "settings.json").write_text(
        json.dumps({"hooks": {name: [{"command": ["python3", "../note.py"]}] for name in names}})
    )
    play(repo, call("write", path="x", content="x\n"), Say("Done."))
    told = (repo.root.parent / "events").read_text().split()
    assert told == ["turn.pre", "tool.execute.pre", "tool.execute.post", "turn.post"]
    repo.undo()
    assert not repo.exists("x") and repo.read("a.txt") == NINE_LINES
