"""The commit's message: one for when nobody writes a better one, the trailer that names the agent, and git's tidying."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from safety.commit.values import CommitPlan
from safety.commit.words import shown_path, verb
from safety.plumbing.run import STORE_ENVIRONMENT, Git

SUBJECT_CHARS = 72
_LISTED = 40
_TRAILERS = {
    "assisted-by": "Assisted-by: {agent}:{model}",
    "generated-by": "Generated-by: {agent}:{model}",
    # A reserved domain: an address of a real one would credit somebody's account ([gate] B2).
    "co-authored-by": "Co-authored-by: {agent}:{model} <{agent}@agent.invalid>",
}
_TOKEN = re.compile(r"[A-Za-z0-9-]+")


def default_message(plan: CommitPlan, prompt: str = "") -> str:
    """A message made of the plan's paths: a subject of at most 72 characters, the request's first line, and the paths."""
    names = [(verb(change), shown_path(change.path)) for change in plan.changes]
    verbs = {what for what, _ in names}
    what = verbs.pop() if len(verbs) == 1 else "update"
    subject = f"chore(agent): {what} {names[0][1]}" if len(names) == 1 else ""
    if not subject or len(subject) > SUBJECT_CHARS:
        subject = f"chore(agent): {what} {len(names)} file{'' if len(names) == 1 else 's'}"
    listed = [f"- {what} {name}" for what, name in names[:_LISTED]]
    if len(names) > _LISTED:
        listed.append(f"- and {len(names) - _LISTED} more")
    asked = _first_line(prompt)
    body = [f"Asked: {asked}", ""] if asked else []
    return "\n".join([subject, "", *body, *listed]) + "\n"


def _first_line(prompt: str) -> str:
    line = next((line for line in prompt.splitlines() if line.strip()), "")
    line = " ".join("".join(each if each.isprintable() else " " for each in line).split())
    return line if len(line) <= SUBJECT_CHARS else line[: SUBJECT_CHARS - 3].rstrip() + "..."


def trailer(template: str, agent: Mapping[str, str]) -> str:
    """The trailer line that names the agent, "" for none. Never a Signed-off-by: only a person can sign off ([gate] B2)."""
    if template == "none":
        return ""
    names = {key: _word(agent.get(field, "")) for key, field in (("agent", "name"), ("model", "model"))}
    text = _TRAILERS.get(template, template)
    for key, value in names.items():
        text = text.replace("{" + key + "}", value)
    token, colon, value = text.partition(":")
    if not colon or not _TOKEN.fullmatch(token.strip()) or token.strip().lower() == "signed-off-by" or "\n" in text:
        return ""
    return f"{token.strip()}: {value.strip()}"


def _word(text: str) -> str:
    """A name as one word without what would end a trailer or an address."""
    return re.sub(r"[^\w.+/@-]+", "-", text).strip("-") or "unknown"


def with_trailer(git: Git, message: str, line: str) -> str:
    """The message with the trailer as git adds it; not twice. Without configuration, which may add others (a sign-off) to it."""
    if not line:
        return message
    args = ["interpret-trailers", "--if-exists", "addIfDifferent", "--trailer", line]
    text = os.fsencode(message.rstrip("\n") + "\n")
    return os.fsdecode(git.user(b"/", args, input=text, extra_env=STORE_ENVIRONMENT).stdout)


def tidied(git: Git, root: bytes, message: str, cleanup: str) -> str:
    """The message as ``git commit -m`` would store it, by the user's ``commit.cleanup``; "" if nothing is left."""
    if cleanup == "verbatim":
        return message if message.strip() else ""
    if cleanup == "strip":
        return os.fsdecode(git.owner(root, ["stripspace", "-s"], input=os.fsencode(message)).stdout)
    lines: list[str] = []
    for line in (each.rstrip() for each in message.split("\n")):
        if line or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines).rstrip("\n") + "\n" if any(lines) else ""
