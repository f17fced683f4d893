"""Every priority of ours, once, with its reason. Higher runs first; of equals the later name in the alphabet ([gptme] 0.7)."""

from __future__ import annotations

from typing import Final

# TOOL_CONFIRM. gptme's own guardrails stand at 200, its anomaly watchdog at 150, its allowlist at 10 ([gptme] 1).
GUARD: Final = 150  # before whoever answers: it knows from the snapshot what the call could lose
SERVER_CONFIRM: Final = 100  # a page that somebody has opened is asked before a terminal
SHELL_ALLOWLIST: Final = 10  # answers for what only reads, so that nobody is asked
CLI_CONFIRM: Final = 0  # a person is asked last
AUTO_CONFIRM: Final = 0  # stands in for the person; never beside CLI_CONFIRM

# TOOL_EXECUTE_PRE and _POST.
INJECTION_SCREENING: Final = 100  # sees the result before anybody adds to it
SNAPSHOTS: Final = 90  # after the watchers of gptme (150, 100), before everything that may want to look at the snapshot

# TURN_PRE.
TRUST: Final = 95  # before the snapshots open the turn, while the last one is still the newest
NET_JOINS: Final = 89  # the turn is open: whoever is heard from here on may work in it

# TURN_POST: the gate stops propagation, so that nothing it refused is committed.
GATE: Final = 5
AUTOCOMMIT: Final = 1

# CWD_CHANGED.
AGENTS_MD: Final = 0  # where gptme's own stands, which it replaces

AUDIT: Final = 0  # an observer: runs after all others whatever its number, which only orders observers among themselves

EXTERNAL_COMMAND: Final = 50  # from settings.json: after guard and snapshots, before the gate and whoever asks a person
