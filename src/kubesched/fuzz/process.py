"""A scheduler as a process of its own: it begins, works through its news, dies between any two effects, begins anew.

The loop is the production loop, one `turn` at a time, so that several processes can live on one agenda.  A turn may
take time; what happens meanwhile is waiting when it is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from kubesched.api.time import Instant, milliseconds
from kubesched.core import checks
from kubesched.core.core import Core
from kubesched.core.messages import AnyEffect, Commanded, Event
from kubesched.drive.journal import VERSION, Head, Journal, encode_effects
from kubesched.drive.loop import turn
from kubesched.drive.tap import Moment, Tap
from kubesched.fuzz.connection import Connection, News
from kubesched.wire.client import DRAIN_WITHIN, LAST_WORDS_WITHIN

if TYPE_CHECKING:
    from kubesched.fuzz.stage import Stage


RESTART = 1_000  # ms, until a process that has ended is back


class Died(Exception):
    """The process is no more."""


class Process:
    """One scheduler.

    Args:
        build: makes its core; called at every beginning.
        ours: it is the one under test, and answers to the judge.
        thorough: every so many events everything is checked that must hold inside a core.
    """

    def __init__(self, stage: Stage, name: str, build: Callable[[], Core], ours: bool, thorough: int) -> None:
        self.stage, self.name, self.ours = stage, name, ours
        self._build, self._thorough = build, thorough
        self.journal: Journal | None = None
        self.journal_at: Path | None = None  # where to write the journal of the latest life
        self.core: Core | None = None
        self.connection: Connection | None = None
        self.events = 0  # of all its lives
        self.effects = 0
        self.lives = 0
        self._dies_at: tuple[int, int] | None = None  # after so many effects; how long it is down
        self._ends_by: Instant | None = None  # it was asked to end, and does so then at the latest
        self.away = RESTART  # ms, until it is back when it has ended by itself
        self._roused = False
        self._busy_until = Instant(0)
        self._alarm: Instant | None = None

    # ── life and death ───────────────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        self.lives += 1
        self.core = core = self._build()
        self._tap = Tap(core, self._told)
        self.connection = self.stage.connect(self.name, self.lives)
        core.unsynced.update(self.connection.waits_for)
        if self.journal_at is not None:
            self._open_journal(self.journal_at, core)
        self._alarm = self._ends_by = None
        self.away = RESTART
        self.stage.judge.begins(self)
        self.connection.open()

    def _open_journal(self, path: Path, core: Core) -> None:
        if self.journal is not None:
            self.journal.close()
        head = Head(VERSION, seed=core.seed, config=self.stage.plan.scheduler, wait_for=tuple(sorted(core.unsynced)))
        self.journal = Journal(path, head, flush=False)

    def doom(self, effects: int, down: int) -> None:
        """It shall die after so many more effects."""
        self._dies_at = (self.effects + effects, down)

    def spare(self) -> None:
        """It shall not die after all."""
        self._dies_at = None

    def stop(self, down: int) -> None:
        """Begin nothing new, bring to an end what is under way, and let somebody else lead."""
        if self.connection is not None and self._ends_by is None:
            self.away, self._ends_by = max(1, down), Instant(self.now + DRAIN_WITHIN)
            self.connection.tell(News(Commanded("drain")))
            self.stage.later(LAST_WORDS_WITHIN, self.connection.fall_quiet)
            self.stage.at(self._ends_by, self.rouse)

    def _end_if_drained(self) -> None:
        if self._ends_by is not None and self.core is not None and self.connection is not None:
            if (not self.core.flights and self.connection.idle) or self.now >= self._ends_by:
                self._ends_by = None
                self.connection.let_go()

    def die(self) -> None:
        assert self.connection is not None, "what never lived cannot die"
        down = self._dies_at[1] if self._dies_at is not None else 0
        self._dies_at = None
        self.connection.close()
        self.stage.judge.dies(self)
        self.core = self.connection = None
        self.stage.later(milliseconds(max(1, down)), self.begin)

    # ── the World its loop sees ──────────────────────────────────────────────────────────────────────────────

    @property
    def now(self) -> Instant:
        return self.stage.now

    def perform(self, effects: Iterable[AnyEffect]) -> None:
        assert self.connection is not None, "the dead perform nothing"
        for effect in effects:
            if self._dies_at is not None and self.effects >= self._dies_at[0]:
                raise Died
            self.effects += 1
            self.stage.judge.sends(self, effect)
            self.connection.send(effect)

    def take(self) -> Event | None:
        return None if self.connection is None else self.connection.take()

    def sleep(self, until: Instant | None) -> bool:
        return False  # the stage sleeps for everyone

    # ── its place on the agenda ──────────────────────────────────────────────────────────────────────────────

    def tell(self, news: News) -> None:
        if self.connection is not None:
            self.connection.tell(news)

    def rouse(self) -> None:
        if not self._roused:
            self._roused = True
            self.stage.at(max(self.stage.now, self._busy_until), self._act)

    def _act(self) -> None:
        """Work until there is nothing to do at this moment."""
        self._roused = False
        if self.stage.now < self._busy_until:
            self.rouse()
            return
        try:
            while self.core is not None and self.connection is not None and not self.stage.judge.broken:
                worked = turn(self._tap, self, self.journal, burst=self.stage.plan.weather.burst)
                if worked and self._takes_a_while():
                    return
                if not worked and not self.connection.waiting:
                    break
        except Died:
            self.die()
            return
        except Exception as error:  # whatever it is: the core must not raise
            self.stage.judge.raised(self, error)
            return
        self._end_if_drained()
        self._set_alarm()

    def _takes_a_while(self) -> bool:
        cycle = self.stage.plan.weather.cycle
        if not cycle or self.core is None:
            return False
        took = self.stage.tape.below(milliseconds(cycle) + 1, self.name, "cycle", self.core.cycles)
        self._busy_until = Instant(self.stage.now + took)
        self.rouse()
        return True

    def _set_alarm(self) -> None:
        due = self.core.deadline if self.core is not None else None
        if due is not None and due != self._alarm:
            self._alarm = due
            self.stage.at(max(due, self.stage.now), self.rouse)

    def _told(self, moment: Moment) -> None:
        self.events += 1
        stage, core = self.stage, self._tap.core
        if stage.tracing:
            stage.trace = crc32(b"%d %b" % (moment.at, encode_effects(moment.effects)), stage.trace)
        stage.judge.witness(self, moment)
        if moment.position % self._thorough == 0:
            checks.check_deeply(core)
