"""The cyclic garbage collector paused where very many values are made that all live on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """No cyclic collection inside: 100,000 new tuples would have it walk them all again and again, which finds nothing and costs a third.

    Pause until they are gone: the first collection after the pause walks what is still there.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
