"""May this call run? The chain of TOOL_CONFIRM handlers, and the two that end it: a person at a terminal, and nobody.

No printing and no reading here: how to ask, show and edit is handed in.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safety.hooks.answers import EDITS_MAX, ConfirmAction, ConfirmationResult
from safety.hooks.caller import call_hooks
from safety.hooks.events import HookType
from safety.hooks.registry import HookRegistry, get_registry
from safety.types import Decision

__all__ = ["Auto", "ConfirmAction", "ConfirmationResult", "auto_handler", "cli_handler", "confirm", "get_confirmation"]

ASKED_MAX = 3
HELP = """\
y        run it
n        do not run it (Enter does the same)
s        take what it would lose into a snapshot first, then run it; offered where that can help
e        edit it first; what you make of it is checked and asked about again
c        copy it, do not run it
a [N]    run it, and the next N without asking (all, without N); never what cannot be undone
?        this"""

Apply = Callable[[Any, str], Any]


def get_confirmation(
    tool_use: Any = None,
    preview: str | None = None,
    workspace: Path | None = None,
    default_confirm: bool = True,
    *,
    session: Any = None,
    registry: HookRegistry | None = None,
    apply_edit: Apply | None = None,
) -> ConfirmationResult:
    """Whether ``tool_use`` may run, by the handlers of TOOL_CONFIRM in order of priority; the first answer is the result.

    A guard's denial and a guard's question are heard whatever was answered above it (see ``call_hooks``). Nobody answers: confirm,
    or skip with ``default_confirm=False``; and skip if a guard asked. A failing handler skips. An edited text goes through the chain
    again, as ``apply_edit(tool_use, text)`` makes it (a copy with another ``content``, by default), until nobody edits it any more.
    """
    registry = registry or get_registry()
    edited: str | None = None
    for _ in range(EDITS_MAX):
        outcome = call_hooks(registry, HookType.TOOL_CONFIRM, tool_use, preview, workspace, session=session)
        decision, answer = outcome.decision, outcome.answer
        if decision.action == "deny":
            return ConfirmationResult.skip(
                decision.reason, unrecoverable=decision.unrecoverable, by_user=bool(answer and answer.by_user)
            )
        if decision.action == "ask":
            return ConfirmationResult.skip(decision.reason or "nobody there to ask", unrecoverable=decision.unrecoverable)
        if decision.action == "edit":
            content = (decision.input or {}).get("content")
            if not isinstance(content, str):
                return ConfirmationResult.skip("an edit without a text")
            if content != edited:
                edited, preview = content, content
                try:
                    tool_use = (apply_edit or with_content)(tool_use, content)
                except (TypeError, AttributeError):  # nothing it could be put into, so nothing that a guard could check
                    return ConfirmationResult.skip("the edited text has no place in this call")
                continue
        elif not outcome.decided_by and not default_confirm:
            return ConfirmationResult.skip("No confirmation hook handled the request")
        by_user = bool(answer and answer.by_user)
        return ConfirmationResult.confirm(by_user=by_user) if edited is None else ConfirmationResult.edit(edited, by_user=by_user)
    return ConfirmationResult.skip(f"edited {EDITS_MAX} times and never settled")


def confirm(msg: str, default: bool = True, *, session: Any = None, registry: HookRegistry | None = None) -> bool:
    """A plain yes or no through the same chain, for a tool that asks while it runs."""
    result = get_confirmation(preview=msg, default_confirm=default, session=session, registry=registry)
    return result.action is ConfirmAction.CONFIRM


def with_content(tool_use: Any, content: str) -> Any:
    """A copy of a tool use with another content."""
    if dataclasses.is_dataclass(tool_use) and not isinstance(tool_use, type):
        return dataclasses.replace(tool_use, content=content)
    changed = copy.copy(tool_use)
    if changed is not None:
        changed.content = content
    return changed


@dataclass
class Auto:
    """How many calls run without a question: ``left``, or all of them if None."""

    left: int | None = 0

    def take(self) -> bool:
        """True if this call runs unasked; counts it."""
        if self.left is None:
            return True
        if self.left <= 0:
            return False
        self.left -= 1
        return True


ConfirmHandler = Callable[[Any, str | None, Path | None, Decision | None], ConfirmationResult]


def cli_handler(
    *,
    ask: Callable[[str], str | None],
    show: Callable[[str], None],
    edit: Callable[[str], str | None] | None = None,
    copy: Callable[[str], None] | None = None,
    snapshot: Callable[[Any], str] | None = None,
    auto: Auto | None = None,
) -> ConfirmHandler:
    """A handler that asks a person: y, n, s, e, c, a [N]. Enter, end of input and an answer nobody understands mean no.

    ``snapshot`` takes what the call would lose into a snapshot and gives why it could not, or nothing; with it ``s`` is offered for
    the unrecoverable: snapshot it first, then run.

    The preview is always shown, also of what runs unasked. ``ask`` gives the line typed, None at its end; ``edit`` the new text, None
    if given up. ``e`` and ``c`` are offered where ``edit`` and ``copy`` are handed in. ``auto`` is what ``a`` counts in; what the
    guard calls unrecoverable is asked about all the same, and neither counted nor answered by ``a``.
    """
    auto = Auto() if auto is None else auto

    def cli_confirm(
        tool_use: Any, preview: str | None = None, workspace: Path | None = None, decision: Decision | None = None
    ) -> ConfirmationResult:
        content = preview or getattr(tool_use, "content", None) or ""
        if content:
            show(content)
        asked = decision if decision is not None and decision.action == "ask" else None
        if asked is not None and asked.reason:
            show(asked.reason)
        unrecoverable = asked is not None and asked.unrecoverable
        if not unrecoverable and auto.take():
            return ConfirmationResult.confirm()
        letters = ["y", "N"]
        letters += ["s"] if snapshot and unrecoverable else []
        letters += ["e"] if edit and content else []
        letters += ["c"] if copy and content else []
        letters += ["a"] if not unrecoverable else []
        question = f"Run {getattr(tool_use, 'tool', None) or 'it'}? [{'/'.join(letters)}/?] "
        for _ in range(ASKED_MAX):
            answer = (ask(question) or "").strip().lower()
            if answer in ("y", "yes"):
                return ConfirmationResult.confirm(by_user=True)
            if answer in ("", "n", "no"):
                return _skipped("Declined by the user", unrecoverable)
            if answer == "s" and snapshot and unrecoverable:
                if not (why := snapshot(tool_use)):
                    return ConfirmationResult.confirm(by_user=True)
                show(f"It could not be taken into a snapshot: {why}")
                continue
            if answer == "e" and edit and content:
                changed = edit(content)
                if changed is None or changed == content:
                    return _skipped("No changes made, not run", unrecoverable)
                return ConfirmationResult.edit(changed, by_user=True)
            if answer == "c" and copy and content:
                copy(content)
                return _skipped("Copied, not run", unrecoverable)
            many = re.fullmatch(r"a(?:uto)?(?:\s+(\d{1,6}))?", answer)
            if many and not unrecoverable:
                auto.left = int(many[1]) if many[1] else None
                return ConfirmationResult.confirm(by_user=True)
            show("This cannot be undone, so it is asked about each time." if many else HELP)
        return _skipped("Declined: no answer", unrecoverable)

    return cli_confirm


def auto_handler(auto: Auto | None = None) -> ConfirmHandler:
    """A handler that confirms with nobody there; not the unrecoverable, which it skips with the guard's reason."""
    auto = Auto(None) if auto is None else auto

    def auto_confirm(
        tool_use: Any, preview: str | None = None, workspace: Path | None = None, decision: Decision | None = None
    ) -> ConfirmationResult:
        if decision is not None and decision.action == "ask" and decision.unrecoverable:
            return ConfirmationResult.skip(decision.reason, unrecoverable=True)
        if not auto.take():
            return ConfirmationResult.skip("No automatic confirmation left")
        return ConfirmationResult.confirm()

    return auto_confirm


def _skipped(message: str, unrecoverable: bool) -> ConfirmationResult:
    return ConfirmationResult.skip(message, unrecoverable=unrecoverable, by_user=True)
