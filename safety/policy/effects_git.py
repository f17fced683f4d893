"""What git commands would do: one function a verb, told from the verb's options alone.

git takes every unique prefix of a long option and bundles letters ([guard] 1.2); ``operands.read`` knows both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from safety.policy import places
from safety.policy.operands import Given, Spec, read, spec
from safety.policy.patterns import Pattern
from safety.policy.scene import Scene, secret_path, writing
from safety.policy.shell import Command, GitCommand, Word, git_words
from safety.policy.values import Effect, Question

_PROTECTED = Pattern(
    r"(?:refs/heads/)?(?:main|master|trunk|develop|development|dev|prod|production|staging|stable|default|release(?:[/-].*)?"
    r"|HEAD)"
)
_OWN_REF = Pattern(r"refs/(?:git-)?safety(?:/.*)?")


@dataclass(frozen=True)
class Call:
    """One git command: its words read, and where it acts. ``where`` is the work tree's folder, None if not known."""

    command: Command
    git: GitCommand
    given: Given
    where: str | None
    scene: Scene

    @property
    def ours(self) -> bool:
        """Surely the workspace's own repository, by its name."""
        facts = self.scene.facts
        if facts.repository is None or self.where is None or not self.own_git_dir:
            return False
        return self.where in (facts.repository, facts.root)

    @property
    def own_git_dir(self) -> bool:
        """Whether no other git directory was named."""
        named = self.git.git_dir or self.command.env.get("GIT_DIR") or ""
        path = places.absolute(named, self.git.cwd or self.command.cwd) if named else None
        return not named or path == self.scene.facts.git_dir

    @property
    def folder(self) -> str:
        return self.where or ""

    def refs(self, kind: str, target: str, *pieces: str, merged: str = "", instead: str = "") -> Effect:
        """An effect upon refs, which a snapshot of the same repository brings back."""
        if _OWN_REF.fullmatch(target):
            return Effect("self.defense", target, "deny")
        question = Question("merged", merged, (self.folder,)) if merged else Question("refs", self.folder)
        return Effect(kind, target, "ask", pieces=pieces or ("refs",), question=question, instead=instead, ours=self.ours)

    def discards(self, *paths: Word, index: bool = False) -> Effect:
        """Edits of tracked files that are thrown away, all or those below some paths."""
        names = tuple(word.text for word in paths if word.certain) if all(word.certain for word in paths) else ()
        if self.where is None or not self.own_git_dir:
            return Effect(
                "worktree.discard", self.folder or "another repository", "ask", detail="the repository is not the workspace's"
            )
        return Effect(
            "worktree.discard",
            self.where,
            "ask",
            question=Question("discard", self.where, names),
            pieces=("index",) if index else (),
            instead="git stash",
        )

    def submodules(self, *names: str) -> Effect:
        return Effect(
            "submodule.discard", " ".join(names) or "all submodules", "ask", question=Question("submodules", self.folder, names)
        )


Handler = Callable[[Call], Iterable[Effect]]
_VERBS: dict[str, tuple[Spec, Handler]] = {}


def _verb(names: str, options: str = "", **flags: bool) -> Callable[[Handler], Handler]:
    def put(handler: Handler) -> Handler:
        for name in names.split():
            _VERBS[name] = (spec(options, **flags), handler)
        return handler

    return put


def git_effects(command: Command, scene: Scene) -> Iterator[Effect]:
    """Every effect of one git command."""
    git = git_words(command)
    if not git.verb:
        # A verb that is not certain but has a default counts as its default.
        word = command.words[-len(git.args) - 1]
        if word.certain or not re.fullmatch(r"[a-z][a-z-]+", word.text):
            return
        git = replace(git, verb=word.text)
    yield from _configured(git)
    known, handler = _VERBS.get(git.verb, (_PLAIN, _nothing))
    given = read(git.args, known)
    if given.has("help") or (given.has("h") and "h" not in known.short):
        return
    yield from _runs(git, command, scene, given)
    where = places.absolute(git.work_tree, git.cwd or command.cwd) if git.work_tree else (git.cwd or command.cwd)
    if git.git_dir and not git.work_tree and where is not None:
        named = places.absolute(git.git_dir, where)
        if named is not None and named != scene.facts.git_dir:
            where = named.removesuffix("/.git")
    yield from handler(Call(command, git, given, where, scene))


_PLAIN = spec("output=")


def _nothing(call: Call) -> Iterator[Effect]:
    yield from ()


# ---- work tree and index -------------------------------------------------------------------------------------------------------


@_verb(
    "reset",
    "hard soft mixed merge keep p|patch q|quiet N|intent-to-add pathspec-from-file= recurse-submodules refresh no-refresh",
)
def _reset(call: Call) -> Iterator[Effect]:
    given = call.given
    mode = given.last("hard", "soft", "mixed", "merge", "keep")
    if given.unsure:
        mode = "hard"
    if mode not in ("hard", "merge", "keep"):
        yield Effect("index.reset", call.folder, "allow")
        return
    yield call.discards(index=True)
    if given.on("recurse-submodules") or _recurses(call):
        yield call.submodules()
    if given.operands and given.operands[0].text not in ("HEAD", "@"):
        yield call.refs("ref.move", "HEAD", "refs", "head")


def _recurses(call: Call) -> bool:
    return (call.git.config.get("submodule.recurse") or "").lower() in ("true", "yes", "on", "1")


@_verb(
    "checkout",
    "f|force b= B= t|track d|detach orphan= ours theirs m|merge conflict= p|patch pathspec-from-file= pathspec-file-nul q|quiet l"
    " overwrite-ignore no-overwrite-ignore ignore-other-worktrees recurse-submodules overlay no-overlay guess no-guess"
    " ignore-skip-worktree-bits"
    " progress 2|ours 3|theirs",
)
def _checkout(call: Call) -> Iterator[Effect]:
    given = call.given
    if given.has("B"):
        name = given.value("B") or ""
        yield call.refs("ref.move", name)
    paths = given.literal
    if paths is None and not given.has("b", "B", "orphan", "detach", "t", "track"):
        if len(given.rest) > 1 or any(word.text in (".", "./", "..", "*", ":/") or word.glob for word in given.rest):
            paths = given.rest if len(given.rest) == 1 or given.rest[0].text in (".", "..") else given.rest[1:]
        elif given.rest and given.rest[0].text not in ("-", "HEAD", "@"):
            word = given.rest[0]
            yield replace(call.discards(word), question=Question("checkout", call.folder, (word.text,)))
    if paths or given.has("pathspec-from-file", "patch") or (paths is not None and call.command.appended):
        yield call.discards(*(paths or ()), index=len(given.rest) > 0)
    elif given.has("force", "merge") or given.unsure:
        yield call.discards(index=True)
    if given.has("force") and (given.on("recurse-submodules") or _recurses(call)):
        yield call.submodules()


@_verb(
    "switch",
    "c|create= C|force-create= d|detach f|force discard-changes m|merge conflict= orphan= t|track guess q|quiet"
    " recurse-submodules"
    " ignore-other-worktrees progress",
)
def _switch(call: Call) -> Iterator[Effect]:
    given = call.given
    if given.has("force-create"):
        name = given.value("force-create") or ""
        yield call.refs("ref.move", name)
    if given.has("force", "discard-changes", "merge") or given.unsure:
        yield call.discards(index=True)
        if given.on("recurse-submodules") or _recurses(call):
            yield call.submodules()


@_verb(
    "restore",
    "s|source= S|staged W|worktree p|patch q|quiet progress ours theirs m|merge conflict= ignore-unmerged"
    " ignore-skip-worktree-bits"
    " overlay recurse-submodules pathspec-from-file= pathspec-file-nul 2|ours 3|theirs",
)
def _restore(call: Call) -> Iterator[Effect]:
    given = call.given
    if given.has("staged") and not given.has("worktree"):
        yield Effect("index.reset", call.folder, "allow")
        return
    yield call.discards(*given.operands, index=given.has("staged"))
    if given.on("recurse-submodules") or _recurses(call):
        yield call.submodules()


@_verb("clean", "d f|force i|interactive n|dry-run q|quiet x X e|exclude=")
def _clean(call: Call) -> Iterator[Effect]:
    given = call.given
    if given.on("dry-run") or given.has("interactive"):
        return
    forced = sum(name == "force" for name, _ in given.options)
    lenient = (call.git.config.get("clean.requireforce") or "").lower() in ("false", "no", "off", "0")
    if not forced and not lenient and not given.unsure:
        return
    flags = [letter for letter in "dxX" if given.has(letter)]
    if forced > 1:
        flags.append("ff")
    if given.unsure:
        flags = ["d", "x", "ff"]
    if call.where is None:
        yield Effect("worktree.clean", "", "ask", detail="the folder is not known before it runs")
        return
    excluded = [f"!{value.text}" for value in given.values("exclude")]
    paths = [word.text for word in given.operands if word.certain]
    yield Effect(
        "worktree.clean",
        call.where,
        "ask",
        question=Question("clean", call.where, (*flags, *excluded, "--", *paths)),
        instead="git clean -fd" if {"x", "X", "ff"} & set(flags) else "git stash -u",
    )


@_verb("rm", "f|force r cached n|dry-run q|quiet ignore-unmatch sparse pathspec-from-file= pathspec-file-nul")
def _rm(call: Call) -> Iterator[Effect]:
    if call.given.has("force") and not call.given.has("cached", "dry-run"):
        yield call.discards(*call.given.operands, index=True)
        yield call.submodules(*(word.text for word in call.given.operands if word.certain))


@_verb("mv", "f|force k n|dry-run v|verbose sparse")
def _mv(call: Call) -> Iterator[Effect]:
    operands = call.given.operands
    if call.given.has("force") and operands and not call.given.has("dry-run"):
        yield from writing(call.scene.target(operands[-1], call.where), call.scene)


@_verb(
    "read-tree", "m u i reset prefix= n|dry-run v q empty index-output= aggressive trivial no-sparse-checkout recurse-submodules"
)
def _read_tree(call: Call) -> Iterator[Effect]:
    if call.given.has("dry-run"):
        return
    if call.given.has("u"):
        yield call.discards(index=True)
        if call.given.has("recurse-submodules"):
            yield call.submodules()
    else:
        yield Effect("index.reset", call.folder, "ask", pieces=("index",))


@_verb("checkout-index", "a|all f|force u|index q|quiet n|no-create prefix= stage= temp stdin z")
def _checkout_index(call: Call) -> Iterator[Effect]:
    if call.given.has("force") and not call.given.has("prefix", "temp"):
        yield call.discards(*call.given.operands)


@_verb(
    "apply",
    "check stat numstat summary index cached R|reverse 3|3way p= C= include= exclude= directory= whitespace= reject N"
    "|intent-to-add z v|verbose"
    " q|quiet unsafe-paths allow-empty build-fake-ancestor= unidiff-zero recount inaccurate-eof ours theirs union apply",
)
def _apply(call: Call) -> Iterator[Effect]:
    given = call.given
    if given.has("cached") or (given.has("check", "stat", "numstat", "summary") and not given.has("apply")):
        return
    yield call.discards(index=given.has("index"))
    if given.has("unsafe-paths"):
        yield Effect("path.overwrite", "outside the work tree", "ask")


@_verb(
    "am", "abort quit skip continue r|resolved n|no-verify 3|3way i|interactive q|quiet s|signoff k|keep directory= C= p= retry"
)
def _am(call: Call) -> Iterator[Effect]:
    yield from _verified(call)
    yield from _aborts(call)


@_verb("cherry-pick revert", "abort quit skip continue n|no-commit e|edit m|mainline= s|signoff x X|strategy-option= strategy=")
def _pick(call: Call) -> Iterator[Effect]:
    yield from _aborts(call)


@_verb(
    "merge",
    "abort quit continue n|no-stat stat ff ff-only no-ff squash commit no-commit e|edit m= F|file= s|strategy= X"
    "|strategy-option= S no-verify"
    " into-name= autostash q|quiet v|verbose allow-unrelated-histories log signoff verify-signatures",
)
def _merge(call: Call) -> Iterator[Effect]:
    yield from _verified(call)
    yield from _aborts(call)


def _aborts(call: Call) -> Iterator[Effect]:
    if call.given.has("abort", "skip", "quit"):
        yield call.discards(index=True)


def _verified(call: Call) -> Iterator[Effect]:
    if call.given.on("no-verify"):
        yield Effect(
            "gate.bypass", f"git {call.git.verb} --no-verify", "ask", instead=f"git {call.git.verb}, without --no-verify"
        )


@_verb(
    "commit",
    "a|all amend n|no-verify m|message= F|file= C|reuse-message= c|reedit-message= fixup= squash= author= date= t|template="
    " p|patch dry-run"
    " e|edit no-edit q|quiet v|verbose s|signoff allow-empty allow-empty-message reset-author short porcelain long z|null i"
    "|include o|only"
    " cleanup= u|untracked-files=? S|gpg-sign=? no-gpg-sign status no-status no-post-rewrite trailer= pathspec-from-file="
    " pathspec-file-nul"
    " interactive branch ahead-behind",
)
def _commit(call: Call) -> Iterator[Effect]:
    if call.given.has("dry-run"):
        return
    yield from _verified(call)
    if call.given.on("amend"):
        yield call.refs("history.rewrite", "HEAD", "refs", "head")


@_verb(
    "add",
    "f|force A|all u|update n|dry-run p|patch i|interactive N|intent-to-add v|verbose e|edit chmod= pathspec-from-file="
    " refresh renormalize",
)
def _add(call: Call) -> Iterator[Effect]:
    if call.given.has("force") and not call.given.has("dry-run"):
        for word in call.given.operands:
            if secret_path(call.scene.target(word, call.where), call.scene):
                yield Effect("secret.leak", word.text, "ask", detail="it goes into the history")


# ---- refs and history ----------------------------------------------------------------------------------------------------------


@_verb(
    "branch",
    "d|delete D m|move M c|copy C f|force a|all r|remotes l|list v|verbose q|quiet t|track no-track u|set-upstream-to="
    " unset-upstream"
    " edit-description show-current contains= no-contains= merged=? no-merged=? points-at= format= sort= column color"
    " abbrev= create-reflog"
    " recurse-submodules i|ignore-case",
)
def _branch(call: Call) -> Iterator[Effect]:
    given = call.given
    names = given.operands
    forced = given.has("force")
    if given.has("D") or (given.has("delete") and (forced or given.has("remotes"))):
        if call.command.appended and not names:
            yield call.refs("ref.delete", "branches that are named as it runs")
        for word in names:
            merged = "" if given.has("remotes") else word.text
            yield call.refs("ref.delete", word.text, merged=merged, instead=f"git branch -d {word.text}")
    elif given.has("M", "C") or (given.has("move", "copy") and forced):
        if names:
            yield call.refs("ref.move", names[-1].text)
    elif forced and not given.has("list", "delete") and names:
        yield call.refs("ref.move", names[0].text)


@_verb(
    "tag",
    "d|delete f|force a|annotate s|sign u|local-user= m|message= F|file= l|list n v|verify e|edit cleanup= sort= format="
    " contains= no-contains="
    " merged=? no-merged=? points-at= column color create-reflog trailer= i|ignore-case",
)
def _tag(call: Call) -> Iterator[Effect]:
    given = call.given
    if given.has("delete"):
        for word in given.operands or [Word("tags", False)]:
            yield call.refs("ref.delete", f"tag {word.text}")
    elif given.has("force") and not given.has("list", "verify"):
        yield call.refs("ref.move", f"tag {given.operands[0].text}" if given.operands else "a tag")


@_verb("update-ref", "d m= no-deref stdin z create-reflog batch-updates")
def _update_ref(call: Call) -> Iterator[Effect]:
    given = call.given
    if given.has("stdin"):
        lines = call.command.stdin
        if lines is None:
            yield _any_ref(call)
            return
        for line in re.split(r"[\n\0]", lines):
            words = line.split()
            if words[:1] and words[0] in ("update", "delete", "symref-update", "symref-delete") and len(words) > 1:
                yield call.refs("ref.delete" if "delete" in words[0] else "ref.move", words[1])
        return
    if not given.rest:
        if call.command.appended:
            yield _any_ref(call)
        return
    ref = given.rest[0]
    if not ref.certain and not re.match(r"refs/(heads|tags|remotes|stash|notes)", ref.text):
        yield _any_ref(call)
    elif ref.text == "refs/stash":
        yield call.refs("stash.drop", "all stash entries", "stash")
    elif given.has("d"):
        yield call.refs("ref.delete", ref.text)
    elif len(given.rest) > 1:
        yield call.refs("ref.move", ref.text)


def _any_ref(call: Call) -> Effect:
    """Refs that are not known: they may be those that keep snapshots, which the snapshots do not bring back."""
    before = call.command.fed_by
    words = [word.text for word in before.words] if before else []
    limited = [word for word in words if re.fullmatch(r"(refs/)?(heads|tags|remotes)(/.*)?", word)]
    if limited:
        return call.refs("ref.delete", " ".join(limited))
    return Effect("ref.delete", "any ref, also those that hold snapshots", "ask", instead="git for-each-ref refs/heads | ...")


@_verb("symbolic-ref", "d|delete q|quiet short m= recurse no-recurse")
def _symbolic_ref(call: Call) -> Iterator[Effect]:
    if call.given.has("delete") and call.given.rest:
        yield call.refs("ref.delete", call.given.rest[0].text, "refs", "head")


@_verb("replace notes", "d|delete f|force l|list e|edit graft convert-graft-file format= m= F= C= c=")
def _replace(call: Call) -> Iterator[Effect]:
    given = call.given
    subverb = given.rest[0].text if given.rest else ""
    if call.git.verb == "notes":
        if subverb in ("remove", "prune") or (subverb in ("add", "copy", "append") and given.has("force")):
            yield call.refs("ref.move", "refs/notes/commits")
    elif given.has("delete", "force"):
        yield call.refs("ref.delete", "refs/replace")


@_verb(
    "stash",
    "a|all u|include-untracked k|keep-index m|message= q|quiet p|patch index S|staged pathspec-from-file= pathspec-file-nul",
    stops=False,
)
def _stash(call: Call) -> Iterator[Effect]:
    subverb = call.given.rest[0].text if call.given.rest else ""
    if subverb in ("drop", "clear", "pop", "branch") or (call.given.rest and not call.given.rest[0].certain):
        yield call.refs("stash.drop", "all stash entries" if subverb == "clear" else "a stash entry", "stash")
    if subverb in ("pop", "apply", "branch"):
        yield Effect("index.reset", call.folder, "allow")


@_verb(
    "rebase",
    "abort quit skip continue edit-todo i|interactive x|exec= onto= r|rebase-merges=? root autosquash autostash f"
    "|force-rebase no-ff n|no-stat"
    " no-verify verify s|strategy= X|strategy-option= m|merge apply keep-base update-refs q|quiet v|verbose signoff empty="
    " C= whitespace="
    " show-current-patch fork-point S|gpg-sign=? committer-date-is-author-date reset-author-date k|keep-empty",
)
def _rebase(call: Call) -> Iterator[Effect]:
    if call.given.has("show-current-patch", "edit-todo"):
        return
    yield from _verified(call)
    yield from _aborts(call)
    yield call.refs("history.rewrite", "the current branch", "refs", "head")


@_verb(
    "pull",
    "f|force r|rebase=? no-rebase ff ff-only no-ff a|append all p|prune t|tags no-tags n|no-stat e|edit s|strategy= X"
    "|strategy-option= q|quiet"
    " v|verbose squash commit autostash depth= unshallow upload-pack= dry-run k|keep j|jobs= o|server-option= set-upstream"
    " no-verify verify"
    " allow-unrelated-histories recurse-submodules=? stat log signoff",
)
def _pull(call: Call) -> Iterator[Effect]:
    given = call.given
    if given.has("dry-run"):
        return
    yield from _verified(call)
    yield _contact(call)
    if given.has("force", "prune", "rebase") or any(word.text.startswith("+") for word in given.rest):
        yield call.refs("ref.move", "branches and remote-tracking branches")


@_verb(
    "fetch",
    "f|force p|prune P|prune-tags a|append all multiple t|tags n|no-tags dry-run k|keep j|jobs= depth= deepen="
    " shallow-since= unshallow"
    " update-shallow q|quiet v|verbose upload-pack= u|update-head-ok o|server-option= refmap= recurse-submodules=?"
    " no-recurse-submodules"
    " set-upstream negotiation-tip= filter= atomic porcelain write-fetch-head auto-maintenance stdin refetch",
)
def _fetch(call: Call) -> Iterator[Effect]:
    given = call.given
    if given.has("dry-run"):
        return
    yield _contact(call)
    if given.has("prune", "prune-tags", "force") or any(word.text.startswith("+") for word in given.rest):
        yield call.refs("ref.move", "remote-tracking branches")


def _contact(call: Call) -> Effect:
    return Effect("network.contact", call.given.rest[0].text if call.given.rest else "the remote", "allow")


@_verb(
    "clone ls-remote",
    "upload-pack= u= b|branch= o|origin= c|config= depth= reference= template= separate-git-dir= j|jobs= filter=",
)
def _clone(call: Call) -> Iterator[Effect]:
    yield _contact(call)


@_verb(
    "filter-branch",
    "f|force setup= subdirectory-filter= env-filter= tree-filter= index-filter= parent-filter="
    " msg-filter= commit-filter="
    " tag-name-filter= prune-empty original= d= state-branch=",
    abbreviates=False,
)
def _filter_branch(call: Call) -> Iterator[Effect]:
    revisions = [word.text for word in call.given.operands]
    if any(
        text in ("--all", "--glob=*") or text.startswith(("--glob=refs/safety", "refs/safety")) for text in revisions
    ) or call.given.has("all"):
        yield Effect(
            "history.rewrite",
            "every ref, also those that hold snapshots",
            "ask",
            instead="git filter-branch ... -- --branches --tags",
        )
    else:
        yield call.refs("history.rewrite", " ".join(revisions) or "HEAD", "refs", "head")


@_verb("filter-repo", "", abbreviates=False)
def _filter_repo(call: Call) -> Iterator[Effect]:
    if not call.given.has("analyze", "dry-run", "version"):
        yield Effect(
            "history.rewrite", "the whole history; old objects are pruned at once", "ask", instead="work in a fresh clone"
        )


@_verb("fast-import", "force quiet")
def _fast_import(call: Call) -> Iterator[Effect]:
    if call.given.has("force"):
        yield call.refs("ref.move", "branches")


# ---- recovery: reflog and objects ----------------------------------------------------------------------------------------------

_UNITS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
    "fortnight": 1209600,
    "month": 2592000,
    "year": 31536000,
}


def lenient(when: str | None) -> bool:
    """Whether an expiry date keeps at least the last day. git reads ``2.weeks.ago``; whatever it cannot read is now."""
    text = (when or "").lower().strip()
    if text in ("never", "false"):
        return True
    match = re.fullmatch(
        r"(\d+|a|an|one|two|three|last)[. ]?(second|minute|hour|day|week|fortnight|month|year)s?(?:[. ]ago)?", text
    )
    if match:
        count = int(match[1]) if match[1].isdigit() else {"two": 2, "three": 3}.get(match[1], 1)
        return count * _UNITS[match[2]] >= 86400
    return bool(re.fullmatch(r"(?:19|20)[0-2]\d[-/.][01]?\d[-/.][0-3]?\d.*", text)) and not text.startswith(("209", "208", "207"))


def _config_expires(call: Call, *keys: str) -> bool:
    return any(
        not lenient(value)
        for key, value in call.git.config.items()
        if key.lower() in keys or (key.lower().startswith("gc.") and key.lower().rpartition(".")[2] in keys)
    )


def _prunes(call: Call, words: str) -> Effect:
    return Effect(
        "objects.prune", words, "ask", pieces=("objects",), instead="git gc, which keeps what is younger than two weeks"
    )


@_verb("reflog", "expire= expire-unreachable= all updateref rewrite stale-fix n|dry-run verbose single-worktree")
def _reflog(call: Call) -> Iterator[Effect]:
    given = call.given
    subverb = given.rest[0].text if given.rest else ""
    if given.has("dry-run") or subverb not in ("expire", "delete", "drop"):
        return
    names = [word.text for word in given.operands[1:]]
    if subverb == "delete" and names and all(name.removeprefix("refs/").startswith("stash@") for name in names):
        yield call.refs("stash.drop", " ".join(names), "stash")
    elif subverb in ("delete", "drop"):
        yield Effect("reflog.expire", " ".join(names) or "a reflog", "ask", pieces=("reflog",))
    elif any(not lenient(value.text) for value in given.values("expire", "expire-unreachable")) or _config_expires(
        call, "gc.reflogexpire", "gc.reflogexpireunreachable", "reflogexpire", "reflogexpireunreachable"
    ):
        yield Effect("reflog.expire", "reflogs", "ask", pieces=("reflog",), instead="git reflog expire --expire=90.days.ago")


@_verb("gc", "aggressive auto prune=? no-prune q|quiet force keep-largest-pack cruft max-cruft-size= detach")
def _gc(call: Call) -> Iterator[Effect]:
    given = call.given
    if given.last("prune", "no-prune") == "prune" and given.values("prune"):
        if not lenient(given.value("prune")):
            yield _prunes(call, "objects that no ref names, at once")
            return
    elif _config_expires(call, "gc.pruneexpire") and not given.has("no-prune"):
        yield _prunes(call, "objects that no ref names, at once")
    if _config_expires(call, "reflogexpire", "reflogexpireunreachable"):
        yield Effect("reflog.expire", "reflogs", "ask", pieces=("reflog",))


@_verb("maintenance", "task= auto schedule= q|quiet detach")
def _maintenance(call: Call) -> Iterator[Effect]:
    if call.given.rest and call.given.rest[0].text == "run":
        yield from _gc(call)


@_verb("prune", "n|dry-run v|verbose progress expire= exclude-promisor-objects")
def _prune(call: Call) -> Iterator[Effect]:
    given = call.given
    if not given.has("dry-run") and (not given.has("expire") or not lenient(given.value("expire"))):
        yield _prunes(call, "objects that no ref names")


@_verb(
    "repack",
    "a A d f F l n q|quiet k|keep-unreachable cruft cruft-expiration= unpack-unreachable= i|delta-islands b"
    "|write-bitmap-index window= depth="
    " threads= m|write-midx g|geometric= pack-kept-objects keep-pack= max-pack-size= filter= filter-to= expire-to=",
)
def _repack(call: Call) -> Iterator[Effect]:
    given = call.given
    if not given.has("d"):
        return
    drops = given.has("a") and not given.has("keep-unreachable", "cruft", "A")
    at_once = [value for value in given.values("cruft-expiration", "unpack-unreachable") if not lenient(value.text)]
    if drops or at_once:
        yield _prunes(call, "packed objects that no ref names")


@_verb("lfs", "f|force d|dry-run everything verify-remote recent include= I= exclude= X= above= all", abbreviates=False)
def _lfs(call: Call) -> Iterator[Effect]:
    given = call.given
    subverb = given.rest[0].text if given.rest else ""
    if given.has("dry-run"):
        return
    if subverb == "prune" or (subverb == "fetch" and given.has("prune")):
        yield Effect("objects.prune", "large file objects of git-lfs", "ask", instead="git lfs prune --dry-run")
    elif subverb == "migrate" and len(given.rest) > 1 and given.rest[1].text != "info":
        if given.has("everything"):
            yield Effect("history.rewrite", "every ref, also those that hold snapshots", "ask")
        else:
            yield call.refs("history.rewrite", "branches", "refs", "head")
            yield call.discards()
    elif subverb == "uninstall":
        yield Effect("hook.write", "the hooks of git-lfs", "ask", pieces=("hooks", "config"))
    elif subverb == "unlock" and given.has("force"):
        yield Effect("remote.delete", "somebody else's lock", "ask")


@_verb("annex", "f|force", abbreviates=False)
def _annex(call: Call) -> Iterator[Effect]:
    subverb = call.given.rest[0].text if call.given.rest else ""
    if subverb in ("drop", "dropunused", "uninit", "dead") and (call.given.has("force") or subverb in ("uninit", "dead")):
        yield Effect("objects.prune", "contents that git-annex keeps", "ask")


@_verb("rerere", "")
def _rerere(call: Call) -> Iterator[Effect]:
    if call.given.rest and call.given.rest[0].text in ("forget", "clear"):
        yield Effect("git.forget", "recorded resolutions of conflicts", "ask")


# ---- other work trees, submodules ----------------------------------------------------------------------------------------------


@_verb(
    "worktree",
    "f|force b= B= d|detach checkout no-checkout lock reason= n|dry-run v|verbose expire= porcelain orphan track guess q|quiet z",
)
def _worktree(call: Call) -> Iterator[Effect]:
    given = call.given
    subverb = given.rest[0].text if given.rest else ""
    if subverb == "remove" and (given.has("force") or any(not word.certain for word in given.rest)):
        for word in given.operands[1:] or [Word("", False)]:
            path = call.scene.target(word, call.where).path
            yield Effect(
                "worktree.remove",
                path or word.text or "a work tree",
                "ask",
                question=Question("worktree", path) if path else None,
                instead=f"git worktree remove {word.text}, which refuses while there is uncommitted work",
            )
    elif subverb == "add" and given.has("B"):
        yield call.refs("ref.move", given.value("B") or "")


@_verb(
    "submodule",
    "f|force all init recursive remote checkout merge rebase n|no-fetch N reference= depth= j|jobs= b|branch= name= q|quiet"
    " cached files"
    " progress recommend-shallow no-recommend-shallow single-branch",
    abbreviates=False,
)
def _submodule(call: Call) -> Iterator[Effect]:
    given = call.given
    subverb = given.rest[0].text if given.rest else ""
    names = tuple(word.text for word in given.operands[1:] if word.certain)
    if (subverb == "deinit" and given.has("force")) or (subverb == "update" and given.has("force")):
        yield call.submodules(*names)


@_verb("sparse-checkout", "cone no-cone sparse-index stdin skip-checks")
def _sparse(call: Call) -> Iterator[Effect]:
    yield from ()


# ---- remotes and configuration -------------------------------------------------------------------------------------------------


@_verb(
    "remote", "v|verbose add delete push all t= m= f n|dry-run p|prune tags no-tags mirror= a|auto d|delete q", abbreviates=False
)
def _remote(call: Call) -> Iterator[Effect]:
    given = call.given
    words = [word.text for word in given.operands]
    subverb = words[0] if words else ""
    name = words[1] if len(words) > 1 else ""
    if subverb in ("remove", "rm"):
        yield Effect(
            "config.write",
            f"remote {name}: its address, its settings and its remote-tracking branches",
            "ask",
            pieces=("config", "refs"),
        )
    elif subverb == "set-url" and not given.has("add"):
        yield Effect("config.write", f"the address of remote {name}", "ask", pieces=("config",))
    elif (subverb == "prune" or (subverb == "update" and given.has("prune"))) and not given.has("dry-run"):
        yield call.refs("ref.delete", f"remote-tracking branches of {name or 'the remotes'}")
    elif subverb == "set-branches" and not given.has("add"):
        yield Effect("config.write", f"what is fetched from {name}", "ask", pieces=("config",))


_READS_CONFIG = ("get", "get-all", "get-regexp", "get-urlmatch", "list", "l", "get-color", "get-colorbool", "name-only")
_GATE_KEYS = ("core.hookspath", "init.templatedir")
_COMMAND_KEYS = Pattern(
    r"core\.(?:fsmonitor|sshcommand|pager|editor|askpass|alternaterefscommand|gitproxy)|sequence\.editor|gpg\.(?:\w+\.)?program"
    r"|credential\.(?:.+\.)?helper|diff\.external|(?:diff|difftool|mergetool|filter|merge|browser|man|pager)\..*"
    r"(?:command|textconv|cmd|clean|smudge|process|driver|path)|pager\..*|uploadpack\.packobjectshook|alias\..*"
    r"|interactive\.difffilter"
    r"|remote\..*\.(?:uploadpack|receivepack|vcs)|sendemail\..*cmd|trailer\..*(?:command|cmd)|web\.browser|receive\.proc.*"
)
_REDIRECT_KEYS = Pattern(r"url\..*\.(?:insteadof|pushinsteadof)|remote\..*\.(?:url|pushurl|proxy)|http\.proxy|core\.gitproxy")


@_verb(
    "config",
    "f|file= global system local worktree blob= get get-all get-regexp get-urlmatch= add replace-all unset unset-all"
    " rename-section"
    " remove-section l|list e|edit z|null name-only show-origin show-scope type= bool int path default= get-color="
    " get-colorbool= fixed-value"
    " includes all regexp value= comment= url= append",
)
def _config(call: Call) -> Iterator[Effect]:
    given = call.given
    words = [word.text for word in given.operands]
    if (
        words[:1]
        and words[0] in ("get", "list", "set", "unset", "rename-section", "remove-section", "edit")
        and not given.has(*_READS_CONFIG)
    ):
        subverb, *words = words
    else:
        named = given.last("unset", "unset-all", "rename-section", "remove-section", "edit", "replace-all", "add")
        subverb = "get" if given.has(*_READS_CONFIG) else (named or ("set" if len(words) > 1 else "get"))
    if subverb in ("get", "list") or not words:
        return
    key = words[0].lower()
    scope = given.last("global", "system", "local", "worktree", "file") or "local"
    if key.startswith(("safety.", "git-safety.")):
        yield Effect("self.defense", key, "ask")
    elif key in _GATE_KEYS or (key == "core.bare" and subverb == "set"):
        yield Effect("gate.bypass", f"{key}: which hooks run, for good", "ask", instead="leave the hooks as they are")
    elif subverb in ("unset", "unset-all", "remove-section", "rename-section"):
        yield _changes_config(call, key, scope, subverb)
    elif subverb in ("set", "replace-all", "add") and len(words) > 1:
        if _COMMAND_KEYS.fullmatch(key):
            yield from _command_of(key, words[1], call.scene, call.where)
        if key.startswith("gc.") and "expire" in key and not lenient(words[1]):
            yield Effect("config.write", f"{key}: old objects go at the next clean-up", "ask")
        elif subverb != "add":
            yield _changes_config(call, key, scope, "set", words[1])


def _changes_config(call: Call, key: str, scope: str, how: str, value: str = "") -> Effect:
    question = Question("config", key, (scope, call.folder, how, value))
    return Effect("config.write", key, "ask", pieces=("config",) if scope in ("local", "worktree") else (), question=question)


def _command_of(key: str, value: str, scene: Scene, where: str | None) -> Iterator[Effect]:
    """What git would run because of a setting."""
    if key.startswith("alias.") and not value.startswith("!"):
        value = f"git {value}"
    if value.lower() not in ("true", "false", "0", "1", ""):
        yield from scene.again(value.removeprefix("!"), where)


def _configured(git: GitCommand) -> Iterator[Effect]:
    """What ``-c`` settings of this one command switch off; what they make git run, the parse has followed."""
    for key in git.config:
        lower = key.lower()
        if lower in _GATE_KEYS:
            yield Effect("gate.bypass", f"-c {key}", "ask", instead="the same command without it")


def _runs(git: GitCommand, command: Command, scene: Scene, given: Given) -> Iterator[Effect]:
    """What an address makes git run, and the files that options name."""
    for word in given.rest:
        if word.text.startswith("ext::"):
            yield from scene.again(word.text[5:], command.cwd)
    output = (
        given.value("output")
        if git.verb in ("diff", "log", "show", "format-patch")
        else given.value("o")
        if git.verb == "archive"
        else None
    )
    if output:
        yield from writing(scene.target(Word(output), command.cwd), scene)


# ---- push ----------------------------------------------------------------------------------------------------------------------


@_verb(
    "push send-pack",
    "f|force d|delete n|dry-run all branches mirror tags follow-tags prune atomic porcelain q|quiet v|verbose u|set-upstream"
    " progress thin"
    " force-with-lease=? force-if-includes no-force-with-lease verify no-verify signed=? o|push-option= repo= receive-pack= exec="
    " recurse-submodules=? 4|ipv4 6|ipv6",
)
def _push(call: Call) -> Iterator[Effect]:
    given = call.given
    if given.on("no-verify"):
        yield from _verified(call)
    if given.on("dry-run"):
        return
    remote = given.value("repo") or (given.rest[0].text if given.rest else "")
    specs = given.operands[1:] if not given.has("repo") else given.operands
    yield Effect("network.contact", remote or "the remote", "allow")
    yield from _unknown_remote(call, remote)
    forced = given.on("force") or given.unsure
    lease = given.last("force-with-lease", "no-force-with-lease") == "force-with-lease"
    config = {key.lower(): value or "" for key, value in call.git.config.items()}
    configured = any(
        key.startswith("remote.") and key.endswith(".push") and value.startswith("+") for key, value in config.items()
    )
    mirror = given.on("mirror") or any(key.startswith("remote.") and key.endswith(".mirror") for key in config)
    if mirror:
        yield Effect("remote.overwrite", f"every ref of {remote or 'the remote'}", "deny", instead="git push --all")
        return
    if given.on("prune"):
        yield Effect(
            "remote.delete",
            f"branches of {remote or 'the remote'} that are not here",
            "ask",
            instead="git push --prune --dry-run",
        )
    if given.on("delete"):
        for word in specs or [Word("branches", False)]:
            yield Effect("remote.delete", f"{word.text} on {remote or 'the remote'}", "ask")
        return
    for word in specs:
        text = word.text
        if not word.certain and not re.match(r"[\w/.-]", text):
            forced = True
        if text.startswith(":") and len(text) > 1:
            yield Effect("remote.delete", f"{text[1:]} on {remote}", "ask")
        elif text.startswith("+"):
            yield _overwrites(call, remote, text.partition(":")[2] or text[1:], leased=False)
    if forced or configured:
        yield from (_overwrites(call, remote, dst, leased=False) for dst in _destinations(call, specs))
    elif lease:
        yield from (_overwrites(call, remote, dst, leased=_leased(given, dst)) for dst in _destinations(call, specs))


def _destinations(call: Call, specs: list[Word]) -> list[str]:
    """The branches that a push goes to; an empty name is the one checked out."""
    if call.given.has("all", "branches"):
        return ["all branches"]
    names = [word.text.partition(":")[2] or word.text for word in specs if not word.text.startswith((":", "+"))]
    return ["" if name in ("HEAD", "@") else name for name in names] or [""]


def _leased(given: Given, dst: str) -> bool:
    """Whether a lease covers the branch: one without a name covers all, one with names only those."""
    named = [value.text.partition(":")[0] for value in given.values("force-with-lease")]
    return not named or dst in named or not dst


def _overwrites(call: Call, remote: str, dst: str, *, leased: bool) -> Effect:
    where = f"{dst or 'the current branch'} on {remote or 'the remote'}"
    if leased:
        safer = f"git push {remote or 'origin'} to a branch of its own"
        if dst == "all branches" or _PROTECTED.fullmatch(dst):
            return Effect("remote.overwrite", where, "ask", detail="protected", instead=safer)
        if dst:
            # What the lease saw is a remote-tracking branch, which the snapshot holds.
            return Effect(
                "remote.overwrite", where, "ask", pieces=("refs",), ours=call.ours, question=Question("refs", call.folder)
            )
        return Effect(
            "remote.overwrite", where, "ask", question=Question("branch", call.folder), detail="protected", instead=safer
        )
    return Effect("remote.overwrite", where, "deny", instead=f"git push --force-with-lease {remote} {dst}".rstrip())


def _unknown_remote(call: Call, remote: str) -> Iterator[Effect]:
    """Sending the history to a place that was no remote before this call."""
    scene = call.scene
    if re.match(r"[a-z+]+://|[^/\s]+@[^/\s]+:|[\w.-]+\.[a-z]{2,}:", remote):
        yield Effect("network.send", f"the history to {remote}", "ask", question=Question("remote", remote, (call.folder,)))
        return
    if not remote or remote in scene.facts.remotes:
        return
    for other in scene.parsed.commands:
        if other.name == "git" and other is not call.command:
            words = [word.text for word in other.words]
            if "remote" in words and ("add" in words or "set-url" in words) and remote in words:
                yield Effect("network.send", f"the history to {words[-1]}", "deny")
                return


def is_protected(branch: str) -> bool:
    return bool(_PROTECTED.fullmatch(branch))
