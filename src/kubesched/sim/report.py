"""What came of a run, added up while it runs: placements, waits, utilisation, preemptions, and who still waits.

A Report is a fold over the account a core gives of itself, its Records and Decisions, so the same report is made of
a simulation and of a journal from last week.  Only utilisation looks at the core's table as well: whoever asks how
full the nodes were must know how big they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from kubesched.api.time import Duration, Instant
from kubesched.core.core import Core
from kubesched.core.messages import Evict, Observed
from kubesched.drive.tap import Moment
from kubesched.framework.decision import Decision
from kubesched.framework.records import State

SHOWN_RESOURCES = ("cpu", "memory")


class Waiting(Struct, frozen=True):
    """A pod that was not bound when the run ended, and why."""

    pod: str
    state: State
    since: Instant
    attempts: int
    why: str


class Use(Struct, frozen=True):
    """How full the nodes were of one resource, as parts of one: on average over time, and at most."""

    mean: float
    peak: float


class Report:
    """Listens to a run, and sums it up."""

    def __init__(self, core: Core, start: Instant | None = None) -> None:
        self.core = core
        self.start = start
        self.end = start or Instant(0)
        self.events = self.attempts = self.failures = self.bound = 0
        self.evicted: list[tuple[str, str]] = []  # (victim, for whom)
        self.nodes: Counter[str] = Counter()  # placements by node
        self.waits: list[int] = []  # from arrival to bind
        self._arrived: dict[str, Instant] = {}  # uid → first seen
        self._tries: Counter[str] = Counter()
        self._latest: dict[str, Decision] = {}  # of pods that still wait
        self._open: dict[str, tuple[str, State, Instant, str]] = {}  # uid → pod, state, since, note
        self._meters = [Meter(i) for i in range(len(SHOWN_RESOURCES))]

    def __call__(self, moment: Moment) -> None:
        if self.start is None:
            self.start = moment.at
        self.events += 1
        if moment.at > self.end:
            for meter in self._meters:
                meter.pass_time(self.end, moment.at)
            self.end = moment.at
        for decision in moment.decisions:
            self._decided(decision, moment)
        for record in moment.records:
            self._moved(record.uid, record.pod, record.state, record.cause, record.note, record.at)
        if moment.records or isinstance(moment.event, Observed):
            for meter in self._meters:
                meter.read(self.core)

    def _decided(self, decision: Decision, moment: Moment) -> None:
        self.attempts += 1
        self._tries[decision.uid] += 1
        if not decision.placed:
            self.failures += 1
            self._latest[decision.uid] = decision
        self.evicted += [(effect.pod, decision.pod) for effect in moment.effects if isinstance(effect, Evict)]

    def _moved(self, uid: str, pod: str, state: State, cause: str, note: str, at: Instant) -> None:
        arrived = self._arrived.setdefault(uid, at)
        if state is State.BOUND and cause == "bound":
            self.bound += 1
            self.nodes[note] += 1
            self.waits.append(at - arrived)
        if state in (State.BOUND, State.GONE):
            for kept in (self._open, self._latest, self._arrived, self._tries):
                kept.pop(uid, None)
        else:
            before = self._open.get(uid)
            since = at if before is None or before[1] is not state else before[2]
            self._open[uid] = (pod, state, since, note)

    def finish(self, now: Instant) -> None:
        """The run is over; time has passed until now."""
        if now > self.end:
            for meter in self._meters:
                meter.pass_time(self.end, now)
            self.end = now

    # ── what it says ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def lasted(self) -> Duration:
        return Duration(self.end - (self.start or self.end))

    @property
    def waiting(self) -> list[Waiting]:
        """The pods nobody has bound, in the order of their arrival."""
        found = []
        for uid, (pod, state, since, note) in sorted(self._open.items(), key=lambda item: self._arrived[item[0]]):
            decision = self._latest.get(uid)
            why = note if state in (State.INVALID, State.GATED) or decision is None else decision.message
            found.append(Waiting(pod, state, since, self._tries[uid], why))
        return found

    def wait(self, per_cent: int) -> Duration:
        """How long that part of the bound pods waited at most, by nearest rank; 0 where none was bound."""
        if not self.waits:
            return Duration(0)
        ranked = sorted(self.waits)
        return Duration(ranked[max(0, -(-per_cent * len(ranked) // 100) - 1)])

    @property
    def use(self) -> Mapping[str, Use]:
        return {name: meter.use for name, meter in zip(SHOWN_RESOURCES, self._meters, strict=True)}

    def as_json(self) -> dict[str, Any]:
        """Everything, for programs; durations in seconds."""
        spread = sorted(self.nodes.values())
        return {
            "virtualSeconds": self.lasted / 1e9,
            "events": self.events,
            "attempts": self.attempts,
            "failedAttempts": self.failures,
            "bound": self.bound,
            "waitSeconds": {
                "p50": self.wait(50) / 1e9,
                "p99": self.wait(99) / 1e9,
                "max": max(self.waits, default=0) / 1e9,
            },
            "placements": dict(sorted(self.nodes.items())),
            "placementsPerNode": {"min": spread[0], "max": spread[-1]} if spread else {},
            "utilisation": {name: {"mean": round(u.mean, 4), "peak": round(u.peak, 4)} for name, u in self.use.items()},
            "preemptions": [{"victim": victim, "for": pod} for victim, pod in self.evicted],
            "waiting": [
                {"pod": w.pod, "state": w.state.value, "attempts": w.attempts, "why": w.why} for w in self.waiting
            ],
        }


class Meter:
    """How full the nodes are of one resource, over time."""

    def __init__(self, column: int) -> None:
        self._column = column
        self._used = self._capacity = 0
        self._area = self._time = 0.0
        self._peak = 0.0

    def read(self, core: Core) -> None:
        table = core.mirror.table
        rows = table.rows
        self._used = int(table.requested[rows, self._column].sum())
        self._capacity = int(table.allocatable[rows, self._column].sum())
        self._peak = max(self._peak, self._now)

    def pass_time(self, since: Instant, until: Instant) -> None:
        if self._capacity:
            self._area += self._now * (until - since)
            self._time += until - since

    @property
    def _now(self) -> float:
        return self._used / self._capacity if self._capacity else 0.0

    @property
    def use(self) -> Use:
        return Use(self._area / self._time if self._time else self._now, self._peak)


def reasons(waiting: Sequence[Waiting]) -> list[tuple[str, list[Waiting]]]:
    """Who waits, by reason; the reason most pods have first."""
    groups: dict[str, list[Waiting]] = {}
    for each in waiting:
        groups.setdefault(each.why, []).append(each)
    return sorted(groups.items(), key=lambda group: -len(group[1]))
