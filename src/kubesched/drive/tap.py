"""Listening to a core: what each event led to, told to whoever wants to know.

Logs, reports, progress bars and stories all need the same: the moves, decisions and remarks of one event, before
the next event makes the core forget them.  A Tap stands between the loop and the core, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kubesched.api.time import Instant
from kubesched.core.core import Core
from kubesched.core.messages import AnyEffect, Event
from kubesched.framework.decision import Decision
from kubesched.framework.records import Record
from kubesched.framework.tools import Note


class Moment(NamedTuple):
    """One event, and all that came of it."""

    position: int  # in the journal
    at: Instant
    event: Event
    effects: Sequence[AnyEffect]
    records: Sequence[Record]
    decisions: Sequence[Decision]
    notes: Sequence[Note]


Listener = Callable[[Moment], None]


class Tap:
    """A core with listeners.  To the loop it is the core."""

    def __init__(self, core: Core, *listeners: Listener) -> None:
        self.core = core
        self.listeners = list(listeners)

    def handle(self, event: Event, now: Instant) -> list[AnyEffect]:
        core = self.core
        effects = core.handle(event, now)
        moment = Moment(
            core.position, core.now, event, effects, core.life.fresh, tuple(core.decisions.fresh), tuple(core.notes)
        )
        for listener in self.listeners:
            listener(moment)
        return effects

    @property
    def ready(self) -> bool:
        return self.core.ready

    @property
    def deadline(self) -> Instant | None:
        return self.core.deadline
