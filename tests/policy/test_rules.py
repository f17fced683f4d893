"""Effects against coverage: what is allowed, asked, refused, and in which words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from safety.policy.rules import NO_RULES, UserRule, UserRules, analysis_failed, judge
from safety.policy.values import TREE_AND_REFS, UNKNOWN, Answer, CallFacts, Coverage, Effect, Question, Thing

FACTS = CallFacts("/w/repo", "/home/u", "/w/repo", "/w/repo", "/w/repo/.git")
GOOD = Coverage("s1", TREE_AND_REFS)
FAILED = Coverage(why_not="disk full")
LOST = Question("lost", "/w/repo/data")
REMOVE = Effect("path.remove", "/w/repo/data", "ask", question=LOST, command="rm -rf data")
REF = Effect(
    "ref.delete",
    "topic",
    "ask",
    pieces=("refs",),
    question=Question("merged", "topic", ("/w/repo",)),
    command="git branch -D topic",
)
FORCE = Effect("remote.overwrite", "main on origin", "deny", instead="git push --force-with-lease", command="git push -f")


def things(*named: tuple[str, str]) -> Answer:
    return Answer(things=tuple(Thing(f"/w/repo/{path}", sort) for path, sort in named))


@pytest.mark.parametrize(
    ("answer", "coverage", "action"),
    [
        (things(("data/a", "tracked"), ("data/b", "untracked")), GOOD, "allow"),
        (things(("data/a", "tracked"), ("data/.env", "ignored")), GOOD, "ask"),
        (things(("data/raw.bin", "too-large")), GOOD, "ask"),
        (things(("node_modules", "ignored"), ("x/debug.log", "ignored")), GOOD, "allow"),
        (things(("build", "tracked")), FAILED, "ask"),
        (things(("data/a", "tracked")), FAILED, "ask"),
        (things(("data/a", "tracked")), Coverage("s1", TREE_AND_REFS, left_out=("/w/repo/data/a",)), "ask"),
        (things(("data/a", "tracked")), Coverage("s1", TREE_AND_REFS, left_out=("/w/repo/dat",)), "allow"),
        (things(("data/.env", "ignored")), Coverage("s1", TREE_AND_REFS | {"ignored"}), "allow"),
        (Answer(nothing=True), GOOD, "allow"),
        (UNKNOWN, GOOD, "ask"),
        (None, GOOD, "ask"),
    ],
)
def test_the_snapshot_decides_about_files(answer: Answer | None, coverage: Coverage, action: str) -> None:
    """What a snapshot holds may go; what it left out, what nobody could tell and what a failed one would have held is asked about."""
    verdict = judge([REMOVE], {} if answer is None else {LOST: answer}, coverage, facts=FACTS)
    assert verdict.action == action
    assert verdict.recoverable == (action == "allow")


@pytest.mark.parametrize(
    ("effect", "answer", "coverage", "action"),
    [
        (REF, None, GOOD, "allow"),
        (REF, None, FAILED, "ask"),
        (REF, Answer(nothing=True), FAILED, "allow"),
        (FORCE, None, GOOD, "deny"),
        (Effect("network.contact", "x", "allow"), None, FAILED, "allow"),
        (
            Effect("ref.delete", "topic", pieces=("refs",), question=Question("refs", "/w/x"), ours=False),
            Answer(value="ours"),
            GOOD,
            "allow",
        ),
        (
            Effect("ref.delete", "topic", pieces=("refs",), question=Question("refs", "/w/x"), ours=False),
            Answer(value="other"),
            GOOD,
            "ask",
        ),
        (Effect("config.write", "a.b", pieces=("config",)), None, GOOD, "ask"),
        (Effect("config.write", "a.b", pieces=("config",)), None, Coverage("s1", TREE_AND_REFS | {"config"}), "allow"),
        (Effect("remote.overwrite", "x", question=Question("branch", "/w/repo")), Answer(value="main"), GOOD, "ask"),
        (Effect("remote.overwrite", "x", question=Question("branch", "/w/repo")), Answer(value="my-topic"), GOOD, "allow"),
    ],
)
def test_pieces_and_other_questions(effect: Effect, answer: Answer | None, coverage: Coverage, action: str) -> None:
    """Refs, configuration and what is not on this machine."""
    answers = {effect.question: answer} if effect.question and answer else {}
    assert judge([effect], answers, coverage, facts=FACTS).action == action


def test_a_verdict_tells_loss_holder_and_way_out() -> None:
    """The words that a question or a denial is made of."""
    found = things(("data/a", "tracked"), ("data/raw.bin", "too-large"))
    verdict = judge([REMOVE], {LOST: found}, GOOD, facts=FACTS, text="rm -rf data")
    assert (verdict.rule, verdict.loses, verdict.holds) == ("path.remove", "/w/repo/data/raw.bin", "s1")
    assert verdict.instead == "git safety snapshot data/raw.bin && rm -rf data"
    assert verdict.reason == "the snapshot does not hold it"
    assert judge([REMOVE], {LOST: found}, FAILED, facts=FACTS).reason == "no snapshot was taken: disk full"
    denied = judge([REMOVE, FORCE], {LOST: found}, GOOD, facts=FACTS)
    assert (denied.action, denied.rule, denied.instead) == ("deny", "remote.overwrite", "")
    assert denied.loses == "commits on main on origin that may be nowhere on this machine; /w/repo/data/raw.bin"
    assert judge([FORCE], {}, GOOD, facts=FACTS).instead == "git push --force-with-lease"


@pytest.mark.parametrize(
    ("text", "cwd", "instead"),
    [
        ("rm -rf data", "/w/repo", "git safety snapshot data/raw.bin 'data/a b' && rm -rf data"),
        ("cd /w/repo && rm -rf data", "/w/repo/data", "git safety snapshot raw.bin 'a b' && cd /w/repo && rm -rf data"),
        ("make; rm -rf data", "/w/repo", "git safety snapshot data/raw.bin 'data/a b', then the same again"),
        ("", "/w/repo", "git safety snapshot data/raw.bin 'data/a b', then the same again"),
    ],
)
def test_the_way_out_can_be_typed_as_it_stands(text: str, cwd: str, instead: str) -> None:
    """Files as one names them in the folder of the call, quoted, before the very text that was stopped."""
    found = things(("data/raw.bin", "too-large"), ("data/a b", "too-large"))
    facts = replace(FACTS, cwd=cwd)
    assert judge([REMOVE], {LOST: found}, GOOD, facts=facts, text=text).instead == instead


@pytest.mark.parametrize(
    ("other", "rules", "coverage"),
    [
        (Effect("path.remove", "/home/u", "deny", detail="home", command="rm -rf /home/u"), NO_RULES, GOOD),
        (Effect("network.send", "x", "ask"), NO_RULES, GOOD),
        (Effect("data.destroy", "t", "ask", instead="make a dump of it first"), NO_RULES, GOOD),
        (Effect("path.mode", "x", "allow"), UserRules((UserRule("deny", effect="path.remove"),)), GOOD),
        (Effect("path.mode", "x", "allow"), NO_RULES, FAILED),
    ],
)
def test_no_way_out_where_part_of_it_would_still_be_stopped(other: Effect, rules: UserRules, coverage: Coverage) -> None:
    """What would be typed in its place is stopped again, or worse: carried out by who trusts us."""
    found = things(("data/raw.bin", "too-large"))
    for effects in ([REMOVE, other], [other, REMOVE]):
        assert judge(effects, {LOST: found}, coverage, rules, facts=FACTS, text="x").instead == ""


def test_all_losses_are_named_the_worst_first() -> None:
    """Not only those of the worst effect; beyond five they are counted."""
    outside = [Effect("path.remove", f"/o/{number}", "ask") for number in range(6)]
    assert judge([*outside, FORCE], {}, GOOD, facts=FACTS).loses == (
        "commits on main on origin that may be nowhere on this machine; /o/0; /o/1; /o/2; /o/3; and 2 more"
    )


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        (UserRule("allow", command=("git", "push")), "allow"),
        (UserRule("allow", command=("git", "push"), project=True), "deny"),
        (UserRule("allow", effect="remote.*"), "allow"),
        (UserRule("ask", effect="remote.*"), "deny"),
        (UserRule("allow", command=("git", "pull")), "deny"),
        (UserRule("allow", path="/w/repo"), "deny"),
    ],
)
def test_a_user_may_loosen_and_a_project_only_tighten(rule: UserRule, action: str) -> None:
    """A rule meets the effects of the commands, paths and kinds that it names."""
    assert judge([FORCE], {}, GOOD, UserRules((rule,)), facts=FACTS).action == action


def test_rules_tighten_what_would_be_allowed() -> None:
    """By path, by kind, and by command alone, also one without any effect; deny beats allow."""
    held = {LOST: things(("data/a", "tracked"))}
    assert (
        judge([REMOVE], held, GOOD, UserRules((UserRule("deny", path="/w/repo/data", project=True),)), facts=FACTS).action
        == "deny"
    )
    assert judge([REMOVE], held, GOOD, UserRules((UserRule("ask", effect="path.*"),)), facts=FACTS).action == "ask"
    rules = UserRules((UserRule("deny", command=("npm", "install")), UserRule("allow", command=("npm",))))
    assert judge([], {}, GOOD, rules, commands=[("npm", "install", "x")]).action == "deny"
    assert judge([], {}, GOOD, rules, commands=[("npm", "test")]).action == "allow"


def test_nothing_allows_what_takes_the_guard_away() -> None:
    """A user's rule may not open the door for the agent to the guard's own."""
    own = Effect("self.defense", "/w/repo/.claude/settings.json", command="rm .claude/settings.json")
    assert (
        judge([own], {}, GOOD, UserRules((UserRule("allow", command=("rm",)), UserRule("allow", effect="*"))), facts=FACTS).action
        == "ask"
    )


@pytest.mark.parametrize(
    ("effect", "plain", "tainted"),
    [
        (Effect("network.contact", "x", "allow"), "allow", "ask"),
        (Effect("secret.leak", ".env", "ask"), "ask", "deny"),
        (Effect("self.defense", "x", "ask"), "ask", "deny"),
        (Effect("path.remove", "x", "ask"), "ask", "ask"),
    ],
)
def test_foreign_text_raises_network_and_self_defence(effect: Effect, plain: str, tainted: str) -> None:
    """One step, for the rest of the turn."""
    assert judge([effect], {}, GOOD).action == plain
    assert judge([effect], {}, GOOD, NO_RULES, taint="a web page").action == tainted


def test_a_failed_analysis_asks_only_with_a_danger_word() -> None:
    """Otherwise each failure of ours would stop the agent."""
    assert analysis_failed((), "x").action == "allow"
    assert analysis_failed(("rm -rf",), "x").action == "ask"
