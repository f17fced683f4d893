"""Refs, stash list and in-progress state: read out of the files of a git directory, moved by git itself.

Reading takes bytes from wherever the files are (``view`` does not care whether that is a disk or a snapshot). Writing goes
through one ``git update-ref --stdin``, which holds git's own locks and gives them back by itself when we die, because its input
ends. Only the stash list, which git cannot reorder, is written by us, under the same locks.

Ids are 40 hexadecimal digits as ``bytes``; ``NULL_HEX`` means "must not exist" as an old value and "delete" as a new one.
"""

from __future__ import annotations

import os
import re
import select
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self

from safety.faults import SafetyError
from safety.plumbing.reading import read_regular
from safety.plumbing.run import Git, GitError

NULL_HEX = b"0" * 40
STASH = b"refs/stash"
STASH_LOG = b"logs/refs/stash"
PACKED_REFS = b"packed-refs"
STASH_LOCKS = (b"refs/stash.lock", b"logs/refs/stash.lock")

# Without configuration git may find no committer for the reflog line, or refuse one (user.useConfigOnly).
IDENTITY: Mapping[str, str] = {"GIT_COMMITTER_NAME": "git-safety", "GIT_COMMITTER_EMAIL": "git-safety@localhost"}

# State of an unfinished merge, rebase, cherry-pick, revert, am or bisect. What ends in "/" or "_" is a beginning.
IN_PROGRESS: tuple[bytes, ...] = (
    b"MERGE_HEAD",
    b"MERGE_MSG",
    b"MERGE_MODE",
    b"MERGE_RR",
    b"MERGE_AUTOSTASH",
    b"AUTO_MERGE",
    b"CHERRY_PICK_HEAD",
    b"REVERT_HEAD",
    b"REBASE_HEAD",
    b"ORIG_HEAD",
    b"SQUASH_MSG",
    b"BISECT_",
    b"rebase-merge/",
    b"rebase-apply/",
    b"sequencer/",
)

_MOST_LINKS = 5  # that git follows from one symbolic ref to the next
_PER_WORKTREE_REFS = (b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/")
# Source: git's path.c, common_list.
_COMMON = frozenset(
    b"branches common config gc.pid hooks info logs lost-found objects packed-refs refs remotes rr-cache shallow svn "
    b"worktrees".split()
)

_HEX = re.compile(rb"[0-9a-f]{40}")
_PACKED = re.compile(rb"(?:#[^\n]*\n|\^?[0-9a-f]{40}(?:[0-9a-f]{24})?(?: [^\n]+)?\n)*")
_ID_IN_TEXT = re.compile(rb"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_REFUSED_REF = re.compile(rb"cannot lock ref '(.+?)': ")
_LOCK_EXISTS = re.compile(rb"Unable to create '(.+?)\.lock': File exists")
_MOVED = (b"but expected", b"reference already exists", b"unable to resolve reference", b"reference is missing")


class RefRefused(SafetyError):
    """Git would not move a ref: a name in the way, a missing object, a bad name. Nothing was changed."""

    code = "ref-refused"

    def __init__(self, message: str, ref: bytes = b"", hint: str = "") -> None:
        super().__init__(message, hint)
        self.ref = ref


class RefMoved(RefRefused):
    """A ref is not where it was expected to be."""

    code = "ref-moved"


class RefLocked(RefRefused):
    """Another process holds the lock of a ref (``ref`` may be ``packed-refs``), or a dead one left it."""

    code = "ref-locked"


# ---- reading ---------------------------------------------------------------------------------------------------------------


class StashEntry(NamedTuple):
    """One stash: its commit and its line of ``logs/refs/stash`` without the line end."""

    oid: bytes
    line: bytes


@dataclass(frozen=True, slots=True)
class GitView:
    """What the small files of a git directory say.

    ``head`` is ``ref: refs/heads/x`` or an id, ``b""`` if there is no HEAD. ``refs`` holds direct refs, ``symrefs`` symbolic ones
    with their targets, ``peeled`` what ``packed-refs`` says an annotated tag points at. ``stash`` is in the order of
    ``git stash list``. ``in_progress`` maps file names to content. ``broken`` are files under ``refs/`` that hold no ref, and
    ``packed-refs`` where git would not read it.
    """

    head: bytes
    refs: dict[bytes, bytes]
    symrefs: dict[bytes, bytes]
    stash: tuple[StashEntry, ...]
    in_progress: dict[bytes, bytes]
    peeled: dict[bytes, bytes]
    broken: frozenset[bytes]

    @property
    def branch(self) -> bytes | None:
        """The ref HEAD points at (``refs/heads/x``), None if detached or missing. The branch may be unborn."""
        return self.head[5:].strip() if self.head.startswith(b"ref:") else None

    @property
    def commit(self) -> bytes | None:
        """The id HEAD stands for, None if unborn, missing or broken."""
        return self.resolve(b"HEAD")

    def resolve(self, ref: bytes) -> bytes | None:
        """The id a ref stands for, through symbolic refs."""
        if ref == b"HEAD":
            if self.branch is None:
                return self.head if _HEX.fullmatch(self.head) else None
            ref = self.branch
        for _ in range(_MOST_LINKS + 1):
            if ref in self.refs:
                return self.refs[ref]
            if ref not in self.symrefs:
                return None
            ref = self.symrefs[ref]
        return None


def view(files: Callable[[bytes], bytes | None], names: Iterable[bytes]) -> GitView:
    """What the files called ``names`` say, each read by ``files(name)`` (None: not there, or not a file).

    Names are relative to the git directory. For a linked work tree the caller joins its own git directory and the common one;
    ``is_per_worktree`` tells which of the two a name belongs to. A symbolic link counts as a file that holds its target.
    """
    names = list(names)
    packed = files(PACKED_REFS)
    refs, peeled = parse_packed_refs(packed or b"")
    symrefs: dict[bytes, bytes] = {}
    in_progress: dict[bytes, bytes] = {}
    broken = set() if is_packed_refs(packed, PACKED_REFS in names) else {PACKED_REFS}
    for name in names:
        loose = name.startswith(b"refs/") and not name.endswith(b".lock")
        if not loose and not is_in_progress(name):
            continue
        content = files(name)
        if content is None:
            continue
        if not loose:
            in_progress[name] = content
            continue
        # A loose ref hides the packed one, a broken one too.
        refs.pop(name, None)
        peeled.pop(name, None)
        text = ref_text(content)
        if text.startswith(b"ref:"):
            symrefs[name] = text[5:]
        elif _HEX.fullmatch(text):
            refs[name] = text
        else:
            broken.add(name)
    return GitView(
        head=ref_text(files(b"HEAD") or b""),
        refs=refs,
        symrefs=symrefs,
        stash=parse_stash(files(STASH_LOG) or b""),
        in_progress=in_progress,
        peeled=peeled,
        broken=frozenset(broken),
    )


def view_on_disk(git_dir: bytes, common_dir: bytes) -> GitView:
    """The view of a git directory as it is on disk now. ``common_dir`` is the same one unless the work tree is linked."""
    return view(lambda name: _read_file(_place(git_dir, common_dir, name)), names_on_disk(git_dir, common_dir))


def is_packed_refs(content: bytes | None, is_there: bool) -> bool:
    """Whether git would read this as ``packed-refs``: nothing, or a file of such lines (``content`` None where it is no file)."""
    return not is_there if content is None else _PACKED.fullmatch(content) is not None


def packed_refs_on_disk(common_dir: bytes) -> bool:
    """Whether git would read the ``packed-refs`` that is on disk now."""
    place = os.path.join(common_dir, PACKED_REFS)
    return is_packed_refs(_read_file(place), os.path.lexists(place))


def commit_on_disk(git_dir: bytes, common_dir: bytes) -> bytes | None:
    """The ``commit`` of `view_on_disk`, without reading the other refs: there may be fifty thousand."""
    name, content = b"HEAD", _read_file(_place(git_dir, common_dir, b"HEAD"))
    for _ in range(_MOST_LINKS + 2):
        text = ref_text(content or b"")
        if _HEX.fullmatch(text):
            return text
        if content is None and name != b"HEAD":
            packed = _read_file(_place(git_dir, common_dir, PACKED_REFS)) or b""
            line = re.search(rb"^([0-9a-f]{40}) " + re.escape(name) + rb"\r*$", packed, re.MULTILINE)
            return line[1] if line else None
        if not text.startswith(b"ref:"):
            return None
        name = text[5:]
        content = _read_file(_place(git_dir, common_dir, name)) if name.startswith(b"refs/") and not name.endswith(b".lock") else None
    return None


def names_on_disk(git_dir: bytes, common_dir: bytes) -> list[bytes]:
    """The names ``view`` wants to see, sorted: HEAD, refs, packed-refs, the stash log, in-progress files."""
    names = {name for name in (b"HEAD", PACKED_REFS, STASH_LOG) if os.path.lexists(_place(git_dir, common_dir, name))}
    for folder in dict.fromkeys((git_dir, common_dir)):
        names.update(name for name in _walk(folder, b"refs/") if _place(git_dir, common_dir, name) == os.path.join(folder, name))
    with os.scandir(git_dir) as found:
        for item in found:
            if item.is_dir(follow_symlinks=False):
                if is_in_progress(item.name + b"/"):
                    names.update(_walk(git_dir, item.name + b"/"))
            elif is_in_progress(item.name):
                names.add(item.name)
    return sorted(names)


def parse_packed_refs(data: bytes) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """The refs of a ``packed-refs`` file, and the peeled values of those that have one; odd lines are left out."""
    refs: dict[bytes, bytes] = {}
    peeled: dict[bytes, bytes] = {}
    last = b""
    for line in data.split(b"\n"):
        if line[:1] == b"^":
            if last:
                peeled[last] = line[1:41]
        elif line[40:41] == b" " and line[:1] != b"#":
            last = line[41:].rstrip(b"\r")
            refs[last] = line[:40]
    return refs, peeled


def parse_stash(log: bytes) -> tuple[StashEntry, ...]:
    """The entries of ``logs/refs/stash``, newest first, as ``git stash list`` counts them."""
    lines = [line for line in log.split(b"\n") if _HEX.fullmatch(line[41:81])]
    return tuple(StashEntry(line[41:81], line) for line in reversed(lines))


def object_ids(data: bytes) -> set[bytes]:
    """All ids in the text of refs, packed-refs or logs, the null id left out.

    A log message may quote an id that never was an object here.
    """
    found = set(_ID_IN_TEXT.findall(data))
    found.discard(NULL_HEX)
    return found


def is_in_progress(name: bytes) -> bool:
    """Whether a file of the git directory is part of the in-progress state."""
    return any(name.startswith(start) if start[-1:] in b"/_" else name == start for start in IN_PROGRESS) and not (
        name.endswith(b".lock") and b"/" not in name
    )


def is_per_worktree(name: bytes) -> bool:
    """Whether a name lives in a linked work tree's own git directory, not in the common one.

    Source: git's path.c and is_per_worktree_ref.
    """
    if name in (b"logs/HEAD", b"info/sparse-checkout"):
        return True
    ref = name.removeprefix(b"logs/")
    if ref.startswith(b"refs/"):
        return ref.startswith(_PER_WORKTREE_REFS)
    return name.split(b"/", 1)[0] not in _COMMON


def _place(git_dir: bytes, common_dir: bytes, name: bytes) -> bytes:
    return os.path.join(git_dir if is_per_worktree(name) else common_dir, name)


def ref_text(content: bytes) -> bytes:
    """What a ref file says: an id, or ``ref: target`` with one space; a symbolic link's target gets the prefix."""
    text = content.rstrip()
    if text.startswith(b"ref:"):
        return b"ref: " + text[4:].strip()
    if text.startswith(b"refs/"):
        return b"ref: " + text
    # Git takes what follows the id for a comment (FETCH_HEAD has such lines).
    return text[:40] if _HEX.match(text) and text[40:41].isspace() else text


def _read_file(path: bytes) -> bytes | None:
    try:
        if os.path.islink(path):
            return os.readlink(path)
        return read_regular(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def _walk(root: bytes, under: bytes) -> Iterator[bytes]:
    """Names of all files and links below ``root/under``, relative to ``root``; nothing where there is no such folder."""
    pending = [under]
    while pending:
        folder = pending.pop()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError), os.scandir(os.path.join(root, folder)) as found:
            for item in found:
                if item.is_dir(follow_symlinks=False):
                    pending.append(folder + item.name + b"/")
                else:
                    yield folder + item.name


# ---- moving refs -----------------------------------------------------------------------------------------------------------


class RefUpdate(NamedTuple):
    """One ref from ``old`` to ``new``; NULL_HEX stands for "not there"."""

    ref: bytes
    new: bytes
    old: bytes


def split_df(updates: Iterable[RefUpdate]) -> list[list[RefUpdate]]:
    """The updates as one batch, or as two where a name must go before another can come (``a`` and ``a/b``).

    The first batch then holds just the deletions that are in the way. Each batch is one transaction.
    """
    every = list(updates)
    wanted = [update.ref for update in every if update.new != NULL_HEX]
    parents = {ref[:at] for ref in wanted for at in _slashes(ref)}
    children = set(wanted)
    first = [
        update
        for update in every
        if update.new == NULL_HEX and (update.ref in parents or any(update.ref[:at] in children for at in _slashes(update.ref)))
    ]
    if not first:
        return [every] if every else []
    gone = {update.ref for update in first}
    return [first, [update for update in every if update.ref not in gone]]


def _slashes(ref: bytes) -> list[int]:
    return [at for at, byte in enumerate(ref) if byte == 0x2F]


class RefTransaction:
    """All ref changes of one step, taken by git or refused as a whole.

    ``prepare`` takes the locks and compares old values; from then on the refs cannot change until ``commit`` or ``abort``.
    Symbolic refs are never followed, they are replaced (so HEAD becomes detached). Leaving the block without ``commit`` aborts.

    Not for two names of which one is the other's folder (``split_df``), nor for HEAD together with the branch it points at.
    """

    def __init__(self, git: Git, root: bytes, message: str, *, deadline_s: float = 20) -> None:
        if "\n" in message or "\0" in message:
            raise ValueError("a reflog message is one line")
        args = ["update-ref", "--stdin", "-z", "--no-deref", "-m", message]
        self._running = git.start_user(root, args, deadline_s=deadline_s, extra_env=IDENTITY)
        self._deadline_s = deadline_s
        self._replies = b""
        self._open = True
        self._ask(b"start")

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The git that holds the locks."""
        return self._running.process

    def update(self, ref: bytes, new: bytes, old: bytes) -> None:
        """``ref`` to ``new``, if it is at ``old`` when prepared. NULL_HEX as ``old`` creates, as ``new`` deletes."""
        _check(ref, new, old)
        if new == NULL_HEX:
            self._send(b"delete " + ref + b"\0" + old + b"\0")
        else:
            self._send(b"update " + ref + b"\0" + new + b"\0" + old + b"\0")

    def delete(self, ref: bytes, old: bytes) -> None:
        """``ref`` gone, with its log, if it is at ``old``."""
        self.update(ref, NULL_HEX, old)

    def verify(self, ref: bytes, old: bytes) -> None:
        """``ref`` held at ``old`` (NULL_HEX: held absent) while the transaction is prepared."""
        _check(ref, old)
        self._send(b"verify " + ref + b"\0" + old + b"\0")

    def extend(self, updates: Iterable[RefUpdate]) -> None:
        """Each of ``updates``."""
        for ref, new, old in updates:
            self.update(ref, new, old)

    def prepare(self) -> None:
        """Takes all locks. Raises RefMoved, RefLocked or RefRefused, nothing changed."""
        self._ask(b"prepare")

    def commit(self) -> None:
        """Makes the changes. Raises as ``prepare`` does if that was not called before."""
        self._ask(b"commit")
        self._end()

    def abort(self) -> None:
        """Gives the locks back, nothing changed; safe to call at any time."""
        if self._open:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.abort()

    def _send(self, data: bytes) -> None:
        if not self._open:
            raise RefRefused("the ref transaction has ended")
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
        except BrokenPipeError:
            self._fail()

    def _ask(self, command: bytes) -> None:
        """Sends ``start``, ``prepare`` or ``commit`` and waits for git's "ok"."""
        self._send(command + b"\0")
        assert self.process.stdin is not None and self.process.stdout is not None
        with suppress(BrokenPipeError):  # the end of its output tells the same
            self.process.stdin.flush()
        ends_at = time.monotonic() + self._deadline_s
        while b"\n" not in self._replies:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, ends_at - time.monotonic()))
            if not ready:
                self._end()
                raise RefLocked(f"git update-ref did not answer within {self._deadline_s:g} s")
            part = os.read(self.process.stdout.fileno(), 4096)
            if not part:
                self._fail()
            self._replies += part
        reply, self._replies = self._replies.split(b"\n", 1)
        if reply != command + b": ok":
            self._end()
            raise RefRefused(f"git update-ref answered {reply!r}")

    def _fail(self) -> None:
        """Raises what git said when it gave up."""
        self._open = False
        try:
            self._running.wait()
        except GitError as error:
            raise _explain(error) from None
        raise RefRefused("git update-ref ended early")

    def _end(self) -> None:
        """Closes git's input (an open transaction is then aborted) and waits for it to go. Never SIGKILL: locks would stay."""
        self._open = False
        process = self.process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(self._deadline_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(self._deadline_s)
        process.stdout.close()
        process.stderr.close()


def set_head(git: Git, root: bytes, target: bytes, reason: str) -> None:
    """HEAD pointed at a branch (``refs/heads/x``, unborn ones too) or, given an id, detached there; ``reason`` goes to its log.

    Git offers no compare-and-swap here; hold index.lock and look at HEAD first. Raises RefLocked or RefRefused.
    """
    if not _HEX.fullmatch(target) and not target.startswith(b"refs/"):
        raise ValueError("HEAD points at a full ref name or an id")
    args: list[str | bytes] = ["symbolic-ref", "-m", reason, "HEAD", target]
    if _HEX.fullmatch(target):
        args = ["update-ref", "--no-deref", "-m", reason, "HEAD", target]
    try:
        git.user(root, args, extra_env=IDENTITY)
    except GitError as error:
        raise _explain(error, b"HEAD") from None


def _check(ref: bytes, *ids: bytes) -> None:
    if not ref or b"\0" in ref or not all(_HEX.fullmatch(oid) for oid in ids):
        raise ValueError(f"bad ref name or id for {ref!r}")


def _explain(error: GitError, ref: bytes = b"") -> SafetyError:
    """What git's message means. Git has no other way to say it; its messages are untranslated (LC_ALL=C)."""
    said = error.stderr.strip()
    if not said:
        return error
    named = _REFUSED_REF.search(said)
    lock = _LOCK_EXISTS.search(said)
    ref = named[1] if named else os.path.basename(lock[1]) if lock else ref
    text = os.fsdecode(said.split(b"\n", 1)[0].removeprefix(b"fatal: ").removeprefix(b"prepare: ").removeprefix(b"commit: "))
    if lock:
        return RefLocked(f"another git process holds the lock of {os.fsdecode(ref)}: {os.fsdecode(lock[1])}.lock exists", ref)
    if any(word in said for word in _MOVED):
        return RefMoved(text, ref)
    return RefRefused(text, ref)


# ---- the stash list --------------------------------------------------------------------------------------------------------


def write_stash(
    git: Git,
    root: bytes,
    common_dir: bytes,
    entries: Sequence[StashEntry],
    expected: Sequence[StashEntry],
    reason: str,
    alone: bytes | None = None,
) -> None:
    """The stash list made to be ``entries`` (newest first), if it still is ``expected``, compared by commit ids.

    ``alone`` is what ``refs/stash`` shall be where the list is to be empty; None: it goes too.

    Lines keep identity, time and message; their old ids are chained anew, as git does when one is dropped. The stash commits must
    be in the repository. Two lock files exist for a moment; a SIGKILL in it leaves ``STASH_LOCKS`` behind.

    Raises RefMoved if the list has changed or ``refs/stash`` is another one's, RefLocked if git is at work on it.
    """
    if not entries and alone is None:
        if _current_stash(common_dir, expected):
            with RefTransaction(git, root, reason) as transaction:
                transaction.delete(STASH, expected[0].oid)
                transaction.commit()
        return
    ref = os.path.join(common_dir, STASH)
    log = os.path.join(common_dir, STASH_LOG)
    with ExitStack() as stack:
        commit_ref = stack.enter_context(_lock_file(ref))
        _current_stash(common_dir, expected)
        commit_log = stack.enter_context(_lock_file(log))
        # In git's own order (reflog expire): the log, then the ref.
        commit_log(_stash_log(entries))
        commit_ref((entries[0].oid if entries else alone or b"") + b"\n")


def finish_stash(common_dir: bytes, entries: Sequence[StashEntry], top: bytes) -> None:
    """``refs/stash`` made to be ``top``, where a ``write_stash`` of ``entries`` was killed between its log and it.

    Raises RefLocked if git is at work on it.
    """
    ref = os.path.join(common_dir, STASH)
    with _lock_file(ref) as commit_ref:
        log = parse_stash(_read_file(os.path.join(common_dir, STASH_LOG)) or b"")
        if [entry.oid for entry in log] == [entry.oid for entry in entries]:
            commit_ref(top + b"\n")


def _current_stash(common_dir: bytes, expected: Sequence[StashEntry]) -> tuple[StashEntry, ...]:
    """The list as it is now. Raises RefMoved if that is not the one expected."""
    log = _read_file(os.path.join(common_dir, STASH_LOG))
    current = parse_stash(log or b"")
    packed, _ = parse_packed_refs(_read_file(os.path.join(common_dir, PACKED_REFS)) or b"")
    loose = _read_file(os.path.join(common_dir, STASH))
    top = ref_text(loose) if loose is not None else packed.get(STASH)
    if [entry.oid for entry in current] != [entry.oid for entry in expected]:
        raise RefMoved("the stash list has changed", STASH, "git stash list")
    expired = log is not None and not current  # `reflog expire` leaves refs/stash alone behind
    if top not in (None, current[0].oid if current else None) and not expired:
        raise RefMoved("the stash list and refs/stash disagree", STASH, "git stash list")
    return current


def _stash_log(entries: Sequence[StashEntry]) -> bytes:
    lines: list[bytes] = []
    previous = NULL_HEX
    for entry in reversed(entries):
        if entry.line[41:81] != entry.oid or b"\n" in entry.line:
            raise ValueError("a stash entry's line names another commit")
        lines.append(previous + entry.line[40:] + b"\n")
        previous = entry.oid
    return b"".join(lines)


@contextmanager
def _lock_file(path: bytes) -> Iterator[Callable[[bytes], None]]:
    """Holds ``path.lock`` as git does; the function given back writes new content and renames it to ``path``."""
    lock = path + b".lock"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        name = os.path.basename(path)
        raise RefLocked(f"another git process holds the lock of {os.fsdecode(name)}: {os.fsdecode(lock)} exists", STASH) from None
    held = True

    def commit(content: bytes) -> None:
        nonlocal held
        with suppress(FileNotFoundError):
            os.fchmod(descriptor, stat.S_IMODE(os.lstat(path).st_mode))
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
        os.rename(lock, path)
        held = False

    try:
        yield commit
    finally:
        os.close(descriptor)
        if held:
            os.unlink(lock)
