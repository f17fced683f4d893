"""The sample bundles: each shows its effect, none is on unless named, none is long."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from safety.agent import bundles
from safety.agent import messages as m
from safety.agent.bundles.log import log_file
from safety.agent.scripted import Say, Scripted
from safety.faults import SafetyError
from tests.agent.kit import call, journal, loop, opened, play, results
from tests.support.repo import NINE_LINES, RepoBuilder

FOLDER = Path(bundles.__file__).parent


@pytest.mark.parametrize("name", bundles.SAMPLES)
def test_a_sample_is_short_and_off(name: str, repo: RepoBuilder) -> None:
    """Under 60 lines; no hook of it is in a session that does not name it, all of them are in one that does."""
    assert len((FOLDER / f"{name}.py").read_text().splitlines()) < 60
    session = opened(repo)
    own = [hook.name for hook in session.hooks.get_hooks() if hook.name.startswith(f"{name}.")]
    assert own == []
    bundles.switch_on(session, [name])
    assert [hook.name for hook in session.hooks.get_hooks() if hook.name.startswith(f"{name}.")]


def test_every_sample_is_named() -> None:
    """The files are those of the table."""
    assert {file.stem for file in FOLDER.glob("*.py")} - {"__init__"} == set(bundles.SAMPLES)


def test_an_unknown_name_is_refused(repo: RepoBuilder) -> None:
    """With those that there are."""
    with pytest.raises(SafetyError, match="permission"):
        loop(repo, bundles=("permissions",))


def test_permission(repo: RepoBuilder) -> None:
    """A push is refused with its reason, an install that nobody answers for does not run, the rest does."""
    lines = (
        call("shell", command="git push origin main"),
        call("shell", command="echo ran >ran; npm install x"),
        call("write", path="a.txt", content="x\n"),
    )
    events = play(repo, *lines, Say("Done."), bundles=("permission",))
    assert results(events) == [("shell", "denied"), ("shell", "denied"), ("write", "ok")]
    texts = [event.text for event in events if isinstance(event, m.Ended)]
    assert "Pushing is done by a person." in texts[0] and "It installs something." in texts[1]
    assert not repo.exists("ran")


def test_permission_knows_other_spellings(repo: RepoBuilder) -> None:
    """A push with options before it is one, a commit that speaks of a push is none; an edit of secrets is asked about as a write is."""
    lines = (
        call("shell", command="git -C . -c a.b=c push"),
        call("edit", path="sub/.env", old="x", new="y"),
        call("shell", command="git commit -qm push"),
    )
    events = play(repo, *lines, Say("Done."), bundles=("permission",))
    assert [status for _, status in results(events)] == ["denied", "denied", "ok"]


def test_log(repo: RepoBuilder) -> None:
    """A line for each call, failed ones too, readable by the owner alone."""
    session = opened(repo)
    play(repo, call("read", path="a.txt"), call("read", path="none"), Say("Done."), session=session, bundles=("log",))
    lines = [json.loads(line) for line in log_file(session).read_text().splitlines()]
    assert [(line["tool"], line["input"], line["error"] is None) for line in lines] == [
        ("read", {"path": "a.txt"}, True),
        ("read", {"path": "none"}, False),
    ]
    assert lines[0]["characters"] == len(NINE_LINES)
    assert log_file(session).stat().st_mode & 0o777 == 0o600


def test_large_output(repo: RepoBuilder) -> None:
    """The model gets both ends and where the whole lies; the file holds all of it; small output stays as it is."""
    events = play(
        repo, call("shell", command="seq 9000"), call("shell", command="seq 3"), Say("Done."), bundles=("large_output",)
    )
    large, small = [event.text for event in events if isinstance(event, m.Ended)]
    assert len(large) < 5_000 and large.startswith("1\n2\n") and large.endswith("9000\n")
    file = Path(large.partition(" are in ")[2].partition(")")[0])
    assert file.read_text() == "".join(f"{number}\n" for number in range(1, 9001))
    assert file.stat().st_mode & 0o777 == 0o600
    assert small == "1\n2\n3\n"


def test_context_inject(repo: RepoBuilder) -> None:
    """The model knows the branch and what is not committed before it asks."""
    repo.write("b.txt", "mine\n")
    play(repo, bundles=("context_inject",))
    (told,) = [each["content"] for each in journal(repo).messages if each["role"] == "system"]
    assert "## main" in told and " M b.txt" in told


def test_summary(repo: RepoBuilder) -> None:
    """The user hears what the turn changed; a turn that changed nothing ends in silence."""
    events = play(repo, call("shell", command="echo x >a.txt; rm b.txt"), Say("Done."), bundles=("summary",))
    assert m.Told("t1: 1 changed, 1 removed. Take it back: /undo") in events
    events = play(repo, Say(""), Say(""), call("shell", command="truncate -s 40M big"), Say("Done."), bundles=("summary",))
    assert m.Told("t2: 1 not covered. It cannot be taken back") in events
    again = (Say(""), Say(""), call("read", path="a.txt"), Say("Done."))
    assert not [event for event in play(repo, *again, bundles=("summary",)) if isinstance(event, m.Told)]


def test_cost_awareness(repo: RepoBuilder) -> None:
    """Past a step of tokens the user hears it, with the money, and the model before its next reply."""
    model = Scripted((Say("", (("shell", {"command": "seq 30000"}),) * 2), call("shell", command="true"), Say("Done.")))
    events = list(loop(repo, model=model, bundles=("cost_awareness",), prices=m.Prices(10, 1, 10)).run(["do it"]))
    (told,) = [event.text for event in events if isinstance(event, m.Told)]
    total = [event.total for event in events if isinstance(event, m.Replied)][1]
    cost = (total.prompt - total.cached) * 1e-5 + total.cached * 1e-6 + total.completion * 1e-5
    assert told == f"{total.prompt + total.completion} tokens so far, {total.cached} of them cached, about {cost:.2f}"
    assert ["over 50000 tokens" in str(request) for request in model.asked] == [False, False, True]


def test_cache_awareness(repo: RepoBuilder) -> None:
    """A shortened context is said to the model; a large request without a cached part to the user."""
    model = Scripted([call("shell", command="seq 9000") for _ in range(7)])
    events = play(repo, model=model, bundles=("cache_awareness",), limits=m.Limits(context_tokens=60_000))
    assert any("Your context was shortened (compact" in each["content"] for each in model.asked[-1])
    told = [event.text for event in events if isinstance(event, m.Told)]
    assert any("tokens of this request were cached" in text for text in told)


def test_active_context_of_much_text(repo: RepoBuilder) -> None:
    """A long word costs no time, and a file that is cut within a character is shown."""
    repo.write("b.txt", "x" + "\N{LATIN SMALL LETTER E WITH ACUTE}" * 3000)
    model = Scripted((call("shell", command="head -c 190000 /dev/zero | tr '\\0' x; echo; echo b.txt"), Say("Done.")))
    list(loop(repo, model=model, bundles=("active_context",)).run(["look"]))
    assert "b.txt:\nx\N{LATIN SMALL LETTER E WITH ACUTE}" in model.asked[1][-1]["content"]


def test_active_context(repo: RepoBuilder) -> None:
    """A file that was named goes along as it is now, in this request only; what lies outside or hidden does not."""
    repo.write(".env", "KEY=1\n")
    model = Scripted((call("edit", path="b.txt", old="b", new="bb"), Say("Done.")))
    list(loop(repo, model=model, bundles=("active_context",)).run(["look at b.txt, .env and ../home/.gitconfig"]))
    assert model.asked[0][-1]["content"].endswith("b.txt:\nb\n") and model.asked[1][-1]["content"].endswith("b.txt:\nbb\n")
    assert "KEY=1" not in str(model.asked) and "Dana" not in str(model.asked)
    assert "as they are now" not in str(journal(repo).messages)
