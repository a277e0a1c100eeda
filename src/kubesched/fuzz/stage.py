"""Where a plan is played: one cluster, one agenda, and everyone who lives on it.

Time moves only here, from one planned thing to the next.  After every single action the judge looks at what became
of the store; the first broken law ends the run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kubesched.api.time import Duration, Instant, milliseconds, parse_rfc3339, seconds
from kubesched.apiserver.inprocess import InProcess
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.status import ApiError
from kubesched.apiserver.store import Store
from kubesched.assemble import build
from kubesched.config.load import load
from kubesched.config.registry import Registry
from kubesched.core.core import Core
from kubesched.core.messages import AnyEffect, Bind, Call, Commanded, Evict, PatchPod, Publish, ReadPod
from kubesched.drive.agenda import Action, Agenda
from kubesched.drive.requests import split
from kubesched.fuzz import succession
from kubesched.fuzz.connection import Connection, News
from kubesched.fuzz.extender import PlayedExtender
from kubesched.fuzz.judge import Judge
from kubesched.fuzz.people import People
from kubesched.fuzz.plan import (
    FAULTS,
    Alter,
    Crash,
    Echo,
    Gap,
    Happening,
    Hush,
    Json,
    Make,
    Mishap,
    Place,
    Plan,
    Remove,
    Say,
    Stop,
)
from kubesched.fuzz.process import Process
from kubesched.fuzz.tape import Tape
from kubesched.fuzz.wired import Wired, classes, for_server
from kubesched.sim.cluster import WATCHED, Cluster, die_gracefully

START: Instant = parse_rfc3339("2026-01-01T00:00:00Z")
AFTER_REST: Duration = seconds(20)  # how long the judge goes on looking when all has come to rest
SUBJECT, STANDBY = "main", "standby"
BOOKMARK_EVERY: Duration = seconds(60)
THOROUGH = 16
_REGISTRY = Registry()  # classes are looked up and checked once, not for every life of every scheduler


class Stage:
    """One run of a plan.

    Args:
        thorough: every so many events a core is checked from the inside; 1 for every event.
        tracing: keep a fingerprint of everything the schedulers did, in `trace`.
    """

    kinds = WATCHED
    start = START

    def __init__(self, plan: Plan, *, thorough: int = THOROUGH, tracing: bool = False) -> None:
        self.plan, self.tape = plan, Tape(plan.seed)
        self._configuration = load(plan.scheduler) if plan.scheduler else None
        self.agenda = Agenda()
        self.now = START
        self.calm = not plan.weather.until
        self._make_cluster()
        self.people = People(self)
        self.extender = PlayedExtender(self, plan.custom.extender)
        self.judge = Judge(self)
        self.met: list[Mishap] = []  # what went wrong with requests
        self.faults = 0  # everything that went wrong
        self.steps = 0  # of the agenda
        self.tracing, self.trace = tracing, 0
        self._counts: dict[tuple[str, str], int] = {}  # (effect, key) → how many there were
        self._wished = {mishap.place: mishap for mishap in plan.mishaps}
        self.processes = {SUBJECT: Process(self, SUBJECT, self._core, ours=True, thorough=thorough)}
        if plan.custom.wire == "elected":
            self.processes[STANDBY] = Process(self, STANDBY, self._core, ours=True, thorough=thorough)
        if plan.custom.rival:
            self.processes["rival"] = Process(self, "rival", partial(self._core, 1), ours=False, thorough=1 << 30)

    def _core(self, more: int = 0) -> Core:
        return build(self._configuration, registry=_REGISTRY, seed=self.plan.seed + more, checks=False)

    def _make_cluster(self) -> None:
        """The store, and in front of it either nothing at all or the whole API server."""
        custom, luck = self.plan.custom, self.tape.stream("store")
        self.cluster: Cluster | InProcess
        if custom.wire:
            self.server = ApiServer(Store(now=self._time, luck=luck), now=self._time)
            self.server.bootstrap()
            self.cluster = InProcess(self.server)
            for obj in classes():
                self.cluster.create(obj)
        else:
            self.cluster = Cluster(self._time, luck)
            if custom.grace:
                die_gracefully(self.cluster)

    def _time(self) -> Instant:
        return self.now

    def connect(self, owner: str, life: int) -> Connection:
        """A new process's connection."""
        wire = self.plan.custom.wire
        return Wired(self, owner, life, wire == "elected") if wire else Connection(self, owner)

    @property
    def leader(self) -> Process | None:
        """Who may schedule, of those under test."""
        ours = (process for process in self.processes.values() if process.ours)
        return next((one for one in ours if one.connection is not None and one.connection.leading), None)

    def exit(self, connection: Connection) -> None:
        """A process has nothing left to do, and is started anew."""
        process = self.processes[connection.owner]
        if process.connection is connection:
            process.doom(0, process.away)
            process.die()

    # ── the agenda ───────────────────────────────────────────────────────────────────────────────────────────

    def at(self, due: Instant, action: Action) -> None:
        self.agenda.at(due, action)

    def later(self, delay: Duration, action: Action) -> None:
        self.agenda.at(Instant(self.now + delay), action)

    def soon(self, action: Action) -> None:
        self.agenda.at(self.now, action)

    def rouse(self, process: str) -> None:
        self.processes[process].rouse()

    # ── a run ────────────────────────────────────────────────────────────────────────────────────────────────

    def play(self) -> None:
        """From the first moment to the last, or to the first broken law."""
        plan, judge = self.plan, self.judge
        for obj in plan.cluster:
            self._attempt(partial(self._create, obj))
        judge.look()
        self.people.begin()
        if plan.custom.wire:
            self._bookmark()
        for process in self.processes.values():
            process.begin()
        for happening in plan.happenings:
            self.at(self._moment(happening.at), partial(self._happen, happening))
        if not self.calm:
            self.at(self._moment(plan.weather.until), self._quiet)
        rest = self._moment(plan.weather.until + plan.patient)
        self.at(rest, judge.rest)
        self.run(Instant(rest + AFTER_REST))
        if not judge.broken:
            judge.end()
        if STANDBY in self.processes:
            succession.play(self)

    def run(self, horizon: Instant) -> None:
        """Let happen what happens until then, or until a law is broken."""
        agenda, judge = self.agenda, self.judge
        while not judge.broken and (due := agenda.next) is not None and due <= horizon:
            self.now = max(self.now, due)
            action = agenda.pop(self.now)
            assert action is not None, "what is next is due"
            self.steps += 1
            action()
            if judge.dirty:
                judge.look()
        if not judge.broken:
            self.now = max(self.now, horizon)

    def _bookmark(self) -> None:
        self.server.store.bookmark()
        self.later(BOOKMARK_EVERY, self._bookmark)

    def _moment(self, at: int) -> Instant:
        return Instant(START + milliseconds(at))

    def _quiet(self) -> None:
        """Faults stop, and the cluster is left alone."""
        self.calm = True
        self.judge.calms()
        for process in self.processes.values():
            if process.connection is not None:
                process.connection.calm()

    def _happen(self, happening: Happening) -> None:
        if isinstance(happening, FAULTS):
            self._harm(happening)
        elif isinstance(happening, Say):
            connection = self.processes[SUBJECT].connection
            if connection is not None:
                connection.tell(News(Commanded(happening.verb, happening.key)))
        else:
            self._attempt(partial(self._change, happening))

    def _change(self, happening: Make | Remove | Alter | Place) -> None:
        match happening:
            case Make(obj=obj):
                self._create(obj)
            case Remove(kind=kind, key=key):
                self.cluster.delete(kind, *split(key))
            case Alter(kind=kind, key=key, body=body):
                self.cluster.patch(kind, *split(key), body)
            case Place(key=key, node=node):
                waiting = [pod.key for pod in self.judge.truth.pods.values() if not pod.node]
                if not key and not waiting:
                    return
                key = key or self.tape.choice(waiting, "whom to place", happening.at)
                self.cluster.bind(*split(key), node)

    def make(self, obj: Json) -> None:
        """An object appears, whatever the plan says."""
        self._attempt(partial(self._create, obj))

    def _create(self, obj: Json) -> None:
        self.cluster.create(for_server(obj) if self.plan.custom.wire else obj)

    def _attempt(self, action: Callable[[], object]) -> None:
        """What the cluster refuses does not happen: the plan may have been cut down."""
        try:
            action()
        except ApiError:
            self.judge.refused += 1

    def _harm(self, harm: Hush | Gap | Echo | Crash | Stop) -> None:
        """News are kept from one of those under test; whoever leads dies, or ends."""
        ours = [process for process in self.processes.values() if process.ours]
        target = self.tape.choice(ours, "whom to harm", harm.at)
        if isinstance(harm, (Crash, Stop)):
            target = self.leader or ours[0]
        if target.connection is None:
            return
        self.faults += 1
        match harm:
            case Crash(effects=effects, down=down):
                target.doom(effects, down)
            case Stop(down=down):
                target.stop(down)
            case Hush(kind=kind, lasting=lasting):
                target.connection.stream(kind).hush(Instant(self.now + milliseconds(lasting)))
            case Gap(kind=kind, lasting=lasting):
                target.connection.stream(kind).gap(Instant(self.now + milliseconds(lasting)))
            case Echo(kind=kind, times=times):
                target.connection.stream(kind).echo(times)

    @property
    def requests(self) -> list[tuple[str, str, int]]:
        """Every request there was: its type, what it was about, and its number."""
        return [(*about, n) for about, count in self._counts.items() for n in range(1, count + 1)]

    # ── luck ─────────────────────────────────────────────────────────────────────────────────────────────────

    def mishap(self, effect: AnyEffect) -> Mishap | None:
        """What goes wrong with a request: what the plan says of it, or what its chances bring."""
        return self.mishap_of(type(effect).__name__, about(effect))

    def mishap_of(self, name: str, key: str) -> Mishap | None:
        number = self._counts[name, key] = self._counts.get((name, key), 0) + 1
        if self.calm:
            return None
        mishap = self._wished.get((name, key, number)) or self._chance(name, key, number)
        if mishap is not None:
            self.met.append(mishap)
            self.faults += 1
        return mishap

    def _chance(self, name: str, key: str, number: int) -> Mishap | None:
        chances = self.plan.weather.chances.get(name)
        if not chances:
            return None
        left = self.tape.part("mishap", name, key, number)
        for outcome, chance in chances.items():
            left -= chance
            if left < 0:
                spread = _SPREAD.get(outcome)
                patience = self.plan.weather.patience
                after = patience if spread is None else self.tape.below(spread, "after", name, key, number)
                return Mishap(effect=name, key=key, number=number, outcome=outcome, after=after)
        return None

    def write_takes(self, effect: AnyEffect) -> Duration:
        return self._with_jitter(self.plan.weather.write, "write", effect.id)

    def request_takes(self, who: str, number: int) -> Duration:
        return self._with_jitter(self.plan.weather.write, "request", who, number)

    def lag(self, kind: str) -> Duration:
        if self.calm:
            return milliseconds(1)
        weather = self.plan.weather
        return self._with_jitter(weather.lag.get(kind, weather.lag.get("", 1)), "lag", kind, self.steps)

    def _with_jitter(self, usual: int, *name: object) -> Duration:
        jitter = self.plan.weather.jitter
        more = self.tape.below(milliseconds(jitter), *name) if jitter and not self.calm else 0
        return Duration(milliseconds(usual) + more)


_SPREAD = {"late": 120_000, "slow": 30_000}


def about(effect: AnyEffect) -> str:
    """Which object an effect is about."""
    match effect:
        case Bind() | PatchPod() | ReadPod() | Evict():
            return effect.pod
        case Publish():
            return effect.regarding
        case Call():
            return str(getattr(effect.step, "key", ""))
