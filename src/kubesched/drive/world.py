"""What the loop needs of both sides: an Actor that decides, and a World that performs and says what time it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from kubesched.api.time import Instant
from kubesched.core.messages import AnyEffect, Event


class Actor(Protocol):
    """The shape of a core, shared by everything that acts in a cluster."""

    def handle(self, event: Event, now: Instant) -> Sequence[AnyEffect]: ...

    @property
    def ready(self) -> bool: ...

    @property
    def deadline(self) -> Instant | None: ...


class World(Protocol):
    """Who performs effects and says what time it is."""

    @property
    def now(self) -> Instant: ...

    def perform(self, effects: Iterable[AnyEffect]) -> None:
        """Start them; their answers arrive as events."""
        ...

    def take(self) -> Event | None:
        """An event that is due already, or None."""
        ...

    def sleep(self, until: Instant | None) -> bool:
        """Wait for the next event, or until a moment; False: nothing will ever happen again."""
        ...
