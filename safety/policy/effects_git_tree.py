"""What git does to the work tree, the index, submodules and other work trees."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from safety.policy.git_calls import Call, aborts, unverified, verb
from safety.policy.path_effects import secret_path, writing
from safety.policy.shell import Word
from safety.policy.values import Effect, Question


@verb(
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


@verb(
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


@verb(
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


@verb(
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


@verb("clean", "d f|force i|interactive n|dry-run q|quiet x X e|exclude=")
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


@verb("rm", "f|force r cached n|dry-run q|quiet ignore-unmatch sparse pathspec-from-file= pathspec-file-nul")
def _rm(call: Call) -> Iterator[Effect]:
    if call.given.has("force") and not call.given.has("cached", "dry-run"):
        yield call.discards(*call.given.operands, index=True)
        yield call.submodules(*(word.text for word in call.given.operands if word.certain))


@verb("mv", "f|force k n|dry-run v|verbose sparse")
def _mv(call: Call) -> Iterator[Effect]:
    operands = call.given.operands
    if call.given.has("force") and operands and not call.given.has("dry-run"):
        yield from writing(call.scene.target(operands[-1], call.where), call.scene)


@verb(
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


@verb("checkout-index", "a|all f|force u|index q|quiet n|no-create prefix= stage= temp stdin z")
def _checkout_index(call: Call) -> Iterator[Effect]:
    if call.given.has("force") and not call.given.has("prefix", "temp"):
        yield call.discards(*call.given.operands)


@verb(
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


@verb(
    "am", "abort quit skip continue r|resolved n|no-verify 3|3way i|interactive q|quiet s|signoff k|keep directory= C= p= retry"
)
def _am(call: Call) -> Iterator[Effect]:
    yield from unverified(call)
    yield from aborts(call)


@verb("cherry-pick revert", "abort quit skip continue n|no-commit e|edit m|mainline= s|signoff x X|strategy-option= strategy=")
def _pick(call: Call) -> Iterator[Effect]:
    yield from aborts(call)


@verb(
    "merge",
    "abort quit continue n|no-stat stat ff ff-only no-ff squash commit no-commit e|edit m= F|file= s|strategy= X"
    "|strategy-option= S no-verify"
    " into-name= autostash q|quiet v|verbose allow-unrelated-histories log signoff verify-signatures",
)
def _merge(call: Call) -> Iterator[Effect]:
    yield from unverified(call)
    yield from aborts(call)


@verb(
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
    yield from unverified(call)
    if call.given.on("amend"):
        yield call.refs("history.rewrite", "HEAD", "refs", "head")


@verb(
    "add",
    "f|force A|all u|update n|dry-run p|patch i|interactive N|intent-to-add v|verbose e|edit chmod= pathspec-from-file="
    " refresh renormalize",
)
def _add(call: Call) -> Iterator[Effect]:
    if call.given.has("force") and not call.given.has("dry-run"):
        for word in call.given.operands:
            if secret_path(call.scene.target(word, call.where), call.scene):
                yield Effect("secret.leak", word.text, "ask", detail="it goes into the history")


@verb(
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
                instead=f"git worktree remove {shlex.quote(word.text)}, which refuses while there is uncommitted work",
            )
    elif subverb == "add" and given.has("B"):
        yield call.refs("ref.move", given.value("B") or "")


@verb(
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


@verb("sparse-checkout", "cone no-cone sparse-index stdin skip-checks")
def _sparse(call: Call) -> Iterator[Effect]:
    yield from ()
