"""Which commands run others given to them as words, text or code, by name ([guard] 3, the unwrap table)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from safety.policy.batches import BATCHES
from safety.policy.builtins import BUILTINS
from safety.policy.calls import Call
from safety.policy.expand import Output
from safety.policy.hosts import HOSTS
from safety.policy.interpreters import INTERPRETERS, VERSIONED
from safety.policy.payloads import PAYLOADS
from safety.policy.prefixes import PREFIXES

if TYPE_CHECKING:
    from safety.policy.process import Shell


Handler = Callable[["Shell", str, Call], Output | None]
_HANDLERS: Mapping[str, Handler] = {**PREFIXES, **INTERPRETERS, **PAYLOADS, **HOSTS, **BATCHES, **BUILTINS}


def handler(name: str) -> Handler | None:
    """What follows a command of this name; None for one that runs nothing else that we know of."""
    found = _HANDLERS.get(name)
    if found is None and name[-1:].isdigit() and (plain := VERSIONED.fullmatch(name)):
        return _HANDLERS.get(plain[1])
    return found
