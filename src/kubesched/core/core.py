"""Core.handle: events in, effects out, one mutating method.

The core never waits, reads a clock or opens a socket; the time comes with the event.  Arrivals only change what
we believe and who is queued.  Work happens on Ticks, one pod each, so a burst of news is folded in before the
next decision, and neither can starve the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import ParamSpec, TypeVar, assert_never

from kubesched.api.kinds import CustomResource, Kind
from kubesched.api.objects import Pod
from kubesched.api.time import Duration, Instant
from kubesched.cluster.columns import Nodes
from kubesched.cluster.mirror import Mirror
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.trial import Trial
from kubesched.core import checks, watching
from kubesched.core.board import Boards
from kubesched.core.decisions import Decisions
from kubesched.core.evicting import Evictions
from kubesched.core.failing import Failing
from kubesched.core.flight import Flight
from kubesched.core.flying import Flying
from kubesched.core.lifecycle import Lifecycle
from kubesched.core.luck import SeededLuck
from kubesched.core.messages import (
    AnyEffect,
    Call,
    Commanded,
    Completed,
    EffectId,
    Event,
    Observed,
    Publish,
    Synced,
    Tick,
)
from kubesched.core.outbox import Outbox
from kubesched.core.queue import PriorityQueue, Queue
from kubesched.core.reminders import Reminder
from kubesched.core.schedule import Attempt, attempt, schedule
from kubesched.core.timers import Timers
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision
from kubesched.framework.features import Features
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod
from kubesched.framework.records import Record, State
from kubesched.framework.remarks import Remarks
from kubesched.framework.steps import Answer
from kubesched.framework.tools import Activate, Judge, Note, WaitingPod, Wish

P = ParamSpec("P")
T = TypeVar("T")


class Core:
    """A scheduler: a value you fold events into.

    Args:
        profiles: by scheduler name, or a single one.
        queue: who is tried next; Kubernetes' queue where none is given.
        seed: of all luck.
        checks: verify the invariants after every event.
        boards: keep answers from pods alike; they never change a decision.
        wait_for: kinds whose first complete view must have been told before anything is tried.
    """

    def __init__(
        self,
        profiles: Mapping[str, Profile] | Profile,
        *,
        queue: Queue | None = None,
        seed: int = 0,
        checks: bool = True,
        features: Features | None = None,
        boards: bool = True,
        wait_for: Iterable[str] = (),
    ) -> None:
        self.profiles = {profiles.name: profiles} if isinstance(profiles, Profile) else dict(profiles)
        self.queue: Queue = PriorityQueue() if queue is None else queue
        self.seed = seed
        self.checking = checks
        self.features = features or Features()
        self.unsynced = set(wait_for)
        self.draining = False
        self.now = Instant(0)
        self.position = 0  # of the event being handled, in the journal
        self.cycles = 0
        self.rotation = 0  # where the next search begins
        self.mirror = Mirror()
        self.life = Lifecycle()
        self.outbox = Outbox()
        self.timers: Timers[Reminder] = Timers()
        self.decisions = Decisions()
        self.boards = Boards() if boards else None
        self.evictions = Evictions(self)
        self.failing = Failing(self)
        self.flying = Flying(self)
        self.notes: list[Note] = []  # of plugins, since the last event
        self.verbosity = 4  # the finest remark of a plugin that anybody reads
        self._remarks: Remarks | None = None  # of the attempt whose plugins are being asked
        self._wishes: deque[Wish] = deque()
        self._suspended: tuple[QueuedPod, Cycle, Profile, Attempt] | None = None
        self._started = False
        for profile in self.profiles.values():
            for plugin in profile.plugins:
                plugin.tools.attach(self)

    # ── the one method that changes anything ─────────────────────────────────────────────────────────────────

    def handle(self, event: Event, now: Instant) -> list[AnyEffect]:
        """Fold one event in; return what should now be done."""
        self._begin(now)
        self._fire_timers()
        match event:
            case Tick():
                self._work()
            case Observed(obj, gone):
                watching.observe(self, obj, gone)
                self.flying.look_again()
            case Completed(effect, answer):
                self._settle(effect, answer)
            case Commanded(verb, pod):
                self._obey(verb, pod)
            case Synced(kinds):
                self.unsynced.difference_update(kinds)
            case _ as never:
                assert_never(never)
        self._grant_wishes()
        if self.checking:
            checks.check(self)
        return self.outbox.take()

    @property
    def ready(self) -> bool:
        """Would a Tick try a pod right now?"""
        may_begin = self._started and not self.unsynced and self._suspended is None and not self.draining
        return may_begin and self.queue.ready

    @property
    def deadline(self) -> Instant | None:
        """The earliest moment a Tick is needed by itself."""
        if not self._started:
            return None  # there is no time before the first event
        due = [moment for moment in (self.timers.deadline, self.queue.deadline) if moment is not None]
        return min(due, default=None)

    def _begin(self, now: Instant) -> None:
        self.now = max(now, self.now)  # a clock that steps back does not undo anything
        if not self._started:
            self._started = True
            self.queue.attach(self.life, self.profiles, self.now)
        self.position += 1
        self.life.begin(self.now, self.position)
        self.outbox.begin(self.position)
        self.decisions.begin()
        self.notes = []

    def _fire_timers(self) -> None:
        while (reminder := self.timers.pop(self.now)) is not None:
            reminder.fire(self)

    def _settle(self, effect: EffectId, answer: Answer) -> None:
        heir = self.outbox.settle(effect)
        if answer.obj is not None and watching.knows(self, answer.obj):
            watching.observe(self, answer.obj, gone=False)  # the server's word, ahead of the watch
        if heir is not None:
            heir(answer)

    def _obey(self, verb: str, pod: str) -> None:
        uid = self.life.uid_of(pod)
        if verb == "drain":
            self.draining = True
        elif verb == "flush":
            self.queue.activate([uid for uid, state in self.life.each() if state is State.PARKED], self.now)
        elif uid is not None and verb == "activate":
            self.queue.activate([uid], self.now)
        elif uid is not None:
            self.flying.judge_all(uid, verb, "by an operator")

    # ── one unit of work ─────────────────────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        deadline = self.queue.deadline
        if deadline is not None and deadline <= self.now:
            self.queue.tick(self.now)
        if self.ready:
            queued = self.queue.pop(self.now)
            if queued is not None:
                self._try(queued)

    def _try(self, queued: QueuedPod) -> None:
        info = queued.info
        profile = self.profiles[info.pod.spec.scheduler_name]
        if info.pod.terminating or info.uid in self.evictions.ending:
            self.publish(info, profile, "FailedScheduling", f"skip schedule deleting pod: {info.key}", warning=True)
            self.queue.delete(info.uid, self.now)  # and the room it was promised
            self.life.move(info, "gone", "it is being deleted")
            return
        self.cycles += 1
        cycle = self._cycle(info)
        if profile.extenders:  # others may change the cluster before an extender answers
            cycle.nodes = Nodes(cycle.table.fork(), cycle.nodes.rows)
            cycle.objects = self.mirror.objects.fork()
            self._go_on(queued, cycle, profile, attempt(cycle, profile), None)
        else:
            decision = self.asking(cycle, schedule, cycle, profile, boards=self.boards)
            self._decided(queued, cycle, profile, decision)

    def _cycle(self, info: PodInfo) -> Cycle:
        return Cycle(
            info,
            self.nodes,
            self.mirror.objects,
            now=self.now,
            luck=SeededLuck(self.seed, self.cycles),
            number=self.cycles,
            start=self.rotation,
            nominated=self.queue.nominated(),
        )

    def _go_on(self, queued: QueuedPod, cycle: Cycle, profile: Profile, steps: Attempt, answer: Answer | None) -> None:
        """Carry an attempt on to its next question to an extender, or to its end."""
        self._suspended = None
        try:
            step = self.asking(cycle, next, steps) if answer is None else self.asking(cycle, steps.send, answer)
        except StopIteration as done:
            cycle.nodes, cycle.objects = self.nodes, self.mirror.objects
            self._decided(queued, cycle, profile, done.value)
            return
        self._suspended = (queued, cycle, profile, steps)
        self.outbox.emit(Call, lambda a: self._go_on(queued, cycle, profile, steps, a), step=step)

    def _decided(self, queued: QueuedPod, cycle: Cycle, profile: Profile, decision: Decision) -> None:
        self.rotation = decision.next_start
        self.decisions.add(decision)
        if self.life.state(queued.uid) is not State.TRYING:
            return  # it went away while an extender was asked
        if decision.placed:
            self.flying.launch(queued, cycle, profile, decision)
        else:
            # The evictions first: a pod that comes back must not choose victims again before these are answered.
            if decision.post_filter is not None and decision.post_filter.victims:
                self.evictions.begin(queued.info, profile, decision)
            self.failing.unfit(queued, profile, decision)

    def asking(self, cycle: Cycle, ask: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask what plugins are asked in; what they remark meanwhile belongs to this cycle."""
        before, self._remarks = self._remarks, cycle.remarks
        try:
            return ask(*args, **kwargs)
        finally:
            self._remarks = before

    # ── wishes of plugins ────────────────────────────────────────────────────────────────────────────────────

    def _grant_wishes(self) -> None:
        while self._wishes:
            match self._wishes.popleft():
                case Judge() as judge:
                    self.flying.judge(judge)
                case Activate(uids):
                    self.queue.activate(uids, self.now)
                case Note() as note:
                    self.notes.append(note)

    # ── what plugins see (framework.tools.Desk) ──────────────────────────────────────────────────────────────

    @property
    def nodes(self) -> Nodes:
        return Nodes(self.mirror.table, self.mirror.table.rows)

    @property
    def objects(self) -> Objects:
        return self.mirror.objects

    def waiting(self) -> Sequence[WaitingPod]:
        held = (flight for flight in self.flights.values() if flight.holds)
        return [WaitingPod(flight.info, flight.node, tuple(flight.holds)) for flight in held]

    def wish(self, wish: Wish) -> None:
        if isinstance(wish, Note):
            if wish.verbosity > self.verbosity:
                return
            if self._remarks is not None:
                self._remarks.add(wish)
        self._wishes.append(wish)

    def pods(self, namespace: str | None = None) -> Iterable[PodInfo]:
        placed = (tracked.info for tracked in self.mirror.placed.values())
        return placed if namespace is None else (info for info in placed if info.namespace == namespace)

    def preempting(self, uid: str) -> bool:
        return self.evictions.unanswered(uid)

    @property
    def leaving(self) -> Set[str]:
        return self.evictions.ending

    def promised(self, uid: str) -> str | None:
        return self.queue.promised(uid) if self.life.state(uid) is not None else None

    # ── questions: pure reads ────────────────────────────────────────────────────────────────────────────────

    @property
    def flights(self) -> Mapping[str, Flight]:
        """Pods between their decision and their bind, by uid."""
        return self.flying.flights

    def state(self, pod: str) -> State | None:
        """Where the pod of this name is; None for one we do not know."""
        uid = self.life.uid_of(pod)
        return None if uid is None else self.life.state(uid)

    @property
    def kinds(self) -> dict[str, Kind]:
        """What the plugins of all profiles read, by name: what has to be watched."""
        return {name: kind for profile in self.profiles.values() for name, kind in profile.kinds.items()}

    @property
    def own_kinds(self) -> dict[str, type[CustomResource]]:
        """Those of the kinds that only the plugins know."""
        views = ((name, kind.view) for name, kind in self.kinds.items())
        return {name: view for name, view in views if issubclass(view, CustomResource)}

    @property
    def suspended_uid(self) -> str | None:
        """The pod whose attempt waits for an extender."""
        return None if self._suspended is None else self._suspended[0].uid

    def why(self, pod: str) -> Decision | None:
        """The last attempt, as recorded."""
        return self.decisions.latest(pod)

    def story(self, pod: str) -> Sequence[Record]:
        """Every move of one pod, with causes."""
        return self.life.story(pod)

    def what_if(self, pod: Pod, *, given: Trial | None = None, exhaustive: bool = False) -> Decision:
        """Where would this pod go now?  `given` is a trial on this core's table, still open."""
        assert given is None or given.table is self.mirror.table, "the trial is on another table"
        profile, cycle = self.profiles[pod.spec.scheduler_name], self._cycle(PodInfo(pod))
        wishes, self._wishes = self._wishes, deque()
        try:
            return self.asking(cycle, schedule, cycle, profile, exhaustive=exhaustive)
        finally:
            self._wishes = wishes  # what a plugin wishes for when it is only asked is not granted

    def free(self, node: str) -> dict[str, int]:
        """What is left of a node, by resource."""
        table = self.mirror.table
        row = table.row_of[node]
        left = table.allocatable[row] - table.requested[row]
        return {name: int(left[i]) for i, name in enumerate(table.resources)}

    # ── saying things ────────────────────────────────────────────────────────────────────────────────────────

    def publish(
        self,
        info: PodInfo,
        profile: Profile,
        reason: str,
        note: str,
        *,
        warning: bool = False,
        action: str = "Scheduling",
        related: str = "",
    ) -> None:
        """An Event about a pod, for people."""
        self.outbox.emit(
            Publish,
            regarding=info.key,
            uid=info.uid,
            type="Warning" if warning else "Normal",
            reason=reason,
            action=action,
            note=note,
            reporter=profile.name,
            related=related,
        )

    def remind(self, delay: Duration, reminder: Reminder) -> int:
        """Set a timer; returns its number."""
        return self.timers.add(Instant(self.now + delay), reminder)
