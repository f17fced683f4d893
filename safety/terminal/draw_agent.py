"""What an agent does, as lines: what it says, each call in one, what came of it where that is no plain success."""

from __future__ import annotations

from collections.abc import Iterator

from safety.agent import messages as m
from safety.terminal.screen import Line, line
from safety.terminal.text import clean, one_line

SHOWN_LINES = 12
VERDICT_LINES = 3  # of what goes back to the model; the rest tells it what to do
MARK = "git-safety: "
_WORDS = {"denied": "not run", "error": "failed", "unknown": "unknown"}


def lines(event: m.Event, width: int = 0) -> Iterator[Line]:
    """The lines of one event; a reply's text is in its last one, Replied, and not in its chunks."""
    if isinstance(event, m.Replied):
        yield from (line(each) for each in _block(event.text))
    elif isinstance(event, m.Started):
        yield line((f"  {event.tool + ' ':<8}", "name"), one_line(_subject(event.input), max(width - 10, 20) if width else 0))
    elif isinstance(event, m.Ended) and event.status != "ok":
        first, *rest = _block(event.text.removeprefix("Not allowed: ")) or [""]
        word = _WORDS[event.status]
        yield line((f"  {word}: ", "bad"), first.removeprefix(MARK).removeprefix(f"{word}, "))
        yield from (line(f"    {each}") for each in rest)
    elif isinstance(event, m.Inner):
        yield from (line("  ", *spans) for spans in lines(event.event, width))
    elif isinstance(event, m.Told):
        yield from (line(each) for each in _block(event.text))
    elif isinstance(event, m.SentBack):
        yield from (line((each, "warn")) for each in _block(event.reason)[:VERDICT_LINES])
    elif isinstance(event, m.Interrupted):
        yield line(("Interrupted.", "warn"))
    elif isinstance(event, m.Trimmed):
        yield line((f"(context shortened: {event.tokens_before} to {event.tokens_after} tokens)", "dim"))


def _subject(given: m.Json) -> str:
    """What a call is about; not a question, which is asked right after."""
    return str(next((given[name] for name in ("command", "path", "task") if name in given), ""))


def _block(text: str) -> list[str]:
    """Foreign text in lines, without its empty ones, as many as are read."""
    found = [clean(each, keep="\t") for each in text.splitlines() if each.strip()]
    return [*found[:SHOWN_LINES], *([f"... {len(found) - SHOWN_LINES} more lines"] if len(found) > SHOWN_LINES else [])]
