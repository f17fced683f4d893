"""Plugins: every accepted shape, from folders and entry points, and that a bad one costs the others nothing."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from safety.hooks import HookRegistry, HookType
from safety.hooks.plugins import GROUP, MODULE_PREFIX, NotAPlugin, Plugin, clear_cache, coerce, discover, start

TOOL = SimpleNamespace(name="tool", hooks={}, commands={})
OTHER = SimpleNamespace(name="other", functions=[])
FOREIGN = SimpleNamespace(name="foreign", tools=[TOOL], register_hooks=lambda registry: None, provider=None)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    clear_cache()
    yield
    clear_cache()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of plugins, one that fails among them."""
    place = tmp_path / "plugins"
    (place / "pack/tools").mkdir(parents=True)
    spec = "from types import SimpleNamespace\n{name} = SimpleNamespace(name={name!r}, hooks={{}})\n"
    (place / "pack/__init__.py").write_text("")
    (place / "pack/tools/one.py").write_text(spec.format(name="one"))
    (place / "pack/tools/two.py").write_text(spec.format(name="two"))
    (place / "single.py").write_text("from safety.hooks.plugins import Plugin\nplugin = Plugin('single')\n")
    (place / "broken.py").write_text("raise SystemExit(3)\n")
    (place / "empty.py").write_text("")
    (place / "_private.py").write_text("raise AssertionError\n")
    (place / "notes.txt").write_text("")
    return place


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def names(found: Any) -> list[str]:
    return [plugin.name for plugin in found.plugins]


@pytest.mark.parametrize(
    ("value", "tools"),
    [
        (Plugin("p", (TOOL,)), ["tool"]),
        (TOOL, ["tool"]),
        ([TOOL, OTHER], ["tool", "other"]),
        ((TOOL,), ["tool"]),
        (FOREIGN, ["tool"]),
        (lambda: Plugin("p", (TOOL,)), ["tool"]),
        (lambda: TOOL, ["tool"]),
        (lambda: [TOOL, OTHER], ["tool", "other"]),
    ],
    ids=["plugin", "spec", "list", "tuple", "foreign", "makes a plugin", "makes a spec", "makes a list"],
)
def test_what_is_taken(value: Any, tools: list[str]) -> None:
    """A plugin, a ToolSpec, a list of them, a factory of one of these; one without a name of its own has the entry's."""
    plugin = coerce("entry", value)
    assert [tool.name for tool in plugin.tools] == tools and plugin.name in ("entry", "p", "foreign")


@pytest.mark.parametrize("value", [None, 1, "x", [], [TOOL, 1], {}, lambda: lambda: TOOL, lambda: None], ids=str)
def test_what_is_not_taken(value: Any) -> None:
    """An empty list, a mixed one, and a factory of a factory."""
    with pytest.raises(NotAPlugin):
        coerce("entry", value)


def test_from_a_folder(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Packages with their tools, modules with their ``plugin``; what fails is recorded, its exit too, and the rest is there."""
    found = discover([folder], entry_points=list)
    assert names(found) == ["pack", "single"]
    assert [tool.name for tool in found.plugins[0].tools] == ["one", "two"]
    assert [(failure.name, failure.detail) for failure in found.failures] == [
        ("broken", "SystemExit: 3"),
        ("empty", "NotAPlugin: a list is no plugin, no ToolSpec, no list of them and no factory of one"),
    ]


def test_a_folder_that_is_a_plugin_and_one_that_is_not_there(folder: Path, tmp_path: Path) -> None:
    """Both may be named."""
    assert names(discover([folder / "pack", tmp_path / "missing"], entry_points=list)) == ["pack"]


def test_the_first_folder_wins(folder: Path, tmp_path: Path) -> None:
    """A plugin of the same name in a later folder is not even run."""
    (tmp_path / "later").mkdir()
    (tmp_path / "later/single.py").write_text("raise AssertionError('was run')\n")
    found = discover([folder, tmp_path / "later"], ["single"], list)
    assert (names(found), found.failures, found.shadowed) == (["single"], (), (f"single ({tmp_path / 'later/single.py'})",))


def test_from_entry_points(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each name once: a folder's stands for an entry point's, which is not even loaded."""
    points = [
        entry("spec", "tests.hooks.test_plugins:TOOL"),
        entry("single", "tests.hooks.test_plugins:must_not_be_loaded"),
        entry("gone", "tests.hooks.no_such_module:x"),
        entry("spec", "tests.hooks.test_plugins:TOOL2"),
    ]
    found = discover([folder], entry_points=lambda: points)
    assert names(found) == ["pack", "single", "spec"]
    assert found.shadowed == ("single (tests.hooks.test_plugins:must_not_be_loaded)", "spec (tests.hooks.test_plugins:TOOL2)")
    assert [failure.name for failure in found.failures] == ["broken", "empty", "gone"]


def test_only_those_allowed_are_imported(folder: Path) -> None:
    """A name that is not on the list is not run; an empty list is none, no list is all."""
    points = [entry("gone", "tests.hooks.no_such_module:x"), entry("spec", "tests.hooks.test_plugins:TOOL")]
    found = discover([folder], ["single", "spec"], lambda: points)
    assert (names(found), found.failures) == (["single", "spec"], ())
    assert names(discover([folder], [], lambda: points)) == []


def test_a_plugin_under_a_name_that_is_not_allowed(folder: Path) -> None:
    """What it calls itself counts too."""
    (folder / "single.py").write_text("from safety.hooks.plugins import Plugin\nplugin = Plugin('guard')\n")
    found = discover([folder], ["single"], list)
    assert (names(found), [failure.name for failure in found.failures]) == ([], ["guard"])


def test_the_cache(folder: Path) -> None:
    """The second look is the first one's result until the cache is cleared, and then reads the files anew."""
    first = discover([folder], ["single"], list)
    (folder / "single.py").write_text(
        "from safety.hooks.plugins import Plugin\nplugin = Plugin('single', register_hooks=print)\n"
    )
    assert discover([folder], ["single"], list) is first
    assert any(name.startswith(MODULE_PREFIX) for name in sys.modules)
    clear_cache()
    assert not any(name.startswith(MODULE_PREFIX) for name in sys.modules)
    assert discover([folder], ["single"], list).plugins[0].register_hooks is print


def test_plugins_start(caplog: pytest.LogCaptureFixture) -> None:
    """Each is initialised with its own settings, then registers; one that fails keeps none of the others, and registers nothing
    when it could not initialise."""
    caplog.set_level(logging.CRITICAL)
    seen: list[Any] = []
    registry = HookRegistry()

    def fails(_: Any) -> None:
        raise RuntimeError("boom")

    def registers(target: HookRegistry) -> None:
        target.register("p.hook", HookType.STEP_PRE, lambda: None)

    plugins = [
        Plugin("bad", init=fails, register_hooks=seen.append),
        Plugin("half", register_hooks=fails, register_commands=seen.append),
        Plugin("good", init=seen.append, register_hooks=registers),
    ]
    failures = start(plugins, registry, {"good": {"a": 1}}, commands="commands")
    assert [(failure.name, failure.where, failure.detail) for failure in failures] == [
        ("bad", "init", "RuntimeError: boom"),
        ("half", "register_hooks", "RuntimeError: boom"),
    ]
    assert seen == ["commands", {"a": 1}] and [hook.name for hook in registry.get_hooks()] == ["p.hook"]
