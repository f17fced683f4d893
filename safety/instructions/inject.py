"""What a model is told at one event: the files that govern where it works and that it does not know yet, and what changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from safety.instructions import message
from safety.instructions.chain import Choice, Place, is_vendored, places, select
from safety.instructions.loaded import Loaded, Record
from safety.instructions.message import Element, shown
from safety.instructions.reading import Refused, Source, inside, read_source, stamp_of
from safety.policy.screening import INSTRUCTION_NAMES, LOCAL_INSTRUCTIONS

# After these the model's context holds nothing of what was sent before.
_FORGETS = ("resumed", "compacted")
_EVERYWHERE = b""


@dataclass(frozen=True, slots=True)
class InstructionSettings:
    """``enabled`` is ``auto``, ``on`` or ``off``; whether ``auto`` means on for a client that reads the files itself, the caller says."""

    enabled: str = "auto"
    names: tuple[bytes, ...] = INSTRUCTION_NAMES
    event_max_kb: int = 12
    session_max_kb: int = 32
    walk_above_root: bool = False


@dataclass(frozen=True, slots=True)
class Injection:
    """``messages`` are for the model (none or one), ``notices`` for the user; ``loaded`` is to be kept for the next event."""

    messages: tuple[str, ...]
    notices: tuple[str, ...]
    loaded: Loaded


def instructions_for(
    cwd: bytes,
    event: str,
    loaded: Loaded,
    settings: InstructionSettings,
    *,
    root: bytes | None,
    trusted: bool,
    boundary: Callable[[], str],
    user_file: bytes | None = None,
    agent_changed: Callable[[], Collection[bytes]] = frozenset,
    ignored: Callable[[Sequence[bytes]], Collection[bytes]] | None = None,
    home: bytes | None = None,
    turn: str = "",
    time_ms: int = 0,
) -> Injection:
    """What to tell a model that is about to work in ``cwd``.

    ``event`` is ``session_start``, ``cwd_changed``, ``file_touched`` (``cwd`` is then the folder of the file), ``changed`` (once a turn)
    or ``resumed`` (after a compaction too: all is sent once more). ``root`` is the nearest folder with a ``.git`` (`find_root`), or None.
    Untrusted, only ``user_file`` is sent. ``agent_changed`` gives the paths the agent wrote since the user last spoke, absolute or
    relative to the root. ``ignored`` gives those of some folders (relative to the root, with a ``/``) that git ignores; it is asked
    only when something new was found. ``boundary`` gives 8 fresh random hex digits.
    """
    if settings.enabled == "off":
        return Injection((), (), loaded)
    if event in _FORGETS:
        loaded = replace(loaded, records=(), spent=0)
    base = os.path.realpath(root) if root is not None else None
    event_ = _Event(os.path.realpath(cwd), event, base, settings, agent_changed, ignored, turn, time_ms, loaded)
    if user_file is not None:
        event_.user_file(user_file)
    here = places(event_.cwd, base, settings.walk_above_root, os.path.realpath(home) if home else None)
    if trusted:
        event_.elsewhere({place.folder for place in here})
        event_.chain(here)
    else:
        event_.untrusted(here)
    return event_.finish(boundary)


@dataclass(slots=True)
class _Part:
    """An element before the budget: ``text`` is what it would say in full, ``record`` what is then known."""

    choice: Choice
    status: str
    text: str
    record: Record | None


class _Event:
    """The work on one event: parts from general to specific, notices, and what is loaded after it."""

    def __init__(
        self,
        cwd: bytes,
        name: str,
        root: bytes | None,
        settings: InstructionSettings,
        agent_changed: Callable[[], Collection[bytes]],
        ignored: Callable[[Sequence[bytes]], Collection[bytes]] | None,
        turn: str,
        time_ms: int,
        loaded: Loaded,
    ) -> None:
        self.cwd, self.name, self.root, self.settings = cwd, name, root, settings
        self.agent_changed = agent_changed
        self.ignored, self.turn, self.time_ms, self.loaded = ignored, turn, time_ms, loaded
        self.parts: list[_Part] = []
        self.notices: list[str] = []

    @cached_property
    def changed(self) -> frozenset[bytes]:
        """What the agent wrote; asked for only where something is new, as it takes a walk over the log."""
        absolute = [os.path.join(self.root or self.cwd, path) for path in self.agent_changed()]
        return frozenset((*absolute, *map(os.path.realpath, absolute)))

    def by_agent(self, path: bytes) -> bool:
        return bool(self.changed) and (path in self.changed or os.path.realpath(path) in self.changed)

    def say(self, text: str, each_turn: bool = False) -> None:
        """A notice, once a session (once a turn)."""
        key = f"{self.turn}: {text}" if each_turn else text
        if key not in self.loaded.said:
            self.notices.append(text)
            self.loaded = replace(self.loaded, said=(*self.loaded.said, key))

    def refuse(self, refused: Refused) -> None:
        self.say(f"{self.named(refused.path)} was not loaded: {refused.reason}", each_turn=self.by_agent(refused.path))

    def named(self, path: bytes) -> str:
        return shown(path, self.root or self.cwd)

    # -- where parts come from ---------------------------------------------------------------------------------------------------

    def user_file(self, path: bytes) -> None:
        """The user's own file comes first and holds everywhere, trusted or not: it is not the repository's."""
        known = next((record for record in self.loaded.records if record.scope == _EVERYWHERE), None)
        try:
            unchanged = known is not None and known.stamp == stamp_of(os.stat(path))
        except OSError:
            if known is not None:
                self._removed(known, "")
            return
        if unchanged:
            return
        source = read_source(path, b"/", owned=False)
        if isinstance(source, Refused):
            self.refuse(source)
        else:
            self._take(Choice(path, _EVERYWHERE, source, known), trust="user")

    def elsewhere(self, here: set[bytes]) -> None:
        """Files of other folders, sent before: only what became of them."""
        for scope in sorted({record.scope for record in self.loaded.records} - here - {_EVERYWHERE}):
            known = self._known(scope)
            inner = inside(scope, known[0].root)
            place = Place(scope, known[0].root if inner else scope, owned=not inner)
            choices, _ = select(place, self.settings.names, known, self.by_agent)
            self._settle(known, choices)
            for choice in choices:
                if choice.known is not None and choice.source is not None:
                    self._take(choice)

    def chain(self, here: Sequence[Place]) -> None:
        """The files that govern the folder of the event."""
        found: list[tuple[Place, list[Record], list[Choice]]] = []
        for place in here:
            known = self._known(place.folder)
            choices, refused = select(place, self.settings.names, known, self.by_agent)
            for one in refused:
                self.refuse(one)
            found.append((place, known, choices))
        ignored = self._ignored([place for place, _, choices in found if any(choice.known is None for choice in choices)])
        for place, known, choices in found:
            if is_vendored(place) or place.folder in ignored:
                for choice in choices:
                    self.refuse(Refused(choice.path, "it lies in a folder of other people's or generated files"))
                continue
            self._settle(known, choices)
            for choice in choices:
                if choice.source is not None:
                    self._take(choice)

    def untrusted(self, here: Sequence[Place]) -> None:
        """Nothing is sent; the user is told how many files there are that were not told of before."""
        own = [place for place in here if not is_vendored(place)]
        files = [choice.path for place in own for choice in select(place, self.settings.names, (), lambda path: False)[0]]
        keys = {f"untrusted: {self.named(path)}" for path in files}
        new = sorted(keys.difference(self.loaded.said))
        if new:
            more = "more " if len(new) < len(keys) else ""
            counted = f"1 {more}instruction file" if len(new) == 1 else f"{len(new)} {more}instruction files"
            folder = shown(self.root or self.cwd, b"")
            self.notices.append(f"{counted} not loaded, as {folder} is not trusted; to load: git safety trust")
            self.loaded = replace(self.loaded, said=(*self.loaded.said, *new))

    def _known(self, scope: bytes) -> list[Record]:
        return [record for record in self.loaded.records if record.scope == scope]

    def _ignored(self, asked: Sequence[Place]) -> set[bytes]:
        below = {place.folder[len(place.within) + 1 :] + b"/": place.folder for place in asked if place.folder != place.within}
        if self.ignored is None or not below:
            return set()
        return {below[path] for path in self.ignored(sorted(below)) if path in below}

    # -- what becomes of them ----------------------------------------------------------------------------------------------------

    def _settle(self, known: Sequence[Record], choices: Sequence[Choice]) -> None:
        """Takes out the records of a folder that are not in effect any more."""
        for record in known:
            kept = next((choice for choice in choices if choice.path == record.path), None)
            if kept is None:
                local = record.path.endswith(LOCAL_INSTRUCTIONS)
                instead = next((one for one in choices if one.path.endswith(LOCAL_INSTRUCTIONS) == local), None)
                self._removed(record, self.named(instead.path) if instead else "")
            elif kept.source is None and not os.path.exists(record.path):
                self.say(f"{self.named(record.path)} was removed by the agent; it counts until your next message", each_turn=True)

    def _removed(self, record: Record, instead: str) -> None:
        self.loaded = self.loaded.without(record)
        text = (
            f"No longer in effect: {instead} is read in its place."
            if instead
            else "This file is gone; its rules no longer apply."
        )
        self.parts.append(_Part(Choice(record.path, record.scope, None, record), "removed", text, None))

    def _take(self, choice: Choice, trust: str = "trusted") -> None:
        source, known = choice.source, choice.known
        assert source is not None
        record = Record(
            choice.path, source.realpath, self.root or self.cwd, choice.scope, source.sha, source.size, source.stamp, self.turn,
            self.time_ms, self.name, trust, source.text,
        )  # fmt: skip
        if known is not None:
            self._changed(choice, known, record)
            return
        if not source.text.strip():
            return
        self._remark(choice.path, source)
        same = self._same_content(record)
        if same is None:
            self.parts.append(_Part(choice, "new", source.text, record))
        elif same.scope != choice.scope:
            self._point(choice, same, record)
        self.loaded = self.loaded.keeping(record)

    def _remark(self, path: bytes, source: Source) -> None:
        for remark in source.remarks:
            self.say(f"{self.named(path)}: {remark}")

    def _point(self, choice: Choice, same: Record, record: Record) -> None:
        text = f"The rules of {self.named(same.path)} also apply to {self.named(choice.scope)}: the content is the same."
        self.parts.append(_Part(choice, "pointer", text, record))

    def _changed(self, choice: Choice, known: Record, record: Record) -> None:
        if record.sha == known.sha and record.bytes == known.bytes:
            self.loaded = self.loaded.keeping(replace(known, stamp=record.stamp, realpath=record.realpath))
            return
        if self.by_agent(choice.path):
            # The old stamp stays, so that the change is seen again at the user's next turn.
            text = f"{self.named(choice.path)} was changed by the agent; the new text counts from your next message on"
            self.say(text, each_turn=True)
            return
        source = choice.source
        assert source is not None
        self._remark(choice.path, source)
        self.loaded = self.loaded.without(known)
        same = self._same_content(record)
        if same is not None:
            self._point(choice, same, record)
        else:
            small = message.difference(known.text, source.text) if known.text else None
            self.parts.append(_Part(choice, "updated", small or source.text, record))
        self.loaded = self.loaded.keeping(record)

    def _same_content(self, record: Record) -> Record | None:
        """Another record of the same bytes: best of this very folder, then of one above it, then any."""
        same = [one for one in self.loaded.records if one.sha == record.sha and one.bytes == record.bytes]
        return min(same, key=lambda one: (one.scope != record.scope, not inside(record.scope, one.scope or b"/")), default=None)

    # -- the message -------------------------------------------------------------------------------------------------------------

    def finish(self, boundary: Callable[[], str]) -> Injection:
        if not self.parts:
            return Injection((), tuple(self.notices), self.loaded)
        elements = self._fill()
        mark = _fresh(boundary, elements)
        text = message.compose(elements, self.name, self.cwd, self.root, mark)
        return Injection((text,), tuple(self.notices), self.loaded)

    def _fill(self) -> list[Element]:
        """Gives the budget to the closest files first; the elements come back in the order of the message."""
        left = min(self.settings.event_max_kb * 1000, self.settings.session_max_kb * 1000 - self.loaded.spent)
        elements: list[Element] = []
        for part in reversed(self.parts):
            record = part.record or part.choice.known
            assert record is not None
            path = self.named(part.choice.path)
            body, cut = part.text, ""
            if part.status in ("new", "updated"):
                body, cut = message.fitted(part.text, left, record.bytes, path)
                sent = min(len(body.encode()), max(left, 0))
                left -= sent
                self.loaded = replace(self.loaded, spent=self.loaded.spent + sent)
                if cut:
                    self.say(f"{path} was cut: {cut}")
                    self.loaded = self.loaded.keeping(replace(record, text=""))
            elements.append(Element(part.choice.path, part.choice.scope, record.sha, record.bytes, part.status, body, bool(cut)))
        return elements[::-1]


def _fresh(boundary: Callable[[], str], elements: Sequence[Element]) -> str:
    """A boundary that no body holds, if one can be had in a few tries; `compose` breaks up what is left."""
    mark = boundary()
    for _ in range(8):
        if not any(mark in element.body for element in elements):
            break
        mark = boundary()
    return mark
