"""A run: one scheduler, one simulated cluster, one client, and the clock between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubesched.api.time import Duration, Instant
from kubesched.core.core import Core
from kubesched.drive.journal import Head, Journal
from kubesched.drive.loop import drive
from kubesched.sim.client import Client
from kubesched.sim.world import Latency, SimWorld


class Simulation:
    """A scheduler in a simulated cluster.

    Args:
        core: the scheduler.
        seed: of the world's luck.
        latency: how long things take.
        journal: where to write the journal of the run.
        config: goes to the journal's head, so that a replay builds the same core.
    """

    def __init__(
        self,
        core: Core,
        *,
        seed: int = 0,
        latency: Latency | None = None,
        journal: Path | str | None = None,
        config: dict[str, Any] | None = None,
    ) -> None:
        self.core = core
        self.world = SimWorld(seed=seed, latency=latency)
        self.client = Client(self.world.cluster, self.world.soon)
        head = Head(seed=core.seed, config=config or {}, wait_for=tuple(sorted(core.unsynced)))
        self.journal = None if journal is None else Journal(journal, head)

    @property
    def now(self) -> Duration:
        """How long the run has taken, in virtual time."""
        return Duration(self.world.now - self.world.start)

    def at(self, moment: Duration, action: Callable[[], Any]) -> None:
        """Plan something for a moment of the run."""

        def act() -> None:
            action()

        self.world.agenda.at(Instant(self.world.start + moment), act)

    def run(self, until: Duration | None = None) -> None:
        """Run until a moment of the run, or until nothing will ever happen again."""
        self.world.horizon = None if until is None else Instant(self.world.start + until)
        drive(self.core, self.world, self.journal)

    def wait_for(self, condition: Callable[[], bool], timeout: Duration) -> bool:
        """Run until a condition holds; False where the time is up first."""
        self.world.horizon = Instant(self.world.now + timeout)
        self.world.enough = condition
        try:
            drive(self.core, self.world, self.journal)
        finally:
            self.world.enough = None
        return condition()

    def close(self) -> None:
        """Close the journal."""
        if self.journal is not None:
            self.journal.close()

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
