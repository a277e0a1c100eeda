"""Effects on their way out, and who waits for their answers.

An effect is a promise with an id.  Whoever emits one says what is to be done with the answer; the core keeps
that until Completed arrives, once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kubesched.core.messages import AnyEffect, EffectId
from kubesched.framework.steps import Answer

Heir: TypeAlias = Callable[[Answer], None]  # what happens with the answer


class Outbox:
    """Numbers effects, hands them out, and remembers whom to tell."""

    def __init__(self) -> None:
        self._effects: list[AnyEffect] = []
        self._heirs: dict[EffectId, Heir] = {}
        self._next = 0
        self._cause = 0

    def __len__(self) -> int:
        """How many answers somebody still waits for."""
        return len(self._heirs)

    def begin(self, cause: int) -> None:
        self._cause = cause

    def emit(self, effect: type[AnyEffect], heir: Heir | None = None, **fields: Any) -> EffectId:
        """Put an effect out; `heir` gets the answer, or nobody: an Event that could not be written is lost."""
        self._next += 1
        number = EffectId(self._next)
        self._effects.append(effect(id=number, cause=self._cause, **fields))
        if heir is not None:
            self._heirs[number] = heir
        return number

    def take(self) -> list[AnyEffect]:
        """Everything emitted since the last time."""
        effects, self._effects = self._effects, []
        return effects

    def settle(self, number: EffectId) -> Heir | None:
        """Who gets the answer; None where nobody waits for it, or it has come before."""
        return self._heirs.pop(number, None)
