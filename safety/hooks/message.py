"""``Message``: one text in a conversation, as handlers give it and hosts take it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

Role: TypeAlias = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class Message:
    """What one side said. Two messages are equal when role and content are, as in gptme.

    ``hide``: sent to the model, not shown. ``quiet``: not shown now, shown on resume. ``pinned``: never trimmed from the context.
    ``ephemeral_ttl``: dropped after so many turns of the model. ``timestamp`` is None until the host stamps it.
    """

    role: Role
    content: str
    timestamp: datetime | None = field(default=None, compare=False)
    files: tuple[Path | str, ...] = field(default=(), compare=False)
    call_id: str | None = field(default=None, compare=False)
    pinned: bool = field(default=False, compare=False)
    hide: bool = field(default=False, compare=False)
    quiet: bool = field(default=False, compare=False)
    ephemeral_ttl: int | None = field(default=None, compare=False)
    metadata: Mapping[str, Any] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", tuple(self.files))

    def __repr__(self) -> str:
        return f"<Message role={self.role} content={self.content if len(self.content) <= 20 else self.content[:17] + '...'!r}>"

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)
