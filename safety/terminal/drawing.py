"""The pieces that several drawings share: where the reader is, titles, lines of paths, hints, patches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from safety.commands import report as r
from safety.terminal import text as t
from safety.terminal.screen import Line, Span, line

MAX_LINES = 20
FOLD_FROM = 3
NAME_WIDTH = 20
_VERB_WIDTH = 13

_STYLE = {
    "restored": "good",
    "removed": "good",
    "merged": "good",
    "unchanged": "dim",
    "kept": "warn",
    "not covered": "warn",
    "git": "name",
}
_WOULD = {"restored": "restore", "removed": "remove", "merged": "merge", "kept": "keep"}
# What is shown first when not everything fits: what the reader may have to act on.
_URGENCY = ("git", "kept", "not covered", "merged", "restored", "removed", "unchanged")


@dataclass(frozen=True, slots=True)
class View:
    """Where and when the reader looks. ``width`` 0: as wide as it gets (no terminal). ``home`` is drawn as ``~``."""

    cwd: bytes
    now_ms: int
    width: int = 0
    home: bytes = b""


@dataclass(frozen=True, slots=True)
class Place:
    """A view together with the root that a report's paths are relative to."""

    view: View
    root: bytes

    def path(self, path: bytes, folder: bool = False) -> str:
        shown = t.quote_path(t.relative(path, self.root, self.view.cwd))
        return shown + "/" if folder and not shown.endswith("/") else shown

    def argument(self, path: bytes) -> str:
        return t.shell_path(t.relative(path, self.root, self.view.cwd))

    def command(self, hint: r.Hint) -> str:
        words = [self.argument(path) for path in hint.paths]
        if any(word.startswith("-") for word in words):
            words.insert(0, "--")
        return " ".join([t.clean(hint.command), *words])


def title_spans(title: r.TurnTitle, view: View) -> Iterator[Span]:
    yield t.clean(title.handle), "name"
    facts = [t.one_line(title.agent), t.ago(title.when_ms, view.now_ms) if title.when_ms else ""]
    facts.append(t.count(title.calls, "call") if title.calls and not title.command else "")
    said = ", ".join(fact for fact in facts if fact)
    yield f"  {said}" if said else "", ""
    prompt = t.one_line(title.prompt, 72)
    if prompt:
        yield (f": {prompt}" if title.command else f': "{prompt}"'), ""


@dataclass(frozen=True, slots=True)
class Row:
    """One drawn line: a path line, or a folder that stands for ``files`` of them."""

    line: r.PathLine
    files: int = 1
    folded: bool = False


def fold(lines: Sequence[r.PathLine]) -> list[Row]:
    """The lines with each folder whose three or more files share a verb drawn as one row, at the place of its first file.

    What a reader must act on (kept, merged, not covered) folds only if the notes are the same as well.
    """
    chosen = _foldable(lines)
    rows: list[Row] = []
    done: set[bytes] = set()
    for each in lines:
        folder = next((up for up in _above(each.path) if up in chosen), None) if each.verb != "git" else None
        if folder is None:
            rows.append(Row(each))
        elif folder not in done:
            done.add(folder)
            rows.append(_folded(folder, chosen[folder]))
    return rows


def _above(path: bytes) -> Iterator[bytes]:
    """The folders above ``path``, the highest first."""
    start = 1 if path.startswith(b"/") else 0
    while (at := path.find(b"/", start)) >= 0:
        yield path[:at]
        start = at + 1


def _foldable(lines: Sequence[r.PathLine]) -> dict[bytes, list[r.PathLine]]:
    below: dict[bytes, list[r.PathLine]] = {}
    for each in lines:
        if each.verb != "git":
            for folder in _above(each.path):
                below.setdefault(folder, []).append(each)
            if each.folder:
                below.setdefault(each.path, []).append(each)

    def alike(members: list[r.PathLine]) -> bool:
        verbs, notes = {each.verb for each in members}, {each.note for each in members}
        return len(verbs) == 1 and (len(notes) == 1 or not verbs & {"kept", "merged", "not covered"})

    return {
        folder: members
        for folder, members in below.items()
        if alike(members) and sum(not each.folder for each in members) >= FOLD_FROM
    }  # fmt: skip


def _folded(folder: bytes, members: list[r.PathLine]) -> Row:
    files = [each for each in members if not each.folder]
    notes = {each.note for each in files}
    known = all(each.added is not None or each.deleted is not None for each in files)
    return Row(
        r.PathLine(
            verb=files[0].verb,
            path=folder,
            note=", ".join(filter(None, [t.count(len(files), "file"), notes.pop() if len(notes) == 1 else ""])),
            added=sum(each.added or 0 for each in files) if known else None,
            deleted=sum(each.deleted or 0 for each in files) if known else None,
            folder=True,
        ),
        files=len(files),
        folded=True,
    )


def most_urgent(rows: Sequence[Row]) -> list[Row]:
    """At most `MAX_LINES` rows in their order; what has to give way are the good ends."""
    if len(rows) <= MAX_LINES:
        return list(rows)
    order = sorted(range(len(rows)), key=lambda at: (_URGENCY.index(rows[at].line.verb), at))
    return [rows[at] for at in sorted(order[:MAX_LINES])]


def path_rows(rows: Sequence[Row], place: Place, dry: bool) -> Iterator[Line]:
    shown = [place.path(row.line.path, row.line.folder) for row in rows]
    width = min(max((t.columns(path) for row, path in zip(rows, shown, strict=True) if row.line.path), default=0), 48)
    for row, path in zip(rows, shown, strict=True):
        each = row.line
        verb = t.pad(_WOULD.get(each.verb, each.verb) if dry else each.verb, _VERB_WIDTH)
        note = ", ".join(filter(None, [t.clean(each.note), signs(each.added, each.deleted)]))
        body = t.clean(each.note) if each.verb == "git" and not each.path else (f"{t.pad(path, width)}  {note}" if note else path)
        yield line("  ", (verb, _STYLE[each.verb]), body)


def signs(added: int | None, deleted: int | None) -> str:
    parts = [f"+{added}" if added else "", f"-{deleted}" if deleted else ""]
    return " ".join(part for part in parts if part)


def hint_lines(hints: Sequence[r.Hint], place: Place, most: int = 6) -> Iterator[Line]:
    """``label:  command`` lines with the commands in one column; a label under the same path is set right."""
    if not hints:
        return
    labels: list[str] = []
    for at, hint in enumerate(hints):
        label = t.clean(hint.label)
        if hint.about and (at == 0 or hints[at - 1].about != hint.about):
            label = f"{place.path(hint.about)}, {label}"
        labels.append(label + ":")
    last = [at for at, hint in enumerate(hints) if not hint.about]
    keep = set(last) | set([at for at, hint in enumerate(hints) if hint.about][:most])
    width = max(t.columns(labels[at]) for at in keep)
    for at, hint in enumerate(hints):
        if at in keep:
            follows = bool(hint.about and at and hints[at - 1].about == hint.about)
            yield line(t.pad(labels[at], width, right=follows), "  ", (place.command(hint), "bold"))


_PATCH_HEADS = ("+++ ", "--- ", "diff ", "index ", "new file", "deleted file", "old mode", "new mode", "similarity", "rename ")


def patch_line(raw: bytes) -> Line:
    text = t.clean(raw.removesuffix(b"\n"), keep="\t")
    style = {"+": "add", "-": "del", "@": "hunk", "\\": "dim"}.get(text[:1], "")
    if text.startswith(_PATCH_HEADS):
        style = "bold"
    return line((text, style))


def patch_lines(patches: Iterable[r.FilePatch]) -> Iterator[Line]:
    for each in patches:
        for raw in each.patch.removesuffix(b"\n").split(b"\n"):
            yield patch_line(raw)
