"""``python -m safety.terminal``: for environments without the console script."""

from safety.terminal.main import entry

entry()
