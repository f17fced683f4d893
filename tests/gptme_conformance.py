"""Runs gptme's own tests of its hook system against ours: ``python tests/gptme_conformance.py CHECKOUT``.

CHECKOUT is a working copy of gptme (0.33 or near). Its ``tests/test_hooks.py`` and ``tests/test_hooks_registry.py`` are copied into
a temporary folder and run there with ``gptme.hooks``, ``gptme.hooks.<module>`` and ``gptme.message`` standing for our modules; none
of gptme's code runs. Prints the tests that fail, and ends with 0 if at least BAR of them pass and no other fails than expected:

- ``test_hook_with_arguments`` registers a handler of three arguments for TOOL_EXECUTE_PRE, which hands over one. Ours says so when it
  is registered ("a wrong signature is refused at registration"), not by an error at every call.
- ``test_trigger_records_hook_telemetry_for_generator_runtime`` and ``test_trigger_records_hook_telemetry_for_errors`` look for calls of
  gptme's telemetry. We have none; how long each handler took and what failed is in the outcome's trace.

The clock that a test patches (``gptme.hooks.registry.time``) is handed to our registry as its clock.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
FILES = ("tests/test_hooks.py", "tests/test_hooks_registry.py")
BAR = 77
EXPECTED = {
    "test_hook_with_arguments",
    "test_trigger_records_hook_telemetry_for_generator_runtime",
    "test_trigger_records_hook_telemetry_for_errors",
}

ALIASES = '''
"""Puts our modules where gptme's tests look for theirs."""

import dataclasses
import importlib
import sys
import time
import types


def module(name, *sources, **more):
    made = types.ModuleType(name)
    made.__path__ = []
    for source in sources:
        found = importlib.import_module(source)
        made.__dict__.update({key: value for key, value in vars(found).items() if not key.startswith("__")})
    made.__dict__.update(more)
    sys.modules[name] = made
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, made)
    return made


@dataclasses.dataclass
class ToolUse:
    tool: str
    args: list
    content: object


module("gptme")
module("gptme.message", "safety.hooks.message")
hooks = module("gptme.hooks", "safety.hooks.answers", "safety.hooks.events", "safety.hooks.handlers", "safety.hooks.registry")
module("gptme.hooks.types", "safety.hooks.answers", "safety.hooks.events", "safety.hooks.handlers")
module("gptme.hooks.confirm", "safety.hooks.confirm")
module("gptme.hooks.elicitation", "safety.hooks.elicitation")
registry = module("gptme.hooks.registry", "safety.hooks.registry", time=time.time)


class HookRegistry(registry.HookRegistry):
    def __init__(self):
        super().__init__(clock=lambda: registry.time())


registry.HookRegistry = HookRegistry
module("gptme.tools")
module("gptme.tools.base", ToolUse=ToolUse)
module("gptme.telemetry", record_hook_call=lambda **_: None)
'''


def main(checkout: Path) -> int:
    """Runs the tests and gives the exit code."""
    missing = [name for name in FILES if not (checkout / name).is_file()]
    if missing:
        sys.stderr.write(f"Error: {checkout} has no {' and no '.join(missing)}\n")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "conftest.py").write_text(ALIASES)
        for name in FILES:
            (place / Path(name).name).write_bytes((checkout / name).read_bytes())
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "--rootdir", folder, "--tb=short", folder],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
    failed = set(re.findall(r"^FAILED \S*::(\w+)", done.stdout, re.MULTILINE))
    passed = int(match[1]) if (match := re.search(r"(\d+) passed", done.stdout)) else 0
    surprising = sorted(failed - EXPECTED)
    for name in sorted(failed & EXPECTED):
        sys.stdout.write(f"{name}: fails, as the rules of ours have it\n")
    if surprising or passed < BAR:
        sys.stdout.write(done.stdout + done.stderr)
    sys.stdout.write(f"{passed} of {passed + len(failed)} pass, {BAR} are wanted\n")
    return 0 if passed >= BAR and not surprising else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python tests/gptme_conformance.py CHECKOUT\n")
        raise SystemExit(2)
    raise SystemExit(main(Path(sys.argv[1])))
