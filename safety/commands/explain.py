"""``explain``: what the guard would say of a command, and why. Runs nothing."""

from __future__ import annotations

from safety.commands.args import ExplainArgs
from safety.commands.judging import explained, words_of
from safety.commands.report import Hint, Report, TextReport
from safety.session import Session


def run(session: Session, args: ExplainArgs) -> Report:
    """Gives a TextReport; exit code 0 for allow, 3 for ask, 1 for deny. Raises WorkspaceBusy."""
    found = explained(session, args.text)
    verdict = found.verdict
    lines = [f"{verdict.action}: {verdict.reason or 'nothing would be lost that no snapshot holds'}"]
    if verdict.loses:
        lines.append(f"  loses      {verdict.loses}")
    if verdict.holds:
        lines.append(f"  undoable   by snapshot {verdict.holds}")
    if verdict.instead:
        lines.append(f"  instead    {verdict.instead}")
    lines += [f"  {line}" for line in words_of(verdict)]
    hints = (Hint("Allow this one call", f"git safety allow --once {found.id}"),) if verdict.action != "allow" else ()
    data = {
        "action": verdict.action,
        "rule": verdict.rule,
        "loses": verdict.loses,
        "holds": verdict.holds,
        "instead": verdict.instead,
        "reason": verdict.reason,
        "recoverable": verdict.recoverable,
        "effects": [[effect.kind, effect.target, action] for effect, action in verdict.effects],
        "id": found.id,
    }
    code = {"allow": 0, "ask": 3, "deny": 1}[verdict.action]
    return TextReport(root=session.root, lines=tuple(lines), hints=hints, data=data, exit_code=code)
