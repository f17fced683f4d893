"""What a path is, told by its name alone: part of the workspace, git's own, a credential, the system, something a build makes again."""

from __future__ import annotations

import fnmatch
import posixpath

from safety.policy.patterns import Pattern
from safety.policy.secret_paths import inside as inside
from safety.policy.secret_paths import is_secret_path
from safety.policy.values import CallFacts

#: Folders and files that a tool makes again from what is kept. Ignored by git, their loss is no loss.
_MADE_AGAIN = frozenset(
    """node_modules bower_components build dist out target .venv venv env.bak __pycache__ .pytest_cache .mypy_cache
    .ruff_cache .tox .nox .cache .parcel-cache .next .nuxt .svelte-kit .turbo .gradle .eggs htmlcov coverage .coverage
    .nyc_output .terraform .ipynb_checkpoints .hypothesis .sass-cache .DS_Store Thumbs.db .eslintcache .angular .vite
    .output .serverless .dart_tool DerivedData Pods .build cmake-build-debug cmake-build-release obj tmp temp log logs
    .npm .yarn .pnpm-store .pytype .pyre site-packages _build .stack-work elm-stuff .webpack storybook-static
    .docusaurus .expo .tmp wheelhouse pip-wheel-metadata .bundle bazel-bin bazel-out bazel-testlogs .import
    .scannerwork test-results playwright-report junit.xml coverage.xml lcov.info .stylelintcache .tsbuildinfo""".split()
)
_MADE_AGAIN_PATTERNS = Pattern(
    r".*\.(?:pyc|pyo|o|obj|class|log|tmp|temp|cache|swp|swo|egg-info|dist-info|tsbuildinfo|gcda|gcno|lo|la|d|pid|out|prof"
    r"|coverage)"
    r"|.*\.log\.\d+|npm-debug\.log.*|yarn-error\.log.*|\.coverage\..*|cmake-build-.*|.*~"
)


def made_again(path: str, root: str = "") -> bool:
    """Whether some component of the path, below ``root``, is by its name made by a build, a package manager or a cache."""
    if root and not inside(path, root):
        return False
    below = path[len(root) :]
    return any(part in _MADE_AGAIN or _MADE_AGAIN_PATTERNS.fullmatch(part) for part in below.split("/") if part)


#: What a login, a shell or a timer starts.
_STARTUP = Pattern(
    r"\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv|zprofile|zlogin|zlogout|kshrc|cshrc"
    r"|tcshrc|inputrc"
    r"|xinitrc|xprofile|xsession|pythonrc|gitconfig|vimrc|emacs|tmux\.conf|screenrc|pam_environment|pythonstartup|condarc"
    r"|wgetrc|curlrc)"
    r"|\.config/(?:fish|git|systemd|autostart|environment\.d|nvim|pip)(?:/.*)?|\.ssh/(?:authorized_keys2?|config|rc)"
    r"|Library/Launch(?:Agents|Daemons)/.*|\.git-templates?/.*|\.local/bin/.*|bin/.*"
)
_DEVICE = Pattern(
    r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|mapper/|dm-|md\d|loop\d|mem\b|kmem|port\b|zd|ram\d|sr\d|nbd|block/|by-)"
)
_SINKS = Pattern(r"/dev/(?:null|zero|full|random|urandom|std(?:in|out|err)|tty\d*|ptmx|pts/.*|fd/.*|console)|/proc/self/fd/.*|-")
_SOCKETS = Pattern(r"/dev/(?:tcp|udp)/.*")
_SYSTEM = tuple(
    """/bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /opt /proc /root /run /sbin /srv /sys /usr /var /System /Library
    /Applications /private /Volumes /nix /snap /mnt /media /cores""".split()
)
#: Names that switch the guard, its hooks in a client, or a client's own permissions.
OWN_SUFFIXES = (
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".claude.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".codex/hooks",
    ".gemini/settings.json",
    ".gemini/hooks",
    ".qwen/settings.json",
    ".cursor/hooks.json",
    ".cursor/hooks",
    ".cursor/cli-config.json",
    ".copilot/config.json",
    ".copilot/hooks",
    ".github/hooks",
    ".opencode/plugin",
    ".opencode/plugins",
    "opencode.json",
    ".kimi/config.toml",
    ".config/opencode",
    ".config/gptme/config.toml",
    ".clinerules/hooks",
    ".cline/hooks",
    ".git-safety",
    ".config/git-safety",
    ".local/state/git-safety",
    ".local/share/git-safety",
    ".git/refs/safety",
    ".git/git-safety",
    ".git/safety",
)


def absolute(path: str, cwd: str | None) -> str | None:
    """The path without ``.`` and ``..``, or None if the folder it starts from is not known."""
    if not path.startswith("/"):
        if cwd is None:
            return None
        path = f"{cwd}/{path}"
    path = posixpath.normpath(path)
    return path[1:] if path.startswith("//") else path


def fixed_part(path: str) -> str:
    """The folder above the first component that holds a pattern; the path itself if none does."""
    if not has_pattern(path):
        return path
    parts = path.split("/")
    first = next(number for number, part in enumerate(parts) if has_pattern(part))
    return "/".join(parts[:first]) or "/"


def has_pattern(text: str) -> bool:
    return any(char in text for char in "*?[")


def matches_all(pattern: str) -> bool:
    """Whether a last component takes in every plain name: ``*``, ``**``, ``{*,.*}``."""
    return not pattern.strip("*") and bool(pattern)


def takes_dot_git(path: str, folder: str) -> bool:
    """Whether a pattern right below ``folder`` matches its ``.git``. Only a pattern that begins with a dot takes in dot names."""
    rest = path[len(folder) :].lstrip("/").partition("/")[0]
    return rest.startswith((".", "[.]")) and fnmatch.fnmatchcase(".git", rest.replace("[!", "[!").replace("[^", "[!"))


_CACHES = (
    ".cache",
    ".npm",
    ".yarn/cache",
    ".pnpm-store",
    ".gradle/caches",
    ".cargo/registry",
    ".m2/repository",
    "go/pkg/mod",
    "Library/Caches",
    ".nuget/packages",
)


def place_of(path: str, facts: CallFacts) -> str:
    """Which place an absolute path (a pattern in it is cut off) is.

    ``sink``: writes to it go nowhere. ``socket``, ``device``. ``own``: the guard's. ``root``: ``/`` or a folder that holds the system
    or all homes. ``temp-all``: a folder for temporary files, ``temp``: below one, or a cache. ``home``: the whole home. ``above``: a
    folder that the workspace lies in. ``workspace``: all of it. ``git``: the git directory, ``git-part``: something in it. ``inside``:
    below the workspace. ``secret``: credentials outside the workspace. ``startup``: what a login or a shell runs. ``system``.
    ``outside``: anything else.
    """
    if _SINKS.fullmatch(path):
        return "sink"
    if _SOCKETS.match(path):
        return "socket"
    if _DEVICE.match(path):
        return "device"
    if is_own(path, facts):
        return "own"
    if facts.git_dir and inside(path, facts.git_dir):
        return "git" if path == facts.git_dir else "git-part"
    if path != facts.root and inside(path, facts.root):
        return _inner(path[len(facts.root) + 1 :])
    if path in facts.temp:
        return "temp-all"
    if path == "/" or path in _SYSTEM or path in ("/home", "/Users"):
        return "root"
    if path == facts.home or inside(facts.home, path):
        return "home"
    if path == facts.root:
        return "workspace"
    if inside(facts.root, path):
        return "above"
    if _temporary(path, facts):
        return "temp"
    if facts.home and inside(path, facts.home):
        below = path[len(facts.home) + 1 :]
        if any(inside(below, cache) for cache in _CACHES):
            return "temp"
        if is_secret(path, facts):
            return "secret"
        return "startup" if _STARTUP.fullmatch(below) else "outside"
    if is_secret(path, facts) and path.startswith("/etc"):
        return "secret"
    return "system" if any(inside(path, top) for top in _SYSTEM) else "outside"


def _inner(below: str) -> str:
    if ".git" not in below:
        return "inside"
    first, _, rest = below.partition("/")
    if first == ".git":
        return "git-part" if rest else "git"
    return "inside"


def _temporary(path: str, facts: CallFacts) -> bool:
    """Below a folder for temporary files; not the part of it that the workspace or the home lies in."""
    for folder in facts.temp:
        if path != folder and inside(path, folder):
            part = folder + "/" + path[len(folder) + 1 :].partition("/")[0]
            return not (inside(facts.root, part) or inside(facts.home, part))
    return False


def is_own(path: str, facts: CallFacts) -> bool:
    """Whether the path is the guard's or decides whether it is called. A folder that holds such a path is not."""
    if any(inside(path, own) for own in facts.own if own.startswith("/")):
        return True
    if not any(word in path for word in _OWN_WORDS) and not any(not own.startswith("/") for own in facts.own):
        return False
    padded = path + "/"
    return any(f"/{suffix}/" in padded for suffix in OWN_SUFFIXES) or any(
        f"/{own}/" in padded for own in facts.own if not own.startswith("/")
    )


_OWN_FOLDERS = frozenset(
    suffix.partition("/")[0]
    for suffix in OWN_SUFFIXES
    if suffix.partition("/")[0] not in (".git", ".config", ".local", ".github")
)


def holds_own(path: str, facts: CallFacts) -> bool:
    """Whether removing the folder (or what a pattern below it matches) takes the guard's own with it."""
    fixed = fixed_part(path)
    return posixpath.basename(fixed) in _OWN_FOLDERS or any(own.startswith("/") and inside(own, fixed) for own in facts.own)


_OWN_WORDS = ("safety", "settings", "hooks", "config", ".claude", "opencode", "plugin")


def is_secret(path: str, facts: CallFacts) -> bool:
    return is_secret_path(path, facts.home)
