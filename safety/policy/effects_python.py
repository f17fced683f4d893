"""What Python one-liners and heredocs do to files, and which commands they start; read by Python's own grammar."""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

from safety.policy import places
from safety.policy.path_effects import leak, removal, writing
from safety.policy.patterns import Pattern
from safety.policy.scene import Scene, Target, home_path
from safety.policy.shell import Code
from safety.policy.sql import sql_effects
from safety.policy.values import Effect

_REMOVES = frozenset(
    "os.remove os.unlink os.rmdir os.removedirs shutil.rmtree pathlib.unlink pathlib.rmdir send2trash.none os.truncate"
    " path.rmtree".split()
)
_PATH_METHODS_REMOVE = frozenset(("unlink", "rmdir", "rmtree", "remove", "remove_p", "rmtree_p"))
_PATH_METHODS_WRITE = frozenset(("write_text", "write_bytes"))
_SHELLS = frozenset(
    "os.system os.popen subprocess.getoutput subprocess.getstatusoutput commands.getoutput asyncio.create_subprocess_shell"
    " pexpect.run"
    " pexpect.spawn".split()
)
_STARTS = frozenset(
    "subprocess.run subprocess.call subprocess.check_call subprocess.check_output subprocess.Popen asyncio.create_subprocess_exec"
    " plumbum.local sh.Command".split()
)
_EXECS = Pattern(r"os\.(?:exec[lv]p?e?|spawn[lv]p?e?|posix_spawnp?)")
_MOVES = frozenset("shutil.move os.rename os.replace os.renames".split())
_COPIES = frozenset("shutil.copy shutil.copy2 shutil.copyfile shutil.copytree".split())
_FETCHES = Pattern(r"(?:urllib\.request|urllib2|requests|httpx|http\.client|urllib3?)\.\w*(?:urlopen|get|request|urlretrieve)")
_POSTS = Pattern(
    r"(?:requests|httpx|aiohttp)\.(?:\w+\.)?(?:post|put|patch)|urllib\.request\.(?:urlopen|Request)|socket\.\w+|smtplib\.\w+"
)

_UNKNOWN = object()


@dataclass
class _Python:
    """What is known of a program's names while it is read from top to bottom."""

    scene: Scene
    cwd: str | None
    names: dict[str, object] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    found: list[Effect] = field(default_factory=list)
    calls: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class _Path:
    """A path as far as it is known: ``text`` None when computed."""

    text: str | None
    temporary: bool = False


def python_effects(code: Code, scene: Scene) -> Iterator[Effect]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code.text.strip("\n") + "\n")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        if re.search(r"\b(?:rmtree|unlink|os\.remove|removedirs|rm -)", code.text):
            yield Effect("path.remove", "paths of a program that cannot be read", "ask")
        return
    reader = _Python(scene, code.cwd)
    try:
        for node in _in_order(tree):
            _python_node(node, reader)
    except RecursionError:
        yield Effect("unknown.run", "a program that is nested too deeply", "ask")
    yield from reader.found
    if reader.calls & {"socket.socket"} and (reader.calls & {"os.dup2", "pty.spawn"} or {"subprocess.call"} <= reader.calls):
        yield Effect("network.shell", "whoever listens there", "deny")


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node, in the order of the source; calls after what they are given."""
    for child in ast.iter_child_nodes(tree):
        yield from _in_order(child)
        yield child


def _python_node(node: ast.AST, reader: _Python) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            reader.modules[alias.asname or alias.name.partition(".")[0]] = (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            reader.modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        reader.names[node.targets[0].id] = _value(node.value, reader)
    elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
        value = _value(node.iter, reader)
        reader.names[node.target.id] = value[0] if isinstance(value, list) and len(value) == 1 else _elements(node.iter, reader)
    elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
        reader.names[node.optional_vars.id] = _value(node.context_expr, reader)
    elif isinstance(node, ast.Call):
        _python_call(node, reader)


def _elements(iterated: ast.expr, reader: _Python) -> object:
    """What a loop goes over: several known paths stay together, a glob stays a pattern."""
    value = _value(iterated, reader)
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return value
    return value if isinstance(value, _Path) else _UNKNOWN


def _dotted(node: ast.expr, reader: _Python) -> str:
    """``shutil.rmtree`` for whatever name it was imported under; the calls of a chain are left out."""
    if isinstance(node, ast.Name):
        return reader.modules.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, reader)}.{node.attr}"
    if isinstance(node, ast.Call):
        if (
            isinstance(node.func, ast.Name)
            and node.func.id == "__import__"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            return str(node.args[0].value)
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "import_module"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            return str(node.args[0].value)
        return _dotted(node.func, reader)
    return ""


def _value(node: ast.expr, reader: _Python) -> object:
    """A string, a path, a list of them; ``_UNKNOWN`` for all else."""
    if isinstance(node, ast.Constant):
        return (
            node.value
            if isinstance(node.value, (str, int))
            else (node.value.decode("utf-8", "replace") if isinstance(node.value, bytes) else _UNKNOWN)
        )
    if isinstance(node, ast.Name):
        return reader.names.get(node.id, _UNKNOWN)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(item, reader) for item in node.elts]
    if isinstance(node, ast.JoinedStr):
        parts = [
            part.value
            if isinstance(part, ast.Constant)
            else _value(part.value, reader)
            if isinstance(part, ast.FormattedValue)
            else _UNKNOWN
            for part in node.values
        ]
        texts = [_text(part) for part in parts]
        return "".join(text for text in texts if text is not None) if all(text is not None for text in texts) else _UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
        left, right = _value(node.left, reader), _value(node.right, reader)
        if isinstance(left, _Path) and left.temporary:
            return left
        one, other = _text(left), _text(right)
        if one is None or other is None:
            if isinstance(left, list) and isinstance(right, list):
                return [*left, *right]
            return _UNKNOWN
        return _Path(f"{one}/{other}") if isinstance(node.op, ast.Div) else one + other
    if isinstance(node, ast.Subscript):
        dotted = _dotted(node.value, reader)
        if dotted == "os.environ" and isinstance(node.slice, ast.Constant):
            return reader.scene.facts.home if node.slice.value == "HOME" else _UNKNOWN
        inner = _value(node.value, reader)
        return inner if isinstance(inner, _Path) else _UNKNOWN
    if isinstance(node, ast.Call):
        return _called_value(node, reader)
    if isinstance(node, ast.Attribute) and node.attr == "name":
        return _value(node.value, reader)
    if isinstance(node, ast.Attribute) and node.attr == "parent":
        text = _text(_value(node.value, reader))
        return _Path(places.absolute(f"{text}/..", reader.cwd)) if text is not None else _UNKNOWN
    if isinstance(node, ast.Starred):
        return _value(node.value, reader)
    return _UNKNOWN


def _text(value: object) -> str | None:
    if isinstance(value, _Path):
        return value.text
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else None


def _called_value(node: ast.Call, reader: _Python) -> object:
    name = _dotted(node.func, reader)
    last = name.rpartition(".")[2]
    arguments = [_value(argument, reader) for argument in node.args]
    if name.startswith("tempfile."):
        return _Path(f"{reader.scene.facts.temp[0]}/of-its-own", True)
    if last == "home" and "Path" in name or name in ("Path.home", "os.path.expanduser('~')"):
        return _Path(reader.scene.facts.home)
    if last in (
        "Path",
        "PurePath",
        "PosixPath",
        "expanduser",
        "abspath",
        "realpath",
        "join",
        "expandvars",
        "normpath",
        "str",
        "fspath",
        "joinpath",
    ):
        texts = [_text(argument) for argument in arguments]
        if isinstance(node.func, ast.Attribute) and last in ("joinpath", "expanduser") and not name.startswith("os."):
            texts.insert(0, _text(_value(node.func.value, reader)))
        if last == "join" and not name.startswith("os.") and isinstance(node.func, ast.Attribute):
            joined, items = _text(_value(node.func.value, reader)), arguments[0] if arguments else None
            if joined is not None and isinstance(items, list) and all(_text(item) is not None for item in items):
                return joined.join(_text(item) or "" for item in items)
            return _UNKNOWN
        if last == "expandvars" and texts and texts[0] is not None:
            texts[0] = texts[0].replace("$HOME", reader.scene.facts.home)
        if any(text is None for text in texts) or (not texts and last not in ("Path",)):
            temporary = any(isinstance(argument, _Path) and argument.temporary for argument in arguments)
            return _Path(f"{reader.scene.facts.temp[0]}/of-its-own", True) if temporary else _UNKNOWN
        path = "."
        for text in texts:
            text = text or ""
            path = text if text.startswith(("/", "~")) or path == "." else f"{path}/{text}"
        return _Path(home_path(path, reader.scene))
    if last in ("cwd", "getcwd"):
        return _Path(reader.cwd)
    if last in ("glob", "iglob", "rglob", "listdir", "scandir", "iterdir", "walk"):
        base = (
            _text(_value(node.func.value, reader))
            if isinstance(node.func, ast.Attribute) and not name.startswith(("glob.", "os."))
            else None
        )
        pattern = _text(arguments[0]) if arguments else ("*" if last == "iterdir" else ".")
        if pattern is None:
            return _UNKNOWN
        if last in ("listdir", "scandir", "walk", "iterdir"):
            return _Path(f"{base or pattern}/*" if last == "iterdir" else f"{pattern}/*")
        if last == "rglob" or "**" in pattern:
            return _Path(f"{base or '.'}/**/{pattern.rpartition('/')[2]}")
        return _Path(f"{base}/{pattern}" if base else pattern)
    if name == "open":
        return arguments[0] if arguments else _UNKNOWN
    if last == "split" and isinstance(node.func, ast.Attribute):
        text = (
            _text(_value(node.func.value if not name.startswith("shlex") else node.args[0], reader))
            if node.args or not name.startswith("shlex")
            else None
        )
        return text.split() if text is not None else _UNKNOWN
    if name.endswith((".get", "getenv")) and "environ" in name or name == "os.getenv":
        return reader.scene.facts.home if arguments[:1] == ["HOME"] else _UNKNOWN
    if last in ("format", "replace", "strip", "decode", "encode"):
        return _UNKNOWN
    if last in ("sorted", "list", "reversed", "set") and arguments:
        return arguments[0]
    return _UNKNOWN


def _python_call(node: ast.Call, reader: _Python) -> None:
    name = _dotted(node.func, reader)
    last = name.rpartition(".")[2]
    reader.calls.add(name)
    scene = reader.scene
    arguments = [_value(argument, reader) for argument in node.args]
    keywords = {keyword.arg: _value(keyword.value, reader) for keyword in node.keywords if keyword.arg}
    first = arguments[0] if arguments else next(iter(keywords.values()), _UNKNOWN)
    method_of = _value(node.func.value, reader) if isinstance(node.func, ast.Attribute) else _UNKNOWN
    if _removes(name, node, method_of, reader):
        if last != "rmdir":
            owned = isinstance(node.func, ast.Attribute) and name not in _REMOVES and last != "rmtree"
            for target in _python_targets(method_of if owned else first, reader):
                reader.found += removal(target, scene, deep=last == "rmtree")
    elif last in _PATH_METHODS_WRITE:
        for target in _python_targets(method_of, reader):
            reader.found += writing(target, scene)
    elif name in ("open", "io.open", "codecs.open") or (last == "open" and isinstance(method_of, _Path)):
        _python_open(method_of, arguments, keywords, reader)
    elif last in ("read_text", "read_bytes"):
        for target in _python_targets(method_of, reader):
            reader.found += leak(target, scene)
    elif name in _MOVES or (last in ("rename", "replace") and isinstance(method_of, _Path)):
        operands = [method_of, first] if isinstance(method_of, _Path) else [first, *arguments[1:2], _UNKNOWN]
        _python_move(operands[0], operands[1], reader)
    elif name in _COPIES and len(arguments) > 1:
        for one in _python_targets(arguments[1], reader):
            reader.found += writing(one, scene)
    elif name in _SHELLS:
        _python_shell(first, reader)
    elif name in _STARTS or _EXECS.fullmatch(name):
        _python_start(name, first, arguments, keywords, reader)
    elif name in ("os.kill", "os.killpg") and arguments[:1] == [-1]:
        reader.found.append(Effect("process.kill", "every process of the user", "deny"))
    elif name in ("exec", "eval", "compile") and node.args:
        inner = node.args[0]
        if any(isinstance(child, ast.Call) and _FETCHES.fullmatch(_dotted(child.func, reader)) for child in ast.walk(inner)):
            reader.found.append(Effect("network.run", "code fetched from the network", "ask"))
        elif isinstance(first, str):
            reader.found += scene.code(Code("python", first, reader.cwd, ()))
        elif any(isinstance(child, ast.Call) and "decode" in _dotted(child.func, reader) for child in ast.walk(inner)):
            reader.found.append(Effect("unknown.run", "code that is decoded as it runs", "ask"))
    elif last in ("execute", "executescript", "executemany", "raw", "text") and isinstance(first, str):
        reader.found += sql_effects(first)
    elif ".git." in f".{name}" and name.startswith(("git.", "Repo")) and last.replace("_", "-").isidentifier() | ("_" in last):
        _gitpython(last, arguments, keywords, reader)
    elif _POSTS.fullmatch(name):
        reader.found.append(Effect("network.contact", "an address in a program", "allow"))
    elif last in (
        "delete_many",
        "drop_database",
        "drop_collection",
        "drop_all",
        "flushall",
        "flushdb",
        "delete_bucket",
        "delete_object",
        "delete_objects",
        "drop_table",
    ):
        reader.found.append(Effect("data.destroy", f"{name}()", "ask"))


def _removes(name: str, node: ast.Call, method_of: object, reader: _Python) -> bool:
    """Whether the call removes a path: a function of ``os`` or ``shutil``, or a method of a path."""
    last = name.rpartition(".")[2]
    if name in _REMOVES or last == "rmtree":
        return True
    return last in _PATH_METHODS_REMOVE and isinstance(node.func, ast.Attribute) and _is_path(node.func.value, method_of, reader)


def _python_open(method_of: object, arguments: list[object], keywords: dict[str, object], reader: _Python) -> None:
    """``open(path, mode)`` and ``path.open(mode)``: written anew, appended to, or read."""
    path, *rest = [method_of, *arguments] if isinstance(method_of, _Path) else [*arguments, _UNKNOWN]
    mode = keywords.get("mode", rest[0] if rest else "r")
    mode = mode if isinstance(mode, str) else "r"
    for target in _python_targets(path, reader):
        if target.path is None:
            continue
        if "w" in mode or "a" in mode:
            reader.found += writing(target, reader.scene, append="a" in mode)
        else:
            reader.found += leak(target, reader.scene, sent=any(_POSTS.fullmatch(call) for call in reader.calls))


def _python_move(source: object, target: object, reader: _Python) -> None:
    """What a move writes anew, and what it takes out of the workspace."""
    scene, there = reader.scene, list(_python_targets(target, reader))
    for one in there:
        reader.found += writing(one, scene)
    away = not any(one.path is None or places.inside(one.path, scene.facts.root) for one in there)
    for gone in _python_targets(source, reader):
        reader.found += (effect for effect in removal(gone, scene) if gone.path is not None and (away or effect.weight == "deny"))


def _is_path(node: ast.expr, value: object, reader: _Python) -> bool:
    """Whether a method's owner is a path: known as one, or made of one; a list or a set has ``remove``, too."""
    if isinstance(value, _Path):
        return True
    dotted = _dotted(node, reader)
    return "Path" in dotted or (value is _UNKNOWN and isinstance(node, ast.Name) and dotted in ("p", "path", "f", "file"))


def _python_targets(value: object, reader: _Python) -> Iterator[Target]:
    if isinstance(value, list):
        for item in value:
            yield from _python_targets(item, reader)
        return
    if isinstance(value, _Path) and value.temporary:
        return
    text = _text(value)
    if text is None:
        yield Target(None, "a path that the program works out")
    else:
        yield Target(places.absolute(text, reader.cwd), text)


def _python_shell(command: object, reader: _Python) -> None:
    text = _text(command)
    if text is not None:
        reader.found += reader.scene.again(text, reader.cwd)


def _python_start(name: str, first: object, arguments: list[object], keywords: dict[str, object], reader: _Python) -> None:
    words: list[object] = first if isinstance(first, list) else [first]
    if _EXECS.fullmatch(name):
        rest = arguments[1:] if "spawn" not in name else arguments[2:]
        words = rest[0] if rest and isinstance(rest[0], list) else rest
    elif name.startswith("asyncio"):
        words = arguments
    texts = [_text(word) for word in words]
    cwd = _text(keywords["cwd"]) if "cwd" in keywords else "."
    folder = places.absolute(cwd, reader.cwd) if cwd is not None else None
    if texts and all(text is not None for text in texts):
        known = [text or "" for text in texts]
        joined = known[0] if not isinstance(first, list) and len(known) == 1 else shlex.join(known)
        reader.found += reader.scene.again(joined, folder)
    elif texts[:1] and texts[0] is not None:
        joined = " ".join('"$UNKNOWN"' if text is None else shlex.quote(text) for text in texts)
        reader.found += reader.scene.again(joined, folder)


def _gitpython(verb: str, arguments: list[object], keywords: dict[str, object], reader: _Python) -> None:
    """``repo.git.reset("--hard")`` is ``git reset --hard``."""
    words = ["git", verb.replace("_", "-")]
    for key, value in keywords.items():
        name = key.replace("_", "-")
        words.append(f"-{name}" if len(name) == 1 else f"--{name}" if not isinstance(value, str) else f"--{name}={value}")
    words += [
        text
        for argument in arguments
        for text in ([_text(argument)] if not isinstance(argument, list) else map(_text, argument))
        if text
    ]
    reader.found += reader.scene.again(shlex.join(words), reader.cwd)
