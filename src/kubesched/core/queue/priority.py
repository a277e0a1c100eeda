"""Kubernetes' scheduling queue: who is tried next, who must wait, and what wakes whom.

A pod that waits to be scheduled is in one of four places.  `active`: ready, the first by queue_sort is next.
`backoff`: was turned down or broke a moment ago and an event has woken it since; a timer lets it go.  `parked`:
was turned down, and nothing has happened yet that could help.  Gated: parked too, but it was never tried; a
pre_enqueue plugin holds it back.  While it is tried it is in flight, and what happens meanwhile is written down.

Whatever wakes a pod runs its pre_enqueue plugins first.  If a wake-up was lost all the same, the flush finds the
pod after five minutes.

Rule: a pod is in exactly one place, and is known by its uid alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kubesched.api.objects import KubeObject, Pod
from kubesched.api.time import Duration, Instant, format_rfc3339, minutes, seconds
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.lifecycle import TERMINAL, Lifecycle
from kubesched.core.queue.backoff import Backoff
from kubesched.core.queue.gates import Gates
from kubesched.core.queue.heap import Heap, Key
from kubesched.core.queue.hints import HintMap, Look, Strategy
from kubesched.core.queue.inflight import InFlight
from kubesched.core.queue.nominator import Nominator
from kubesched.core.queue.order import order_of
from kubesched.core.queue.parked import Parked
from kubesched.framework.errors import InternalError
from kubesched.framework.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, ClusterEvent
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod
from kubesched.framework.records import IN_FLIGHT, State

# What brings a pod into a place, as metrics name it, where that is not an event of the cluster.
POD_ADDED, POD_UPDATED = "UnschedulablePodAdd", "UnschedulablePodUpdate"
ATTEMPT_FAILED, BACKOFF_COMPLETE, POP_FROM_BACKOFF = "ScheduleAttemptFailure", "BackoffComplete", "PopFromBackoffQ"

BACKOFF_INITIAL, BACKOFF_MAX, PARKED_MAX = seconds(1), seconds(10), minutes(5)

_EVENT, _FLUSH, _ACTIVATE, _ARRIVAL, _RETURN, _TIMER = "event", "flush", "activate", "arrival", "return", "timer"
_CAUSES = {
    (_ARRIVAL, State.ACTIVE): "admitted",
    (_EVENT, State.ACTIVE): "hinted_ready",
    (_EVENT, State.BACKOFF): "hinted",
    (_FLUSH, State.ACTIVE): "flushed_ready",
    (_FLUSH, State.BACKOFF): "flushed",
    (_ACTIVATE, State.ACTIVE): "activated",
    (_TIMER, State.ACTIVE): "expired",
    (_RETURN, State.ACTIVE): "requeued",
    (_RETURN, State.BACKOFF): "unfit_woken",
    (_RETURN, State.PARKED): "unfit",
}
"""(why a pod moves, where to) → the cause in its record."""
_UNGATED = {State.ACTIVE: "ungated", State.BACKOFF: "ungated_backoff"}


class PriorityQueue:
    """The queue of kube-scheduler.

    Args:
        backoff_initial: how long a pod is left alone after its first failure; it doubles with each further one.
        backoff_max: the longest it is left alone; 0 switches backing off off.
        parked_max: how long a pod may sleep before it is tried without a reason.
        pop_from_backoff: with nothing else to do, take pods that back off before their time.
    """

    def __init__(
        self,
        *,
        backoff_initial: Duration = BACKOFF_INITIAL,
        backoff_max: Duration = BACKOFF_MAX,
        parked_max: Duration = PARKED_MAX,
        pop_from_backoff: bool = True,
    ) -> None:
        self._pop_from_backoff = pop_from_backoff
        self._parked_max = parked_max
        self._rule = Backoff(backoff_initial, backoff_max, by_the_second=pop_from_backoff)
        self._around: Callable[[Look], Look] = lambda look: look
        self._nominator = Nominator()
        self._seq = 0
        self.in_flight = InFlight()
        self.incoming: dict[tuple[str, str], int] = {}
        """(active, backoff or unschedulable; event label) → how many pods came in: queue_incoming_pods_total."""
        self.problems: dict[tuple[str, str], str] = {}
        """(plugin, hook) → what went wrong there last, of the plugins that are asked by the queue."""
        self._make_places(self._rule.until, Instant(0))  # it may be asked what is in it before anything can be

    def attach(self, life: Lifecycle, profiles: Mapping[str, Profile], now: Instant) -> None:
        self._life = life
        self._hints = HintMap(profiles, self._complain)
        self._hints.look = self._around(self._hints.look)
        self._gates = Gates(profiles, self._complain)
        self._order = order_of(next(iter(profiles.values()), None), self._complain)
        self._make_places(self._order, now)
        if not self._rule.by_the_second:
            self._rule.start = now

    def _make_places(self, order: Callable[[QueuedPod], Key], now: Instant) -> None:
        until = self._rule.until
        self._active = Heap(order)
        self._backoff = Heap((lambda pod: (until(pod), order(pod))) if self._pop_from_backoff else until)
        self._errors = Heap(until)
        self._parked = Parked(self._parked_max, now)

    # ── questions ────────────────────────────────────────────────────────────────────────────────────────────

    def __contains__(self, uid: str) -> bool:
        return uid in self._active or uid in self._parked or uid in self._backoff or uid in self._errors

    def __len__(self) -> int:
        return len(self._active) + len(self._parked) + len(self._backoff) + len(self._errors)

    def __iter__(self) -> Iterator[QueuedPod]:
        """Every queued pod, place by place."""
        for place in (self._active, self._backoff, self._errors, self._parked):
            yield from place

    @property
    def ready(self) -> bool:
        return bool(self._active) or (self._pop_from_backoff and bool(self._backoff))

    @property
    def deadline(self) -> Instant | None:
        if not self._backoff and not self._errors and not self._parked:
            return None
        heads = [head for head in (self._backoff.peek(), self._errors.peek()) if head is not None]
        times = [self._rule.release(head) for head in heads]
        parked = self._parked.deadline
        return min(times if parked is None else [*times, parked], default=None)

    @property
    def events_kept(self) -> int:
        return len(self.in_flight.events)

    def find(self, uid: str) -> QueuedPod | None:
        """A queued pod and how its attempts have gone."""
        for place in (self._active, self._parked, self._backoff, self._errors):
            pod = place.get(uid)
            if pod is not None:
                return pod
        return None

    def counts(self) -> Mapping[str, int]:
        return {
            "active": len(self._active),
            "backoff": len(self._backoff) + len(self._errors),
            "unschedulable": len(self._parked) - self._parked.gated,
            "gated": self._parked.gated,
        }

    def rejected(self) -> Mapping[tuple[str, str], int]:
        """(plugin, profile) → how many queued pods it turned down at their last attempt: unschedulable_pods."""
        counts: dict[tuple[str, str], int] = {}
        for pod in self:
            for plugin in sorted(pod.rejectors):
                key = (plugin, pod.info.pod.spec.scheduler_name)
                counts[key] = counts.get(key, 0) + 1
        return counts

    @property
    def asked(self) -> Mapping[tuple[str, str, str], int]:
        """(plugin, event label, answer) → how often a queueing hint answered so."""
        return self._hints.asked

    def around_hints(self, wrap: Callable[[Look], Look]) -> None:
        """Before the first event: put something around every hint that is asked, as a stopwatch, which is not ours."""
        self._around = wrap

    def alarm(self, uid: str) -> str | None:
        if uid in self._active:
            return "active"
        pod = self._backoff.get(uid) or self._errors.get(uid)
        if pod is not None:
            return f"backoff until {format_rfc3339(self._rule.release(pod))}"
        pod = self._parked.get(uid)
        return self._hints.alarm(pod) if pod is not None else None

    # ── pods come, change and go ─────────────────────────────────────────────────────────────────────────────

    def add(self, info: PodInfo, now: Instant) -> None:
        known = self.find(info.uid)
        if known is not None or info.uid in self.in_flight:
            before = known.info if known is not None else self.in_flight.get(info.uid)
            assert before is not None
            self.update(before.pod, info, (), now)
        else:
            self._arrive(info, POD_ADDED, now)

    def update(self, old: Pod, info: PodInfo, events: Sequence[ClusterEvent], now: Instant) -> None:
        uid = info.uid
        if uid in self.in_flight:
            self.in_flight.replace(info)
            for event in events:
                self.in_flight.record(event, old, info.pod)
            return
        for heap in (self._active, self._backoff, self._errors):
            pod = heap.get(uid)
            if pod is not None:
                pod.info = info
                if events and pod.strikes:
                    pod.strikes, pod.backoff_until = 0, None  # it is another pod now, for all we know
                heap.push(pod)
                self._nominator.update(old, info)
                return
        pod = self._parked.get(uid)
        if pod is None:
            if self._life.state(uid) not in IN_FLIGHT:  # else it is being bound, and no news of it matters
                self._arrive(info, POD_UPDATED, now)
            return
        pod.info = info
        self._nominator.update(old, info)
        for event in events:
            strategy = self._hints.ask(pod, event, old, info.pod)
            if self._requeue(pod, strategy, _EVENT, event.label, now):
                return

    def delete(self, uid: str, now: Instant) -> None:
        self._nominator.discard(uid)
        self._take_out(uid)
        self.in_flight.end(uid)  # nobody will ask what happened meanwhile

    def _arrive(self, info: PodInfo, label: str, now: Instant) -> None:
        pod = QueuedPod(info, now, self._next_seq())
        self._to_active(pod, _ARRIVAL, label, now)

    # ── attempts ─────────────────────────────────────────────────────────────────────────────────────────────

    def pop(self, now: Instant) -> QueuedPod | None:
        pod = self._active.pop()
        note = ""
        if pod is None and self._pop_from_backoff:
            pod = self._backoff.pop()
            if pod is not None:
                note = POP_FROM_BACKOFF
                self._count("active", note)
        if pod is None:
            return None
        pod.attempts += 1
        # An attempt starts with a clean slate: a rejection of long ago must not make an error look like one.
        pod.rejectors = pod.pending = frozenset()
        self.in_flight.start(pod.info)
        self._life.move(pod.info, "popped", note)
        return pod

    def put_back(
        self, pod: QueuedPod, now: Instant, *, rejectors: Iterable[str], pending: Iterable[str] = (), note: str = ""
    ) -> None:
        """An attempt failed.  A pod that update() has seen changing in flight comes back as it is by now."""
        uid = pod.uid
        if uid in self:
            self.in_flight.end(uid)
            raise InternalError(f"pod {pod.info.key} came back and is queued", self._life.story(pod.info.key))
        pod.info = self.in_flight.get(uid) or pod.info
        pod.pending = frozenset(pending)
        pod.rejectors = frozenset(rejectors) | pod.pending
        if pod.rejectors:
            pod.unschedulable_count += 1
            pod.errors_in_a_row = 0
        else:
            pod.errors_in_a_row += 1
        pod.added = now
        pod.seq = self._next_seq()
        pod.backoff_until = pod.flushed = None
        # Not kept from kube-scheduler: what happens to a pod that is being bound is not written down, so nothing says
        # that trying again may help.  It waits its backoff out, or it would be popped, and fail, again and again.
        pod.late = uid not in self.in_flight
        strategy, woken_by = self._meanwhile(pod)
        self.in_flight.end(uid)
        self._requeue(pod, strategy, _RETURN, ATTEMPT_FAILED, now, "; ".join(filter(None, (note, woken_by))))

    def done(self, uid: str) -> None:
        self.in_flight.end(uid)

    def _meanwhile(self, pod: QueuedPod) -> tuple[Strategy, str]:
        """What the events since a pod left mean for it, and the one that decided."""
        if not pod.rejectors or pod.uid not in self.in_flight:
            return Strategy.BACKOFF, ""
        strategy, woken_by = Strategy.SKIP, ""
        for event, old, new in self.in_flight.since(pod.uid):
            said = self._hints.ask(pod, event, old, new)
            if said is Strategy.NOW:
                return said, event.label
            if said is Strategy.BACKOFF and strategy is Strategy.SKIP:
                strategy, woken_by = said, event.label
                if not pod.pending:
                    break
        return strategy, woken_by

    # ── what happens around them ─────────────────────────────────────────────────────────────────────────────

    def notify(
        self,
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
        now: Instant,
        only: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        listeners = self._hints.plugins(event)
        if not listeners and not event.wildcard:
            return  # nobody's no can be undone by it, of sleeping pods or of pods in flight
        if self._parked:
            sleepers = list(self._parked) if event.wildcard else self._parked.rejected_by(listeners)
            self._wake_all([pod for pod in sleepers if only is None or only(pod.info)], event, old, new, now)
        self.in_flight.record(event, old, new)

    def activate(self, uids: Iterable[str], now: Instant, *, patiently: bool = False) -> None:
        for uid in uids:
            if patiently and uid not in self.in_flight:
                self._after_backoff(uid, now)
                continue
            pod = self._backoff.get(uid) or self._errors.get(uid)
            if pod is not None:
                self._to_active(pod, _ACTIVATE, FORCE_ACTIVATE.label, now, ask=False)
            elif (pod := self._parked.get(uid)) is not None:
                self._to_active(pod, _ACTIVATE, FORCE_ACTIVATE.label, now)
            elif (info := self.in_flight.get(uid)) is not None:
                self.in_flight.record(FORCE_ACTIVATE, None, info.pod)

    def _after_backoff(self, uid: str, now: Instant) -> None:
        """Nothing says that trying this pod once more will help; and nothing else will wake it."""
        pod = self._parked.get(uid) or self._backoff.get(uid)
        if pod is not None:
            pod.late = True
            if uid in self._parked:
                self._requeue(pod, Strategy.BACKOFF, _EVENT, FORCE_ACTIVATE.label, now)
            else:
                self._take_out(uid)
                self._errors.push(pod)

    def tick(self, now: Instant) -> None:
        for heap in (self._backoff, self._errors):
            while (pod := heap.peek()) is not None and self._rule.release(pod) <= now:
                self._to_active(pod, _TIMER, BACKOFF_COMPLETE, now, ask=False)
        overdue = self._parked.overdue(now)
        for pod in overdue:
            pod.flushed = now
            self._parked.put(pod)
        if overdue:
            self._wake_all(overdue, UNSCHEDULABLE_TIMEOUT, None, None, now)
            self.in_flight.record(UNSCHEDULABLE_TIMEOUT, None, None)

    def _wake_all(
        self,
        sleepers: Sequence[QueuedPod],
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
        now: Instant,
    ) -> None:
        why = _FLUSH if event == UNSCHEDULABLE_TIMEOUT else _EVENT
        for pod in sleepers:
            if not pod.gate or self._hints.opens(pod.gate, event):
                self._requeue(pod, self._hints.ask(pod, event, old, new), why, event.label, now)

    # ── promises ─────────────────────────────────────────────────────────────────────────────────────────────

    def nominate(self, info: PodInfo, node: str | None) -> None:
        if self._life.state(info.uid) in (None, *TERMINAL):
            node = ""  # a promise to a pod that no longer waits would hold room for nobody
        self._nominator.nominate(info, node)

    def promised(self, uid: str) -> str:
        return self._nominator.node_of(uid)

    def nominated(self) -> Mapping[str, Sequence[PodInfo]]:
        return self._nominator.by_node

    # ── from place to place ──────────────────────────────────────────────────────────────────────────────────

    def _requeue(self, pod: QueuedPod, strategy: Strategy, why: str, label: str, now: Instant, note: str = "") -> bool:
        """Bring a pod where a strategy sends it.  Whether it will be tried again."""
        if strategy is Strategy.SKIP:
            if pod.uid not in self._parked:
                self._park(pod, label)
                self._move(pod, why, State.PARKED, note)
            return False
        if strategy is Strategy.BACKOFF and self._rule.holds(pod, now):
            return self._to_backoff(pod, why, label, note)
        return self._to_active(pod, why, label, now, note)

    def _to_active(
        self, pod: QueuedPod, why: str, label: str, now: Instant, note: str = "", *, ask: bool = True
    ) -> bool:
        if ask and self._held(pod, label):
            return False
        if pod.first_attempt is None:
            pod.first_attempt = now
        self._take_out(pod.uid)
        self._active.push(pod)
        self._count("active", label)
        self._move(pod, why, State.ACTIVE, note or label)
        if label in (POD_ADDED, POD_UPDATED):
            self._nominator.nominate(pod.info, None)
        return True

    def _to_backoff(self, pod: QueuedPod, why: str, label: str, note: str) -> bool:
        if self._held(pod, label):
            return False
        self._take_out(pod.uid)
        (self._backoff if pod.rejectors and not pod.late else self._errors).push(pod)
        self._count("backoff", label)
        self._move(pod, why, State.BACKOFF, note or label)
        return True

    def _held(self, pod: QueuedPod, label: str) -> bool:
        """Ask the gates; a pod that may not pass is parked."""
        reason = self._gates.hold(pod)
        if not reason:
            return False
        self._park(pod, label)
        if self._life.state(pod.uid) is not State.GATED:
            self._life.move(pod.info, "gated", reason)
        return True

    def _park(self, pod: QueuedPod, label: str) -> None:
        if pod.uid not in self._parked:
            self._count("unschedulable", label)
        self._parked.put(pod)

    def _move(self, pod: QueuedPod, why: str, to: State, note: str) -> None:
        cause = _CAUSES[why, to]
        if why in (_EVENT, _FLUSH) and self._life.state(pod.uid) is State.GATED:
            cause = _UNGATED[to]
        elif cause == "unfit_woken" and not pod.rejectors:
            cause = "broke"
        self._life.move(pod.info, cause, note)

    def _take_out(self, uid: str) -> None:
        for place in (self._active, self._parked, self._backoff, self._errors):
            if place.remove(uid) is not None:
                return

    def _next_seq(self) -> int:
        self._seq += 1
        return self._seq

    def _count(self, place: str, label: str) -> None:
        key = (place, label)
        self.incoming[key] = self.incoming.get(key, 0) + 1

    def _complain(self, plugin: str, hook: str, problem: str) -> None:
        self.problems[plugin, hook] = problem
