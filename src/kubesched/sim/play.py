"""Playing a scenario: build its scheduler and its cluster, let it happen, and see what came true."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, structs

from kubesched.api.time import Duration, Instant, format_duration, minutes
from kubesched.apiserver.status import ApiError
from kubesched.assemble import build
from kubesched.config.faults import Fault as ConfigFault
from kubesched.config.gates import features_of
from kubesched.config.registry import Registry
from kubesched.core.core import Core
from kubesched.core.messages import Commanded
from kubesched.drive.journal import VERSION, Head
from kubesched.drive.tap import Listener, Moment
from kubesched.framework.errors import ConfigError
from kubesched.framework.records import State
from kubesched.sim.expectation import Account
from kubesched.sim.faults import Fault
from kubesched.sim.report import Report
from kubesched.sim.scenario import Change, Command, Create, Delete, HoldNews, InvalidScenario, Planned, Scenario
from kubesched.sim.shorthand import Made
from kubesched.sim.simulation import Simulation
from kubesched.sim.workload import Arrivals

QUIET: Duration = minutes(10)
"""A scenario without an end is over when nothing new has happened for so long: even the five-minute flush, which
wakes whoever still waits, has had its say then."""


class Played(Struct, frozen=True):
    """What came of a scenario.

    Args:
        missed: expectations that did not come true, in words.
        impossible: planned things that the cluster refused, in words.
    """

    scenario: Scenario
    simulation: Simulation
    report: Report
    missed: tuple[str, ...]
    impossible: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.missed and not self.impossible


def play(
    scenario: Scenario,
    *,
    seed: int | None = None,
    until: Duration | None = None,
    journal: Path | str | None = None,
    checks: bool = True,
    verbosity: int = 4,
    listeners: Iterable[Listener] = (),
) -> Played:
    """Play a scenario to its end.  Raises InvalidScenario, JournalError.

    Args:
        seed: instead of the scenario's own.
        until: likewise.
        journal: where to write the journal of the run.
        checks: verify the core's invariants after every event.
        verbosity: the finest remarks of plugins that the listeners care for.
        listeners: told of every event.
    """
    scenario = structs.replace(
        scenario, seed=scenario.seed if seed is None else seed, until=scenario.until if until is None else until
    )
    core = core_of(scenario, checks)
    core.verbosity = verbosity
    head = head_of(scenario)
    account = Account(tuple(expectation.pod for expectation in scenario.expect))
    actors = () if scenario.actors is None else scenario.actors.actors()
    with Simulation(
        core, seed=scenario.seed, latency=scenario.latency, journal=journal, head=head, actors=actors
    ) as simulation:
        report = Report(core, simulation.world.start)
        heard: tuple[Listener, ...] = (account, report, *listeners)
        for listener in heard:
            simulation.listen(listener)
        stage = _Stage(scenario, simulation)
        simulation.listen(stage)
        stage.set()
        if scenario.until is None:
            simulation.world.enough = stage.is_over
        simulation.run(scenario.until)
        report.finish(simulation.world.now)
    start = simulation.world.start
    missed = (expectation.missed(account, start) for expectation in scenario.expect)
    return Played(
        scenario, simulation, report, tuple(text for text in missed if text is not None), tuple(stage.impossible)
    )


def core_of(scenario: Scenario, checks: bool = True) -> Core:
    """The scheduler of a scenario.  Raises InvalidScenario."""
    try:
        return build(
            scenario.scheduler,
            features=features_of(scenario.features),
            registry=Registry(scenario.plugins, Path(scenario.plugins_from)),
            tie=scenario.tie,
            seed=scenario.seed,
            checks=checks,
        )
    except ConfigError as error:
        path = f"scheduler.{error.path}" if error.path else "scheduler"
        raise InvalidScenario([ConfigFault(path, error.problem, error.remedy)], scenario.file) from error


def head_of(scenario: Scenario) -> Head:
    """What the journal of a scenario says of its scheduler."""
    config: dict[str, Any] = {} if scenario.scheduler is None else msgspec.to_builtins(scenario.scheduler)
    return Head(VERSION, config=config, tie=scenario.tie, features=dict(scenario.features))


class _Stage:
    """Puts a scenario on a simulation's agenda."""

    def __init__(self, scenario: Scenario, simulation: Simulation) -> None:
        self._scenario, self._simulation = scenario, simulation
        self._lives: dict[str, Duration] = {}  # uid → how long it will live once it is bound
        self._coming = 0  # how much is still planned
        self._latest = simulation.world.start  # when something new happened last
        self.impossible: list[str] = []

    def __call__(self, moment: Moment) -> None:
        if any(record.state in (State.BOUND, State.GONE) for record in moment.records):
            self._latest = moment.at

    def is_over(self) -> bool:
        """Nothing is planned, nobody is on the way, and nothing new has happened for long."""
        simulation = self._simulation
        busy = self._coming or simulation.core.flights
        return not busy and simulation.world.now - self._latest >= QUIET

    def set(self) -> None:
        """The cluster as it is when the run begins, and everything planned."""
        self._simulation.client.watch("Pod", self._see)
        for planned in self._scenario.cluster:
            self._begin_with(planned)
        for planned in self._scenario.planned:
            self._plan(planned)
        for workload in self._scenario.workloads:
            self._expect_next(workload.arrivals(self._scenario.seed))

    def _begin_with(self, planned: Planned) -> None:
        """What cannot be there from the beginning is a fault of the scenario."""
        try:
            self._do(planned)
        except ApiError as error:
            where, _, path = planned.where.rpartition(": ")
            file, _, line = where.rpartition(":")
            fault = ConfigFault(path, error.message, line=int(line) if line.isdecimal() else 0)
            raise InvalidScenario([fault], file or self._scenario.file) from None

    def _plan(self, planned: Planned) -> None:
        def act() -> None:
            try:
                self._do(planned)
            except ApiError as error:
                where = f"{planned.where}: " if planned.where else ""
                self.impossible.append(f"{where}at {format_duration(planned.at)}: {error.message}")

        self._at(planned.at, act)

    def _at(self, moment: Duration, action: Callable[[], None]) -> None:
        """Plan something; the run is not over before it has happened."""
        self._coming += 1

        def act() -> None:
            self._coming -= 1
            self._latest = self._simulation.world.now
            action()

        self._simulation.at(moment, act)

    def _do(self, planned: Planned) -> None:
        simulation = self._simulation
        client, world = simulation.client, simulation.world
        match planned.deed:
            case Create(made):
                for one in made:
                    self._create(one)
            case Delete(target):
                client.delete(target.kind, target.name, target.namespace)
            case Change(target, body):
                client.patch(target.kind, target.name, body, target.namespace)
            case HoldNews(kind, duration):
                world.seat.hold_news(kind, Instant(world.now + duration))
            case Command(verb, pod):
                world.seat.tell(Commanded(_verb(verb), pod))
            case Fault() as fault:
                world.seat.faults.add(fault, world.now)

    # ── pods that live for a while ───────────────────────────────────────────────────────────────────────────

    def _create(self, made: Made) -> None:
        created = self._simulation.client.create(made.obj)
        if made.lifetime is not None:
            self._lives[created["metadata"]["uid"]] = made.lifetime
            self._see("ADDED", created)

    def _see(self, _: str, pod: dict[str, Any]) -> None:
        """A pod begins to live when it is on a node."""
        meta, spec = pod["metadata"], pod.get("spec")
        lifetime = self._lives.get(meta["uid"])
        if lifetime is None or not isinstance(spec, dict) or not spec.get("nodeName"):
            return
        del self._lives[meta["uid"]]

        def end() -> None:
            found = self._simulation.client.find("Pod", meta["name"], meta["namespace"])
            if found is not None and found["metadata"]["uid"] == meta["uid"]:
                self._simulation.client.delete("Pod", meta["name"], meta["namespace"])

        self._at(Duration(self._simulation.now + lifetime), end)

    def _expect_next(self, arrivals: Arrivals) -> None:
        """Only the next arrival of a workload is on the agenda."""
        coming = arrivals.next()
        if coming is None:
            return
        at, pod, lifetime = coming

        def arrive() -> None:
            try:
                self._create(Made(pod, lifetime))
            except ApiError as error:
                self.impossible.append(f"workload {arrivals.workload.name}: at {format_duration(at)}: {error.message}")
            self._expect_next(arrivals)

        self._at(at, arrive)


def _verb(verb: str) -> Literal["activate", "allow", "reject", "flush", "drain"]:
    checked: Literal["activate", "allow", "reject", "flush", "drain"] = msgspec.convert(
        verb, Literal["activate", "allow", "reject", "flush", "drain"]
    )
    return checked
