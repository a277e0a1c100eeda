"""The queue against a model of it in lists and loops, whatever is done in whatever order."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.core.queue.bench import NODE_ADD, NODE_LABEL, NODE_TAINT, POD_LABEL, POD_UNGATED, PVC_ADD, SECOND, node, pod

from kubesched.api.time import Instant
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.lifecycle import Lifecycle
from kubesched.core.queue import PriorityQueue
from kubesched.framework.events import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Hint,
    QueueingHint,
)
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod
from kubesched.framework.status import SUCCESS, unresolvable

LISTENS = {
    "Picky": {NODE_ADD: lambda about: about == "good", NODE_TAINT: lambda about: True},
    "Plain": {NODE_ADD: lambda about: True, NODE_TAINT: lambda about: True, POD_LABEL: lambda about: True},
    "Broken": {PVC_ADD: lambda about: True},
    "Deaf": {},
    "Gate": {POD_UNGATED: lambda about: True},
}
EVENTS = (NODE_ADD, NODE_TAINT, NODE_LABEL, PVC_ADD, UNSCHEDULABLE_TIMEOUT)
REJECTORS = st.frozensets(st.sampled_from(("Picky", "Plain", "Broken", "Deaf")), max_size=3)
PENDING = st.frozensets(st.sampled_from(("Picky", "Broken")), max_size=1)


# ── the model: every question is answered by looking at everything ───────────────────────────────────────────


@dataclass(eq=False)
class Known:
    uid: str
    priority: int
    closed: bool
    since: int
    seq: int
    place: str = "New"
    gate: bool = False
    who: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    rejections: int = 0
    errors: int = 0
    flushed: int = 0
    late: bool = False  # nothing says that trying it before its time may help
    left: int | None = None  # while in flight: how long the history was

    def until(self) -> int:
        failures = self.errors or self.rejections
        wait = min(SECOND * 2 ** (failures - 1), 10 * SECOND)
        return (self.since + int(wait)) // SECOND if failures else -1

    def rank(self) -> tuple[int, int, int]:
        return -self.priority, self.since, self.seq


class Model:
    def __init__(self) -> None:
        self.pods: dict[str, Known] = {}
        self.history: list[tuple[ClusterEvent, str]] = []
        self.now = 0

    def at(self, place: str) -> list[Known]:
        return [p for p in self.pods.values() if p.place == place]

    def in_flight(self) -> list[Known]:
        return [p for p in self.pods.values() if p.left is not None]

    def log(self) -> int:
        return max((len(self.history) - p.left for p in self.in_flight() if p.left is not None), default=0)

    def next(self) -> Known | None:
        early = [p for p in self.at("Backoff") if p.who and not p.late]
        return min(self.at("Active"), key=Known.rank, default=None) or min(
            early, key=lambda p: (p.until(), p.rank()), default=None
        )

    def meaning(self, p: Known, event: ClusterEvent, about: str) -> str:
        if not p.who or event == UNSCHEDULABLE_TIMEOUT or (event == FORCE_ACTIVATE and about == p.uid):
            return "after backoff"
        yes = [name for name in sorted(p.who) if event in LISTENS[name] and LISTENS[name][event](about)]
        return "at once" if p.pending.intersection(yes) else "after backoff" if yes else "no"

    def go(self, p: Known, meaning: str, *, ask: bool = True) -> None:
        if meaning == "no":
            p.place = p.place if p.place in ("Parked", "Gated") else "Parked"
            return
        p.gate = p.closed if ask else p.gate
        if p.gate:
            p.place, p.who = "Gated", p.who | {"Gate"}
            return
        held = meaning == "after backoff" and p.until() >= self.now // SECOND
        p.place = "Backoff" if held else "Active"

    def happens(self, event: ClusterEvent, about: str, sleepers: list[Known]) -> None:
        for p in sleepers:
            if not p.gate or event == UNSCHEDULABLE_TIMEOUT or event in LISTENS["Gate"]:
                if (meaning := self.meaning(p, event, about)) != "no":
                    self.go(p, meaning)
        self.history.append((event, about))

    def back(self, p: Known, who: frozenset[str], pending: frozenset[str]) -> None:
        p.who, p.pending, p.since, p.flushed = who | pending, pending, self.now, 0
        p.late = p.left is None
        p.errors, p.rejections = (0, p.rejections + 1) if p.who else (p.errors + 1, p.rejections)
        if p.left is None or not p.who:
            said = {"after backoff"}
        else:
            said = {self.meaning(p, *what) for what in self.history[p.left :]}
        p.left = None
        self.go(p, next((meaning for meaning in ("at once", "after backoff") if meaning in said), "no"))

    def overdue(self) -> int | None:
        sleepers = self.at("Parked") + self.at("Gated")
        since = min((max(p.since, p.flushed) for p in sleepers), default=None)
        return None if since is None else next(t for t in range(0, 10**9, 30) if t * SECOND > since + 300 * SECOND)

    def deadline(self) -> int | None:
        ends = [p.until() + 1 for p in self.at("Backoff")]
        return min([*ends, *([due] if (due := self.overdue()) is not None else [])], default=None)

    def tick(self) -> None:
        for p in self.at("Backoff"):
            if p.until() < self.now // SECOND:
                p.place = "Active"
        late = self.now // (30 * SECOND) * 30 * SECOND
        sleepers = [p for p in self.at("Parked") + self.at("Gated") if late - max(p.since, p.flushed) > 300 * SECOND]
        for p in sleepers:
            p.flushed = self.now
        if sleepers:
            self.happens(UNSCHEDULABLE_TIMEOUT, "", sleepers)


# ── the plugins the real queue is given ──────────────────────────────────────────────────────────────────────


class Gate:
    def pre_enqueue(self, pod):
        return unresolvable("closed") if pod.labels.get("gate") == "closed" else SUCCESS

    def events_to_register(self):
        return [Hint("Pod", Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)]


class Picky:
    def filter(self, cycle, pod, node): ...

    def events_to_register(self):
        return [Hint("Node", Action.ADD, self._look)]

    def _look(self, pod, old, new):
        return QueueingHint.QUEUE if new.name == "good" else QueueingHint.SKIP


class Plain:
    def filter(self, cycle, pod, node): ...

    def events_to_register(self):
        return [Hint("Node", Action.ADD), Hint("Pod", Action.UPDATE_POD_LABEL)]


class Broken:
    def filter(self, cycle, pod, node): ...

    def events_to_register(self):
        return [Hint("PersistentVolumeClaim", Action.ADD, self._look)]

    def _look(self, pod, old, new):
        raise RuntimeError("this hint never works")


class Deaf:
    def filter(self, cycle, pod, node): ...

    def events_to_register(self):
        return []


class QueueAgainstModel(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.model = Model()
        self.life = Lifecycle()
        self.queue = PriorityQueue()
        profile = Profile(Gate(), Picky(), Plain(), Broken(), Deaf())
        self.queue.attach(self.life, {"default-scheduler": profile}, Instant(0))
        self.infos: dict[str, PodInfo] = {}
        self.taken: dict[str, QueuedPod] = {}
        self.count = 0

    @property
    def now(self) -> Instant:
        return Instant(self.model.now)

    def pick(self, number: int, uids: list[str]) -> str:
        return uids[number % len(uids)]

    def info(self, uid: str, priority: int, closed: bool) -> PodInfo:
        labels = {"gate": "closed"} if closed else {}
        # All pods share three names: who mixes them up by name is found out.
        return pod(f"name-{int(uid[1:]) % 3}", uid=uid, priority=priority, labels=labels)

    def seq(self) -> int:
        self.count += 1
        return self.count

    # ── what is done ─────────────────────────────────────────────────────────────────────────────────────────

    @rule(priority=st.integers(0, 2), closed=st.sampled_from((False, False, True)))
    def add(self, priority: int, closed: bool) -> None:
        uid = f"u{self.seq()}"
        self.infos[uid] = self.info(uid, priority, closed)
        known = self.model.pods[uid] = Known(uid, priority, closed, self.model.now, self.count)
        self.queue.add(self.infos[uid], self.now)
        self.model.go(known, "at once")

    @precondition(lambda self: self.model.pods)
    @rule(
        number=st.integers(0, 9),
        priority=st.integers(0, 2),
        closed=st.booleans(),
        events=st.lists(st.sampled_from((POD_LABEL, POD_UNGATED)), max_size=2, unique=True),
    )
    def update(self, number: int, priority: int, closed: bool, events: list[ClusterEvent]) -> None:
        uid = self.pick(number, list(self.model.pods))
        old, info = self.infos[uid], self.info(uid, priority, closed)
        self.infos[uid] = info
        self.queue.update(old.pod, info, events, self.now)
        known = self.model.pods[uid]
        if known.place == "Trying" and known.left is None:
            if uid in self.taken:  # after done() whoever brings it back brings it up to date
                self.taken[uid].info = info
        elif known.left is not None:
            self.model.history.extend((event, uid) for event in events)
        known.priority, known.closed = priority, closed
        for event in events:
            if known.place in ("Parked", "Gated") and (meaning := self.model.meaning(known, event, uid)) != "no":
                self.model.go(known, meaning)

    @precondition(lambda self: self.model.pods)
    @rule(number=st.integers(0, 9))
    def delete(self, number: int) -> None:
        uid = self.pick(number, list(self.model.pods))
        self.queue.delete(uid, self.now)
        self.life.move(self.infos.pop(uid), "gone")
        self.taken.pop(uid, None)
        del self.model.pods[uid]

    @rule()
    def pop(self) -> None:
        expected = self.model.next()
        assert self.queue.ready == (expected is not None)
        taken = self.queue.pop(self.now)
        assert (taken.uid if taken else None) == (expected.uid if expected else None)
        if taken is not None and expected is not None:
            self.taken[taken.uid] = taken
            expected.place, expected.left = "Trying", len(self.model.history)
            expected.who = expected.pending = frozenset()

    @precondition(lambda self: self.taken)
    @rule(number=st.integers(0, 9), who=REJECTORS, pending=PENDING)
    def put_back(self, number: int, who: frozenset[str], pending: frozenset[str]) -> None:
        uid = self.pick(number, list(self.taken))
        self.queue.put_back(self.taken.pop(uid), self.now, rejectors=who, pending=pending)
        known = self.model.pods[uid]
        known.seq = self.seq()
        self.model.back(known, who, pending)

    @precondition(lambda self: self.taken)
    @rule(number=st.integers(0, 9))
    def done(self, number: int) -> None:
        uid = self.pick(number, list(self.taken))
        self.queue.done(uid)
        if self.model.pods[uid].left is not None:
            self.taken[uid].info = self.infos[uid]
        self.model.pods[uid].left = None

    @rule(event=st.sampled_from(EVENTS), about=st.sampled_from(("good", "bad")))
    def notify(self, event: ClusterEvent, about: str) -> None:
        self.queue.notify(event, None, None if event == UNSCHEDULABLE_TIMEOUT else node(about), self.now)
        if event != NODE_LABEL:  # nobody registered that
            self.model.happens(event, about, self.model.at("Parked") + self.model.at("Gated"))

    @precondition(lambda self: self.taken)
    @rule(
        number=st.integers(0, 9),
        event=st.sampled_from((NODE_ADD, PVC_ADD)),
        pending=st.sampled_from(("Picky", "Broken")),
        who=REJECTORS,
    )
    def put_back_after_news(self, number: int, event: ClusterEvent, pending: str, who: frozenset[str]) -> None:
        """What happens while somebody outside is waited for decides how the pod comes back."""
        self.notify(event, "good")
        self.put_back(number, who, frozenset({pending}))

    @precondition(lambda self: self.model.pods)
    @rule(number=st.integers(0, 9), patiently=st.booleans())
    def activate(self, number: int, patiently: bool) -> None:
        known = self.model.pods[self.pick(number, list(self.model.pods))]
        self.queue.activate([known.uid, "stranger"], self.now, patiently=patiently)
        if patiently and known.left is None:
            known.late = known.late or known.place in ("Backoff", "Parked", "Gated")
            if known.place in ("Parked", "Gated"):
                self.model.go(known, "after backoff")
        elif known.place == "Backoff":
            known.place = "Active"
        elif known.place in ("Parked", "Gated"):
            self.model.go(known, "at once")
        elif known.left is not None:
            self.model.history.append((FORCE_ACTIVATE, known.uid))

    @rule(passed=st.sampled_from((1, SECOND // 3, SECOND, 2 * SECOND - 1, 7 * SECOND, 40 * SECOND, 301 * SECOND)))
    def time_passes(self, passed: int) -> None:
        self.model.now += passed

    @rule()
    def tick(self) -> None:
        self.queue.tick(self.now)
        self.model.tick()

    @precondition(lambda self: self.queue.deadline is not None)
    @rule()
    def tick_at_the_deadline(self) -> None:
        deadline = self.queue.deadline
        assert deadline is not None
        if deadline > self.model.now:
            self.model.now = deadline - 1
            before = dict(self.life.each())
            self.queue.tick(self.now)
            assert dict(self.life.each()) == before  # not a moment too early
            self.model.now = deadline
        self.tick()

    # ── what must hold after each of them ────────────────────────────────────────────────────────────────────

    @invariant()
    def every_pod_is_where_the_model_has_it(self) -> None:
        states = {uid: state.value for uid, state in self.life.each() if state.value != "Gone"}
        assert states == {p.uid: p.place for p in self.model.pods.values()}

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        queue = self.queue
        places = [pod.uid for place in (queue._active, queue._backoff, queue._errors, queue._parked) for pod in place]
        queued = [p.uid for p in self.model.pods.values() if p.place != "Trying"]
        assert sorted(places) == sorted(queued)
        assert len(queue) == len(queued)
        assert queue.counts() == {
            "active": len(self.model.at("Active")),
            "backoff": len(self.model.at("Backoff")),
            "unschedulable": len(self.model.at("Parked")),
            "gated": len(self.model.at("Gated")),
        }

    @invariant()
    def the_log_is_as_long_as_the_oldest_pod_in_flight_needs(self) -> None:
        assert len(self.queue.in_flight.events) == self.model.log()
        assert len(self.queue.in_flight) == len(self.model.in_flight())

    @invariant()
    def the_deadline_is_the_models(self) -> None:
        deadline = self.model.deadline()
        assert self.queue.deadline == (deadline * SECOND if deadline is not None else None)

    @invariant()
    def nobody_sleeps_without_an_alarm_clock(self) -> None:
        for p in self.model.pods.values():
            alarm = self.queue.alarm(p.uid)
            assert (alarm is None) == (p.place == "Trying")
            if alarm is not None and p.place in ("Parked", "Gated"):
                listening = any(LISTENS[who] for who in (["Gate"] if p.gate else p.who))
                assert alarm.startswith("only the flush") != listening


TestQueueAgainstModel = QueueAgainstModel.TestCase
TestQueueAgainstModel.settings = settings(stateful_step_count=50)
