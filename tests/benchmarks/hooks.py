"""What the hook caller adds to ten handlers that do nothing: ``python -m tests.benchmarks.hooks``. Not a test: it only prints."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from safety.hooks import HookRegistry, HookType, ToolExecutePreData, call_hooks

HANDLERS = 10
ROUNDS = 20_000
BAR_US = 50.0


def median_us(function: Callable[[], object]) -> float:
    """The median time of one call, in microseconds."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        function()
        times.append(time.perf_counter_ns() - began)
    return statistics.median(times) / 1000


def main() -> None:
    registry = HookRegistry()
    data = ToolExecutePreData()

    def nothing(data: ToolExecutePreData) -> None:
        return None

    def named(manager: object) -> None:
        return None

    for number in range(HANDLERS):
        registry.register(f"h{number}", HookType.TOOL_EXECUTE_PRE, nothing)
        registry.register(f"h{number}", HookType.STEP_PRE, named)

    def bare() -> None:
        for _ in range(HANDLERS):
            nothing(data)

    loop = median_us(bare)
    positional = median_us(lambda: call_hooks(registry, HookType.TOOL_EXECUTE_PRE, data))
    keywords = median_us(lambda: call_hooks(registry, HookType.STEP_PRE, manager=None, session=registry))
    none = median_us(lambda: call_hooks(registry, HookType.TURN_PRE, manager=None))
    print(f"ten bare calls          {loop:7.1f} us")
    print(f"ten handlers, payload   {positional:7.1f} us   bar {BAR_US:g}")
    print(f"ten handlers, keywords  {keywords:7.1f} us   bar {BAR_US:g}")
    print(f"no handler              {none:7.1f} us")


if __name__ == "__main__":
    main()
