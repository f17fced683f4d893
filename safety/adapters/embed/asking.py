"""Puts a question that no handler would answer to the program that runs the agent."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

from safety.hooks.answers import ConfirmationResult
from safety.session import Call
from safety.types import Decision

if TYPE_CHECKING:
    import asyncio

#: Asked where a guard will not decide alone: whether the call may run; only True is a yes. May be an ``async def``.
OnAsk: TypeAlias = Callable[[Call, str], Any]

#: Where the tool that is waited for is awaited.
loop_of_the_call: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("loop_of_the_call", default=None)


def asker(on_ask: OnAsk | None) -> Callable[..., ConfirmationResult | None]:
    """The last handler of TOOL_CONFIRM: a question that is open still goes to ``on_ask``; with nobody to ask the answer is no."""

    def answer(call: Call, preview: Any, workspace: Any, decision: Decision | None = None) -> ConfirmationResult | None:
        if decision is None or decision.action != "ask":
            return None
        said = None if on_ask is None else on_ask(call, decision.reason)
        if inspect.isawaitable(said):
            said = _awaited(said)
        if said is True:
            return ConfirmationResult.confirm(by_user=True)
        why = decision.reason or ("nobody is there to be asked" if on_ask is None else "Declined")
        return ConfirmationResult.skip(why, unrecoverable=decision.unrecoverable, by_user=on_ask is not None)

    return answer


def _awaited(answer: Any) -> Any:
    """The result of an async ``on_ask``: in the loop of the tool that waits for it, else in one of its own."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def waits() -> Any:
        return await answer

    loop = loop_of_the_call.get()
    if loop is not None and loop is not asyncio._get_running_loop():  # a tool that is called by an awaited one blocks its loop
        return asyncio.run_coroutine_threadsafe(waits(), loop).result()
    with ThreadPoolExecutor(1) as pool:  # this thread may be running a loop itself
        return pool.submit(asyncio.run, waits()).result()
