"""git safety: undo for coding agents.

Importing this package imports nothing else. Code of ours never imports from here, and code of yours need not either: another
distribution has an import package of this name, and whichever was installed last owns this one file. Import from the modules
(``from safety.faults import SafetyError``) and both work side by side.
"""

_HOME = {"__version__": ("safety.release", "VERSION"), "SafetyError": ("safety.faults", "SafetyError")}


def __getattr__(name: str) -> object:
    """The public name, imported on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'safety' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOME[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted(_HOME)
