"""The pieces of a plan, to be chosen one by one (``undo -p``).

A piece of a text is merged on its content into what is there now and gives a new target for the path; nothing is applied as a
patch. What cannot be cut (binary content, a file that comes or goes, a mode, a change of type, git's state) is one piece each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from safety.commands.changes import Contents, is_folder
from safety.commands.report import Choose, TurnTitle
from safety.commands.report import Hunk as Shown
from safety.plumbing.diff import Hunk, apply, hunks, is_binary, split_hunk
from safety.session import Session
from safety.store.gitstate import GitPlan
from safety.store.journal import UndoRefused
from safety.store.members import MemberPlace
from safety.store.restore import Step
from safety.store.takeback import Whole
from safety.types import Absent, PathState, Present

LARGEST_CUT = 8 << 20


@dataclass(frozen=True)
class Piece:
    """One thing to choose: how it is shown, and what it is of its path: a hunk, the mode, or (both None) all of it."""

    shown: Shown
    hunk: Hunk | None = None
    parts: tuple[tuple[str, Hunk], ...] = ()
    is_mode: bool = False


def choices(session: Session, whole: Whole, title: TurnTitle) -> Choose:
    """The pieces of the plan in the order of their paths, git's state last.

    There is no plan token: a piece's id is made of its content, and ``narrowed`` refuses ids that it does not know (any more).
    """
    cutter = _Cutter(session, whole)
    shown = [piece.shown for pieces in cutter.by_path.values() for piece in pieces]
    shown += [_git_piece(member, plan) for member, plan in whole.git if plan.acts]
    return Choose(root=session.root, title=title, hunks=tuple(shown), command=f"git safety undo {title.handle}")


def narrowed(session: Session, whole: Whole, ids: Collection[str]) -> Whole:
    """The plan with only the chosen pieces in it. Raises UndoRefused when a chosen piece is none of this plan's."""
    cutter = _Cutter(session, whole)
    git = {_git_piece(member, plan).id: (member, plan) for member, plan in whole.git if plan.acts}
    unknown = set(ids) - cutter.ids - git.keys()
    if unknown:
        raise UndoRefused("something changed since the pieces were shown; nothing was changed", "git safety undo -p")
    steps = {step.path: step for step in whole.files.steps if not step.acts}
    entire: set[bytes] = set()
    for path, pieces in cutter.by_path.items():
        for step in cutter.members[path]:
            chosen = cutter.chosen(step, pieces, ids)
            if chosen is not None:
                steps[step.path] = chosen
                if chosen.target == step.target:
                    entire.add(step.path)
    steps.update({step.path: step for step in _folders(whole, cutter, steps, entire)})
    plans = [
        (member, plan if not plan.acts else _with_files(member, plan, whole, entire))
        for member, plan in whole.git
        if not plan.acts or _git_piece(member, plan).id in ids
    ]
    files = replace(whole.files, steps=tuple(steps[path] for path in sorted(steps)))
    return replace(whole, files=files, git=tuple(plans))


class _Cutter:
    """Cuts a plan's steps.

    ``by_path``: the pieces of each path; ``members``: the steps that go with it; ``ids``: all that can be chosen.
    """

    def __init__(self, session: Session, whole: Whole) -> None:
        self.odb = session.log.odb
        self.contents = Contents(self.odb)
        self.by_path: dict[bytes, list[Piece]] = {}
        self.members: dict[bytes, list[Step]] = {}
        self.ids: set[str] = set()
        self.implied: list[Step] = []
        self._seen: dict[tuple[bytes, bytes], int] = {}
        acting = [step for step in whole.files.steps if step.acts]
        tops = {step.path for step in acting if is_folder(step.ours) != is_folder(step.target) and not _is_absent(step)}
        for step in acting:
            top = next((above for above in reversed(list(_above(step.path))) if above in tops), None)
            if top is not None:  # a path and all under it are one group
                self.members[top].append(step)
            elif _is_folder_step(step) and any(
                _is_below(other.path, step.path) for other in acting if not _is_folder_step(other)
            ):
                self.implied.append(step)
            else:
                self.members[step.path] = [step]
                self.by_path[step.path] = list(self._cut(step))
        for pieces in self.by_path.values():
            for piece in pieces:
                self.ids |= {piece.shown.id, *(identity for identity, _ in piece.parts)}

    def _cut(self, step: Step) -> Iterator[Piece]:
        ours, target = step.ours, step.target
        if not (isinstance(ours, Present) and isinstance(target, Present) and ours.kind == target.kind):
            yield self._whole(step, _coming_or_going(step))
            return
        if ours.oid != target.oid:
            yield from self._content(step) if self._is_text(ours, target) else [self._whole(step, "binary content")]
        if ours.mode != target.mode:
            note = f"{'folder ' if ours.kind == 'dir' else ''}mode {ours.mode:o} -> {target.mode:o}"
            yield Piece(Shown(self._id(step.path, note.encode()), step.path, note=note), is_mode=True)

    def _is_text(self, *states: PathState) -> bool:
        if any(isinstance(state, Present) and state.kind != "file" for state in states):
            return False
        if max(self.contents.size(state) for state in states) > LARGEST_CUT:
            return False
        return not any(is_binary(self.contents.read(state)) for state in states)

    def _content(self, step: Step) -> Iterator[Piece]:
        for hunk in hunks(self.contents.read(step.ours), self.contents.read(step.target)):
            split = split_hunk(hunk)
            parts = [(self._shown(step.path, part), part) for part in split] if len(split) > 1 else []
            shown = replace(self._shown(step.path, hunk), parts=tuple(part for part, _ in parts))
            yield Piece(shown, hunk, tuple((part.id, piece) for part, piece in parts))

    def _shown(self, path: bytes, hunk: Hunk) -> Shown:
        lines = tuple(mark.encode() + line for mark, line in hunk.body())
        return Shown(self._id(path, b"".join(lines)), path, hunk.header().decode(), lines)

    def _whole(self, step: Step, note: str) -> Piece:
        return Piece(Shown(self._id(step.path, repr((step.verb, step.ours, step.target)).encode()), step.path, note=note))

    def _id(self, path: bytes, body: bytes) -> str:
        """Stable as long as the piece is what it is, wherever in the file it stands; equal pieces are counted."""
        number = self._seen[path, body] = self._seen.get((path, body), 0) + 1
        return hashlib.sha256(b"%s\0%d\0%s" % (path, number, body)).hexdigest()[:16]

    def chosen(self, step: Step, pieces: Sequence[Piece], ids: Collection[str]) -> Step | None:
        """The step with the chosen pieces of its path, None if none was chosen."""
        if len(pieces) == 1 and pieces[0].hunk is None and not pieces[0].is_mode:
            return step if pieces[0].shown.id in ids else None
        assert isinstance(step.ours, Present) and isinstance(step.target, Present)
        target = step.ours
        content = [piece for piece in pieces if not piece.is_mode]
        taken = [hunk for piece in content if piece.hunk for hunk in _taken(piece, ids)]
        if any(piece.hunk is None and piece.shown.id in ids for piece in content) or all(
            piece.shown.id in ids for piece in content
        ):
            target = replace(target, oid=step.target.oid)
        elif taken:
            target = replace(target, oid=self.odb.write("blob", apply(self.contents.read(step.ours), taken)))
        if any(piece.is_mode and piece.shown.id in ids for piece in pieces):
            target = replace(target, mode=step.target.mode)
        return None if target == step.ours else replace(step, target=target)


def _taken(piece: Piece, ids: Collection[str]) -> list[Hunk]:
    if piece.hunk is not None and piece.shown.id in ids:
        return [piece.hunk]
    return [hunk for identity, hunk in piece.parts if identity in ids]


def _coming_or_going(step: Step) -> str:
    if isinstance(step.target, Absent):
        return "remove the folder" if is_folder(step.ours) else "remove it"
    if isinstance(step.ours, Absent):
        return "bring the folder back" if is_folder(step.target) else "bring it back"
    names = {"file": "a file", "link": "a symbolic link", "dir": "a folder"}
    return f"make it {names[step.target.kind]} again" if isinstance(step.target, Present) else step.note


def _is_absent(step: Step) -> bool:
    return isinstance(step.ours, Absent) or isinstance(step.target, Absent)


def _is_folder_step(step: Step) -> bool:
    """A folder that comes or goes; the files in it tell which."""
    return _is_absent(step) and (is_folder(step.ours) or is_folder(step.target))


def _above(path: bytes) -> Iterator[bytes]:
    while path := path.rpartition(b"/")[0]:
        yield path


def _is_below(path: bytes, folder: bytes) -> bool:
    return path.startswith(folder + b"/")


def _folders(whole: Whole, cutter: _Cutter, steps: dict[bytes, Step], entire: set[bytes]) -> Iterator[Step]:
    """Folders follow their files: back with the first that comes back, gone when all in them go."""
    files = [step.path for step in whole.files.steps if step.acts and not _is_folder_step(step)]
    for step in cutter.implied:
        inside = [path for path in files if _is_below(path, step.path)]
        if all(path in entire for path in inside) if isinstance(step.target, Absent) else any(path in steps for path in inside):
            yield step


# -- git's state -----------------------------------------------------------------------------------------------------------------


def _git_piece(member: MemberPlace, plan: GitPlan) -> Shown:
    body = repr(
        (
            plan.updates,
            plan.head,
            sorted(plan.progress.items()),
            plan.stash,
            sorted(plan.index.items()),
            plan.raw_index,
            plan.lay_back,
            plan.take_away,
        )
    )
    identity = hashlib.sha256(b"git\0%s\0%s" % (member.path, body.encode())).hexdigest()[:16]
    return Shown(identity, member.path, note="git: " + ("; ".join(plan.notes) or "the index and branches as before"))


def _with_files(member: MemberPlace, plan: GitPlan, whole: Whole, entire: set[bytes]) -> GitPlan:
    """The git plan, unless it switches branches and not every file goes along (design 5.5 b)."""
    acting = {step.path for step in whole.files.steps if step.acts and not _is_folder_step(step)}
    inside = {path for path in acting if not member.path or _is_below(path, member.path)}
    if plan.head is None or inside <= entire:
        return plan
    note = "the branch switch stays, because not all of its files were chosen"
    return GitPlan(plan.member, plan.now, plan.now, kept=(*plan.kept, note), held_paths=plan.held_paths)
