"""Each status, with both runners ([gate] A7), and what it means for the commit and the model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.gate.conftest import GateKit, ids, tags

NO_BAD = '{} for f in "$@"; do grep -n BAD "$f" /dev/null && rc=1; done; exit ${rc:-0}'
STRIP = '{} for f in "$@"; do grep -q " $" "$f" && { sed -i "s/ *$//" "$f"; rc=1; }; done; exit ${rc:-0}'
STRIP_QUIETLY = '{} sed -i "s/ *$//" "$@"'


def effects(result: object) -> tuple[str, bool, bool]:
    return result.status, result.blocks_commit, result.goes_back  # type: ignore[attr-defined]


def test_passed(runner: GateKit) -> None:
    """A clean file passes; nothing is said and the commit is free."""
    runner.checks(nobad=NO_BAD)
    runner.repo.write("new.txt", "fine\n")
    result = runner.run("new.txt")
    assert effects(result) == ("passed", False, False)
    assert (result.failures, result.fixed, result.touched_elsewhere) == ((), (), ())
    assert result.log is not None and result.log.parent == runner.log_dir


def test_failed(runner: GateKit) -> None:
    """A check that fails on the agent's file stops the commit and goes back, with its exit code and what it said."""
    runner.checks(nobad=NO_BAD, fine="{} exit 0")
    runner.repo.write("new.txt", "fine\nBAD\n")
    result = runner.run("new.txt")
    assert effects(result) == ("failed", True, True)
    (failure,) = result.failures
    assert (failure.id, failure.exit_code, failure.older) == ("nobad", 1, False)
    assert [(line.text, line.tag) for line in failure.lines] == [("new.txt:2:BAD", "yours")]


@pytest.mark.parametrize("fixer", [STRIP, STRIP_QUIETLY], ids=["says so", "exit 0"])
def test_passed_with_fixes(runner: GateKit, fixer: str) -> None:
    """A fixer repairs a file that git does not know yet: it passes in the second run, and the file is named."""
    runner.checks(strip=fixer)
    runner.repo.write("new.txt", "x   \n")
    result = runner.run("new.txt")
    assert effects(result) == ("passed_with_fixes", False, False)
    assert result.fixed == (b"new.txt",)
    assert runner.repo.read("new.txt") == "x\n"


def test_checks_that_never_agree(runner: GateKit) -> None:
    """A check that changes the file each time is run three times, and has failed then."""
    runner.checks(more='{} echo x >> "$1"; echo run >> .git/runs')
    runner.repo.write("new.txt", "x\n")
    result = runner.run("new.txt")
    assert (result.status, ids(result), result.fixed) == ("failed", ["more"], (b"new.txt",))
    assert result.failures[0].modified
    assert runner.repo.read(".git/runs").count("run") <= 4


def test_nothing_to_check(runner: GateKit) -> None:
    """A turn without files runs nothing."""
    runner.checks(mark="{} touch .git/ran")
    assert effects(runner.run()) == ("nothing_to_check", False, False)
    assert not runner.repo.exists(".git/ran")


def test_only_deletions(runner: GateKit) -> None:
    """A turn that only deleted runs the checks that always run, on no file, and hides nothing of the user's."""
    runner.checks(
        always='{"always_run": true, "pass_filenames": false} echo "$#" >> .git/always; cat b.txt >> .git/always',
        other="{} touch .git/other",
    )
    runner.repo.write("b.txt", "the user's, not staged\n")
    runner.repo.remove("a.txt")
    assert effects(runner.run(deleted=[b"a.txt"])) == ("passed", False, False)
    assert runner.repo.read(".git/always") == "0\nthe user's, not staged\n"
    assert not runner.repo.exists(".git/other")
    assert not runner.stashed()


def test_not_configured(gate: GateKit) -> None:
    """No configuration in this root and no hook: nothing runs and nothing is stopped."""
    result = gate.run("a.txt")
    assert (*effects(result), result.text) == ("not_configured", False, False, "")
    assert "no checks" in gate.run("a.txt", enabled="on").text


def test_switched_off(runner: GateKit) -> None:
    """``gate.enabled = off`` runs nothing."""
    runner.checks(nobad="{} exit 1")
    assert effects(runner.run("a.txt", enabled="off")) == ("not_configured", False, False)


@pytest.mark.parametrize("text", ["repos: [", "repos: 3"], ids=["not YAML", "not a list"])
def test_config_error(runner: GateKit, text: str) -> None:
    """A configuration that cannot be read stops the commit; the model is sent back to nothing."""
    runner.config(text)
    result = runner.run("a.txt")
    assert effects(result) == ("config_error", True, False)
    assert ".pre-commit-config.yaml" in result.text and not result.config_is_agents


def test_config_error_of_the_agents(runner: GateKit) -> None:
    """The result tells when the broken configuration is the agent's own."""
    runner.config("repos: [")
    assert runner.run(".pre-commit-config.yaml").config_is_agents


def test_a_configuration_that_the_agent_removes(runner: GateKit) -> None:
    """Removing the configuration is no way past the checks."""
    runner.checks(nobad="{} exit 1")
    runner.repo.remove(".pre-commit-config.yaml")
    result = runner.run("a.txt", deleted=[b".pre-commit-config.yaml"])
    assert (*effects(result), result.config_is_agents) == ("config_error", True, False, True)
    assert "removed .pre-commit-config.yaml" in result.text


@pytest.mark.parametrize(
    "switch", [("PREK_QUIET", "1"), ("PREK_QUIET", "2"), ("LEFTHOOK", "0"), ("PREK_SKIP", ""), ("GIT_DIR", "/")]
)
def test_the_environment_cannot_make_a_failure_pass(runner: GateKit, switch: tuple[str, str]) -> None:
    """What is set in the environment hides no failure."""
    runner.checks(nobad=NO_BAD)
    runner.env[switch[0]] = switch[1]
    runner.repo.write("new.txt", "BAD\n")
    result = runner.run("new.txt")
    assert (*effects(result), ids(result)) == ("failed", True, True, ["nobad"])


def test_a_failure_without_a_block(gate: GateKit) -> None:
    """A runner told by its configuration to show nothing of failures fails all the same."""
    gate.backend = "prek"
    gate.repo.write("prek.toml", PREK_TOML)
    gate.repo.commit("checks")
    result = gate.run("a.txt")
    assert (*effects(result), len(result.failures)) == ("failed", True, True, 1)


PREK_TOML = """\
hide_status = ["failed"]
[[repos]]
repo = "local"
hooks = [{ id = "bad", name = "bad", entry = "sh -c 'exit 1'", language = "system" }]
"""

UNREACHABLE = '{"repos": [{"repo": "https://127.0.0.1:9/none/none", "rev": "v1.0.0", "hooks": [{"id": "nothing"}]}]}'


def test_env_failed(runner: GateKit) -> None:
    """A repository of checks that cannot be reached: neither the code's fault nor passed."""
    runner.config(UNREACHABLE)
    result = runner.run("a.txt", allow_partial=True)
    assert effects(result) == ("env_failed", True, False)
    assert "127.0.0.1" in result.text


MISSING = '{"entry": "no-such-program-of-anyone"}'


def test_program_missing(runner: GateKit) -> None:
    """A check whose program is not installed is no failure of the agent's."""
    runner.checks(fine="{} exit 0", gone=MISSING)
    result = runner.run("a.txt")
    assert effects(result) == ("env_failed", True, False)
    assert any(text.startswith("gone:") for text in result.skipped)


def test_program_missing_and_partial_allowed(runner: GateKit) -> None:
    """With ``gate.allow_partial`` the commit is free when all others pass."""
    runner.checks(gone=MISSING, fine="{} touch .git/fine")
    assert effects(runner.run("a.txt", allow_partial=True)) == ("env_failed", False, False)
    assert runner.repo.exists(".git/fine")


def test_program_missing_and_another_fails(runner: GateKit) -> None:
    """A failure of the agent's counts although another check could not be started."""
    runner.checks(gone=MISSING, nobad=NO_BAD)
    runner.repo.write("new.txt", "BAD\n")
    result = runner.run("new.txt", allow_partial=True)
    assert (*effects(result), ids(result)) == ("failed", True, True, ["nobad"])
    assert any(text.startswith("gone:") for text in result.skipped)


def test_tool_missing(gate: GateKit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configuration without any runner stops the commit and says what to install."""
    gate.checks(nobad=NO_BAD)
    gate.only_on_path(tmp_path / "bin")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = gate.run("a.txt")
    assert effects(result) == ("tool_missing", True, False)
    assert "prek or pre-commit" in result.text and "gate.enabled" in result.text


def test_timeout(runner: GateKit) -> None:
    """A check that does not end in time stops the commit; the model cannot help it."""
    runner.checks(slow="{} exec sleep 60")
    assert effects(runner.run("a.txt", timeout_s=1.0)) == ("timeout", True, False)


def test_internal_error(runner: GateKit) -> None:
    """A git directory that git cannot use stops the commit."""
    runner.checks(nobad=NO_BAD)
    broken = runner.repo.write("other/.git", "gitdir: nowhere\n").parent
    assert effects(runner.run("a.txt", root=broken)) == ("internal_error", True, False)
    assert effects(runner.run("a.txt", root=runner.repo.root / "src")) == ("internal_error", True, False)


def test_skip_by_setting(runner: GateKit) -> None:
    """``gate.skip`` and the user's own ``SKIP`` leave checks out, and that is told."""
    runner.checks(one="{} exit 1", two="{} exit 1", three="{} touch .git/three")
    runner.env["SKIP"] = "two"
    result = runner.run("a.txt", skip=("one",))
    assert result.status == "passed"
    assert [text.partition(":")[0] for text in result.skipped] == ["one", "two"]
    assert runner.repo.exists(".git/three")


# ---- whose failure it is -----------------------------------------------------------------------------------------------------


def test_a_fault_elsewhere_is_not_judged(runner: GateKit) -> None:
    """Only the agent's files are given to the checks: what the user has lying about does not stop the turn."""
    runner.checks(nobad=NO_BAD)
    runner.repo.write("b.txt", "BAD by user\n")
    runner.repo.write("user.txt", "BAD\n")
    runner.repo.write("a.txt", "agent\n")
    assert runner.run("a.txt").status == "passed"


def test_failing_before_warns(runner: GateKit) -> None:
    """What failed before the turn, shown by running the check on that state, neither stops the commit nor goes back."""
    runner.checks(nobad=NO_BAD)
    runner.repo.write("a.txt", "agent's\nBAD of the user\n")
    before = {"a.txt": "BAD of the user\n"}
    lines = {b"a.txt": frozenset({1})}
    result = runner.run("a.txt", before=before, lines=lines)
    assert (*effects(result), tags(result)) == ("failed", False, False, ["older"])
    strict = runner.run("a.txt", before=before, lines=lines, preexisting="block")
    assert effects(strict) == ("failed", True, True)


def test_one_more_of_the_same_is_new(runner: GateKit) -> None:
    """A second complaint of the same words is the agent's."""
    runner.checks(nobad=NO_BAD)
    runner.repo.write("a.txt", "BAD\nBAD\n")
    result = runner.run("a.txt", before={"a.txt": "BAD\n"}, lines={b"a.txt": frozenset({2})})
    assert (*effects(result), sorted(tags(result))) == ("failed", True, True, ["older", "yours"])


def test_a_new_fault_on_an_old_line_is_the_turns(runner: GateKit) -> None:
    """A complaint about a line that the agent did not touch, but that was not there before, is the turn's."""
    runner.checks(uses='{} grep -q import "$1" || { echo "$1:3: not imported"; exit 1; }')
    runner.repo.write("a.txt", "\n\nuse\n")
    result = runner.run("a.txt", before={"a.txt": "import\n\nuse\n"}, lines={b"a.txt": frozenset({1})})
    assert (*effects(result), tags(result)) == ("failed", True, True, ["yours"])


def test_a_check_of_everything_that_failed_before(runner: GateKit) -> None:
    """A check that looks at the whole tree and fails on the user's unfinished file failed before the turn as well."""
    runner.checks(all='{"pass_filenames": false, "always_run": true} ! grep -rn BAD src')
    runner.repo.write("src/user.py", "BAD\n")
    runner.repo.write("a.txt", "agent\n")
    result = runner.run("a.txt", before={"a.txt": "a\n"})
    assert (*effects(result), tags(result)) == ("failed", False, False, ["elsewhere"])


def test_a_check_that_cannot_run_elsewhere_is_no_excuse(runner: GateKit) -> None:
    """A check that fails on the earlier state for another reason does not make the failure an older one."""
    runner.repo.write("cache/tool", "")  # ignored: not in the copy
    runner.checks(tool='{} test -f cache/tool || { echo "tool not found"; exit 1; }; echo "$1:1: wrong"; exit 1')
    result = runner.run("a.txt", before={"a.txt": "a\n"}, lines={b"a.txt": frozenset({1})})
    assert (*effects(result), tags(result)) == ("failed", True, True, ["yours"])


def test_a_count_alone_is_no_excuse(runner: GateKit) -> None:
    """Where a check names no file, only the very same words make it an older failure."""
    runner.checks(count='{} n=$(grep -c BAD "$1"); test "$n" = 0 || { echo "$n problems"; exit 1; }')
    runner.repo.write("a.txt", "BAD\nBAD\n")
    assert runner.run("a.txt", before={"a.txt": "BAD\n"}).blocks_commit
    assert not runner.run("a.txt", before={"a.txt": "BAD\nBAD\nx\n"}).blocks_commit


def test_the_users_save_is_not_blamed_on_a_check(runner: GateKit) -> None:
    """A tracked file that the user saves during the run makes both runners cry "modified"; a second run clears it up."""
    runner.checks(saves="{} test -f .git/saved || { touch .git/saved; echo user >> b.txt; }")
    result = runner.run("a.txt")
    assert (result.status, result.fixed, result.touched_elsewhere) == ("passed", (), (b"b.txt",))


def test_what_checks_do_elsewhere_is_told(runner: GateKit) -> None:
    """Files that a check makes, changes, reverts or removes outside of the agent's are named, others not."""
    os.utime(runner.repo.path("b.txt"), (1e9, 1e9))  # within one second git would not see the revert
    runner.checks(busy="{} echo x > made.log2; git checkout -q b.txt; rm -f src/app.py; exit 0")
    runner.repo.write("b.txt", "the user's\n")
    runner.repo.write("tool.sh", "also the user's\n")
    runner.repo.write("old-untracked", "x\n")
    result = runner.run("a.txt")
    assert result.touched_elsewhere == (b"b.txt", b"made.log2", b"src/app.py")
