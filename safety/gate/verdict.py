"""What a run of a runner means: the status from its exit code, and the blocks of its output for display.

A check can write what looks like a block of the runner's, so no block ever turns a failure into a pass.

==========  ====  =============================================================  =============================
runner      exit  and                                                            status
==========  ====  =============================================================  =============================
any         0                                                                    passed
pre-commit  1     a block of a check in the output                               failed
pre-commit  1     every failed check says that its program is not there          env_failed
pre-commit  1     no block: refused before the first check                       config_error
pre-commit  3     a repository or an environment could not be made               env_failed
prek        1                                                                    failed
prek        2     says it could not clone, initialise, install or start a check  env_failed
prek        2     else                                                           config_error
lefthook    1     an error of its own before the first job                       config_error
any         130   SIGINT reached it                                              cancelled
any other   1-127                                                                failed (lefthook, hook, command)
any         else  a signal, or what no runner documents                          internal_error
==========  ====  =============================================================  =============================

Source: [gate] A1, A7.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from safety.gate.backends import Backend
from safety.gate.process import Ended
from safety.gate.results import Status

_FIELD = re.compile(r"- (hook id|duration|exit code): (.*)")
_MODIFIED = "- files were modified by this hook"
_LEFTHOOK_ERROR = re.compile(r"^Error: (?!files were modified by a hook)", re.MULTILINE)
_LEFTHOOK_JOB = "\N{BOX DRAWINGS HEAVY VERTICAL}"
_NOT_FOUND = re.compile(r"Executable `.*` not found")
_PREK_ENVIRONMENT = re.compile(r"^(?:error|  caused by): Failed to (?:clone|init hooks|install|run hook)\b.*", re.MULTILINE)
_PREK_HOOK = re.compile(r"^error: Failed to (?:install|run) hook `([^`]+)`", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """What a runner showed of one check."""

    id: str
    failed: bool
    exit_code: int
    duration_s: float | None
    modified: bool
    lines: tuple[str, ...]

    @property
    def program_missing(self) -> bool:
        return self.failed and len(self.lines) == 1 and bool(_NOT_FOUND.fullmatch(self.lines[0]))


def blocks(output: str) -> list[Block]:
    """The blocks of pre-commit's or prek's verbose output, in order."""
    lines = output.split("\n")
    starts = [at for at in range(len(lines) - 1) if lines[at + 1].startswith("- hook id: ")]
    return [_block(lines[start:end]) for start, end in zip(starts, [*starts[1:], None], strict=False)]


def _block(lines: Sequence[str]) -> Block:
    fields: dict[str, str] = {}
    at = 1
    while at < len(lines) and (found := _FIELD.fullmatch(lines[at])) and found[1] not in fields:
        fields[found[1]] = found[2]
        at += 1
    modified = at < len(lines) and lines[at] == _MODIFIED
    return Block(
        fields["hook id"],
        lines[0].endswith("Failed"),
        int(fields["exit code"]) if fields.get("exit code", "").isdigit() else 0,
        _seconds(fields.get("duration", "")),
        modified,
        tuple(_said(lines[at + modified :])),
    )


def _said(lines: Sequence[str]) -> list[str]:
    """What the check wrote: after an empty line, with two spaces before each line if the runner is prek. Else it wrote nothing, and what
    follows is the runner's."""
    if not lines or lines[0]:
        return []
    said = "\n".join(lines).strip("\n").split("\n")
    if said[0].startswith("  "):
        said = [line[2:] for line in takewhile(lambda line: not line or line.startswith("  "), said)]
    return said if said != [""] else []


def _seconds(text: str) -> float | None:
    try:
        return float(text.removesuffix("s"))
    except ValueError:
        return None


def status_of(backend: Backend, ended: Ended, output: str) -> Status:
    """The table above."""
    code = ended.returncode
    if ended.timed_out:
        return "timeout"
    if ended.cancelled or code == 130:
        return "cancelled"
    if code == 0:
        return "passed"
    if backend.kind == "pre-commit":
        if code == 1:
            shown = [block for block in blocks(output) if block.failed]
            if not shown and not ended.cut:
                return "config_error"
            return "env_failed" if shown and all(block.program_missing for block in shown) and not ended.cut else "failed"
        return "env_failed" if code == 3 else "internal_error"
    if backend.kind == "prek":
        if code == 1:
            return "failed"
        if code == 2:
            return "env_failed" if _PREK_ENVIRONMENT.search(output) else "config_error"
        return "internal_error"
    if backend.kind == "lefthook" and _LEFTHOOK_ERROR.search(output) and _LEFTHOOK_JOB not in output:
        return "config_error"
    if backend.kind == "command" and code == 127:
        return "tool_missing"
    return "failed" if 0 < code < 128 else "internal_error"


def only_modified(backend: Backend, output: str) -> bool:
    """Whether nothing is wrong but that tracked files have changed, which the user's saving one does as well ([gate] A3)."""
    failed = [block for block in blocks(output) if block.failed] if backend.many_checks else []
    return bool(failed) and all(block.modified and not block.exit_code for block in failed)


def not_runnable(backend: Backend, output: str) -> tuple[str, ...]:
    """The ids of checks that the runner says it could not set up or start."""
    if backend.kind == "prek":
        return tuple(_PREK_HOOK.findall(output))
    return tuple(block.id for block in blocks(output) if block.program_missing) if backend.kind == "pre-commit" else ()
