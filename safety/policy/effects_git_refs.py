"""What git does to refs, to the history behind them, and to what brings either back: stash, reflog, objects."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from safety.policy.git_calls import Call, aborts, lenient, unverified, verb
from safety.policy.shell import Word
from safety.policy.values import Effect


@verb(
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
            yield call.refs("ref.delete", word.text, merged=merged, instead=f"git branch -d {shlex.quote(word.text)}")
    elif given.has("M", "C") or (given.has("move", "copy") and forced):
        if names:
            yield call.refs("ref.move", names[-1].text)
    elif forced and not given.has("list", "delete") and names:
        yield call.refs("ref.move", names[0].text)


@verb(
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


@verb("update-ref", "d m= no-deref stdin z create-reflog batch-updates")
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


@verb("symbolic-ref", "d|delete q|quiet short m= recurse no-recurse")
def _symbolic_ref(call: Call) -> Iterator[Effect]:
    if call.given.has("delete") and call.given.rest:
        yield call.refs("ref.delete", call.given.rest[0].text, "refs", "head")


@verb("replace notes", "d|delete f|force l|list e|edit graft convert-graft-file format= m= F= C= c=")
def _replace(call: Call) -> Iterator[Effect]:
    given = call.given
    subverb = given.rest[0].text if given.rest else ""
    if call.git.verb == "notes":
        if subverb in ("remove", "prune") or (subverb in ("add", "copy", "append") and given.has("force")):
            yield call.refs("ref.move", "refs/notes/commits")
    elif given.has("delete", "force"):
        yield call.refs("ref.delete", "refs/replace")


@verb(
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


@verb(
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
    yield from unverified(call)
    yield from aborts(call)
    yield call.refs("history.rewrite", "the current branch", "refs", "head")


@verb(
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
    yield from unverified(call)
    yield _contact(call)
    if given.has("force", "prune", "rebase") or any(word.text.startswith("+") for word in given.rest):
        yield call.refs("ref.move", "branches and remote-tracking branches")


@verb(
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


@verb(
    "clone ls-remote",
    "upload-pack= u= b|branch= o|origin= c|config= depth= reference= template= separate-git-dir= j|jobs= filter=",
)
def _clone(call: Call) -> Iterator[Effect]:
    yield _contact(call)


@verb(
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


@verb("filter-repo", "", abbreviates=False)
def _filter_repo(call: Call) -> Iterator[Effect]:
    if not call.given.has("analyze", "dry-run", "version"):
        yield Effect(
            "history.rewrite", "the whole history; old objects are pruned at once", "ask", instead="work in a fresh clone"
        )


@verb("fast-import", "force quiet")
def _fast_import(call: Call) -> Iterator[Effect]:
    if call.given.has("force"):
        yield call.refs("ref.move", "branches")


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


@verb("reflog", "expire= expire-unreachable= all updateref rewrite stale-fix n|dry-run verbose single-worktree")
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


@verb("gc", "aggressive auto prune=? no-prune q|quiet force keep-largest-pack cruft max-cruft-size= detach")
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


@verb("maintenance", "task= auto schedule= q|quiet detach")
def _maintenance(call: Call) -> Iterator[Effect]:
    if call.given.rest and call.given.rest[0].text == "run":
        yield from _gc(call)


@verb("prune", "n|dry-run v|verbose progress expire= exclude-promisor-objects")
def _prune(call: Call) -> Iterator[Effect]:
    given = call.given
    if not given.has("dry-run") and (not given.has("expire") or not lenient(given.value("expire"))):
        yield _prunes(call, "objects that no ref names")


@verb(
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


@verb("lfs", "f|force d|dry-run everything verify-remote recent include= I= exclude= X= above= all", abbreviates=False)
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


@verb("annex", "f|force", abbreviates=False)
def _annex(call: Call) -> Iterator[Effect]:
    subverb = call.given.rest[0].text if call.given.rest else ""
    if subverb in ("drop", "dropunused", "uninit", "dead") and (call.given.has("force") or subverb in ("uninit", "dead")):
        yield Effect("objects.prune", "contents that git-annex keeps", "ask")


@verb("rerere", "")
def _rerere(call: Call) -> Iterator[Effect]:
    if call.given.rest and call.given.rest[0].text in ("forget", "clear"):
        yield Effect("git.forget", "recorded resolutions of conflicts", "ask")
