"""The hook system: moments, handlers, the order they run in and what their answers mean. Standard library only.

Lives here: the events (``events.py``), the table of handlers (``registry.py``), the one function that calls them and is the
semantics (``caller.py``), confirmation and elicitation, the settings of hooks, priorities, plugins. It knows no git, no host and no
session: ``session`` is handed through. It never reads the environment, starts a process, prints or asks: what does so is handed in.
Read first: ``caller.call_hooks`` and ``events.EVENTS``.

Importing this package imports nothing else; its names come from their modules on first use (PEP 562).
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from safety.hooks.answers import ConfirmAction as ConfirmAction
    from safety.hooks.answers import ConfirmationResult as ConfirmationResult
    from safety.hooks.answers import ElicitationRequest as ElicitationRequest
    from safety.hooks.answers import ElicitationResponse as ElicitationResponse
    from safety.hooks.answers import FormField as FormField
    from safety.hooks.answers import StopPropagation as StopPropagation
    from safety.hooks.caller import Failure as Failure
    from safety.hooks.caller import Outcome as Outcome
    from safety.hooks.caller import call_hooks as call_hooks
    from safety.hooks.caller import trace_lines as trace_lines
    from safety.hooks.confirm import get_confirmation as get_confirmation
    from safety.hooks.elicitation import elicit as elicit
    from safety.hooks.events import EVENTS as EVENTS
    from safety.hooks.events import HookOptions as HookOptions
    from safety.hooks.events import HookType as HookType
    from safety.hooks.events import ToolExecuteData as ToolExecuteData
    from safety.hooks.events import ToolExecutePostData as ToolExecutePostData
    from safety.hooks.events import ToolExecutePreData as ToolExecutePreData
    from safety.hooks.handlers import Hook as Hook
    from safety.hooks.handlers import HookRefused as HookRefused
    from safety.hooks.message import Message as Message
    from safety.hooks.plugins import Plugin as Plugin
    from safety.hooks.plugins import discover as discover
    from safety.hooks.registry import HookRegistry as HookRegistry
    from safety.hooks.registry import clear_hooks as clear_hooks
    from safety.hooks.registry import disable_hook as disable_hook
    from safety.hooks.registry import enable_hook as enable_hook
    from safety.hooks.registry import get_hooks as get_hooks
    from safety.hooks.registry import get_registry as get_registry
    from safety.hooks.registry import register_hook as register_hook
    from safety.hooks.registry import set_registry as set_registry
    from safety.hooks.registry import trigger_hook as trigger_hook
    from safety.hooks.registry import unregister_hook as unregister_hook

_NAMES = {
    "answers": "ConfirmAction ConfirmationResult ElicitationRequest ElicitationResponse FormField StopPropagation",
    "caller": "Failure Outcome call_hooks trace_lines",
    "confirm": "get_confirmation",
    "elicitation": "elicit",
    "events": "EVENTS HookOptions HookType ToolExecuteData ToolExecutePostData ToolExecutePreData",
    "handlers": "Hook HookRefused",
    "message": "Message",
    "plugins": "Plugin discover",
    "registry": "HookRegistry clear_hooks disable_hook enable_hook get_hooks get_registry register_hook set_registry trigger_hook"
    " unregister_hook",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """The public name, imported on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
