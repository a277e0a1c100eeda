"""A run: one scheduler, one simulated cluster, one client, and the clock between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec import structs

from kubesched.actors.company import Actor
from kubesched.api.time import Duration, Instant
from kubesched.core.core import Core
from kubesched.drive.journal import VERSION, Head, Journal
from kubesched.drive.loop import drive
from kubesched.drive.tap import Listener, Tap
from kubesched.framework.hooks import name_of
from kubesched.sim.client import Client
from kubesched.sim.seat import Latency
from kubesched.sim.world import SimWorld


class Simulation:
    """A scheduler in a simulated cluster.

    Args:
        core: the scheduler.
        seed: of the world's luck.
        latency: how long things take.
        journal: where to write the journal of the run.
        head: what the journal shall say of the core, so that a replay builds the same; its seed, plugins and
            kinds are filled in.
        actors: who else acts in the cluster: `kubesched.actors.cast.cast()` for kubelets and controllers.
    """

    def __init__(
        self,
        core: Core,
        *,
        seed: int = 0,
        latency: Latency | None = None,
        journal: Path | str | None = None,
        head: Head | None = None,
        actors: Iterable[Actor] = (),
    ) -> None:
        self.core = core
        custom = [core.kinds[name] for name in core.own_kinds]
        self.world = SimWorld(seed=seed, latency=latency, custom=custom, actors=actors)
        self.client = Client(self.world.cluster, self.world.soon)
        if not core.position:
            core.unsynced.update(self.world.seat.kinds)  # nothing is tried before the first view is complete
        self.tap = Tap(core)
        self.journal = None
        if journal is not None:
            known = head or Head(VERSION)
            head = structs.replace(
                known, seed=core.seed, wait_for=tuple(sorted(core.unsynced)), plugins=plugins_of(core)
            )
            self.journal = Journal(journal, head, flush=False)

    @property
    def now(self) -> Duration:
        """How long the run has taken, in virtual time."""
        return Duration(self.world.now - self.world.start)

    def listen(self, listener: Listener) -> None:
        """Be told of every event and of all that came of it."""
        self.tap.listeners.append(listener)

    def at(self, moment: Duration, action: Callable[[], Any]) -> None:
        """Plan something for a moment of the run."""

        def act() -> None:
            action()

        self.world.agenda.at(Instant(self.world.start + moment), act)

    def run(self, until: Duration | None = None) -> None:
        """Run until a moment of the run, or until nothing will ever happen again."""
        self.world.horizon = None if until is None else Instant(self.world.start + until)
        drive(self.tap, self.world, self.journal)

    def wait_for(self, condition: Callable[[], bool], timeout: Duration) -> bool:
        """Run until a condition holds; False where the time is up first."""
        self.world.horizon = Instant(self.world.now + timeout)
        self.world.enough = condition
        try:
            drive(self.tap, self.world, self.journal)
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


def plugins_of(core: Core) -> dict[str, tuple[str, ...]]:
    """The names of a core's plugins, by profile."""
    return {name: tuple(name_of(plugin) for plugin in profile.plugins) for name, profile in core.profiles.items()}
