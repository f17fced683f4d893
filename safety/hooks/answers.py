"""What a handler may answer beside messages and a ``Decision``: a stop, a confirmation, an elicited value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Self, TypeAlias

FieldType: TypeAlias = Literal["text", "secret", "choice", "boolean", "number"]
ElicitationType: TypeAlias = Literal["text", "choice", "multi_choice", "secret", "confirmation", "form"]

EDITS_MAX = 5  # how often a call may be edited before it counts as one that never settles


class StopPropagation(Exception):
    """Yielded, returned or raised by a handler: those of lower priority are not called."""


class ConfirmAction(str, Enum):  # noqa: UP042 - as gptme has it
    CONFIRM = "confirm"
    SKIP = "skip"
    EDIT = "edit"


@dataclass(frozen=True)
class ConfirmationResult:
    """An answer to "may this call run?".

    ``message`` is for the model. ``unrecoverable``: what the call would lose, nothing brings back; set by the guard.
    ``by_user``: a person gave this answer to this very question; only such a confirm counts for the unrecoverable.
    """

    action: ConfirmAction
    edited_content: str | None = None
    message: str | None = None
    unrecoverable: bool = False
    by_user: bool = False

    @classmethod
    def confirm(cls, *, by_user: bool = False) -> Self:
        return cls(ConfirmAction.CONFIRM, by_user=by_user)

    @classmethod
    def skip(cls, message: str | None = None, *, unrecoverable: bool = False, by_user: bool = False) -> Self:
        return cls(ConfirmAction.SKIP, message=message or "Operation skipped", unrecoverable=unrecoverable, by_user=by_user)

    @classmethod
    def edit(cls, edited_content: str, *, by_user: bool = False) -> Self:
        return cls(ConfirmAction.EDIT, edited_content=edited_content, by_user=by_user)


@dataclass(frozen=True)
class FormField:
    """One line of a form. A field that is not ``required`` may be left empty."""

    name: str
    prompt: str
    type: FieldType = "text"
    options: tuple[str, ...] = ()
    required: bool = True
    default: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple(self.options or ()))

    def __repr__(self) -> str:
        shown = "" if self.type == "secret" else f", default={self.default!r}"
        return f"FormField({self.name!r}, {self.type}{shown})"


@dataclass(frozen=True)
class ElicitationRequest:
    """A question of the agent to the user. ``sensitive``: the answer is kept from the model; always so for a secret."""

    type: ElicitationType
    prompt: str
    options: tuple[str, ...] = ()
    fields: tuple[FormField, ...] = ()
    default: str | None = field(default=None, repr=False)
    sensitive: bool = False
    description: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", tuple(self.options or ()))
        object.__setattr__(self, "fields", tuple(self.fields or ()))
        if self.type == "secret":
            object.__setattr__(self, "sensitive", True)


@dataclass(frozen=True)
class ElicitationResponse:
    """The user's answer. ``value``: text, or the form as JSON with a placeholder for each secret; ``values``: several choices.

    ``secrets``: a form's secret fields by name. What is sensitive is left out of ``repr``.
    """

    value: str | None = None
    values: tuple[str, ...] | None = None
    cancelled: bool = False
    sensitive: bool = False
    secrets: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.values is not None:
            object.__setattr__(self, "values", tuple(self.values))

    @classmethod
    def cancel(cls) -> Self:
        return cls(cancelled=True)

    @classmethod
    def text(cls, value: str, sensitive: bool = False) -> Self:
        return cls(value=value, sensitive=sensitive)

    @classmethod
    def multi(cls, values: tuple[str, ...] | list[str]) -> Self:
        return cls(values=tuple(values))

    def __repr__(self) -> str:
        if self.cancelled:
            return "ElicitationResponse(cancelled)"
        if self.sensitive:
            return "ElicitationResponse(sensitive)"
        secrets = f", {len(self.secrets)} secret" if self.secrets else ""
        return f"ElicitationResponse({self.value if self.values is None else self.values!r}{secrets})"
