"""A world on virtual time: effects take a moment, news take a moment, and nothing else passes the time.

When there is nothing to do the clock jumps to the next thing on the agenda.  Every draw of luck comes from the
seed, so the same core in the same world always plays the same run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Any

import msgspec
from msgspec import Struct

from kubesched.api.objects import KINDS, Invalid, Object, Pod, read_or_invalid
from kubesched.api.time import Duration, Instant, milliseconds, parse_rfc3339
from kubesched.apiserver.status import ApiError
from kubesched.apiserver.store import Watch, WatchEvent
from kubesched.core.messages import (
    AnyEffect,
    Bind,
    Call,
    Completed,
    Event,
    Evict,
    Observed,
    PatchPod,
    Publish,
    ReadPod,
    Synced,
)
from kubesched.framework.steps import Answer, Create, Delete, Failure, Patch
from kubesched.sim.agenda import Action, Agenda
from kubesched.sim.cluster import WATCHED, Cluster
from kubesched.sim.faults import Fault, Faults

START: Instant = parse_rfc3339("2026-01-01T00:00:00Z")


class Latency(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long things take: a request to the API server, and its news to those who watch."""

    write: Duration = milliseconds(2)
    watch: Duration = milliseconds(1)
    jitter: Duration = Duration(0)  # up to this much more, drawn for each


class SimWorld:
    """A cluster in this process, seen by one scheduler."""

    def __init__(
        self, *, seed: int = 0, start: Instant = START, latency: Latency | None = None, kinds: Iterable[str] = WATCHED
    ) -> None:
        self.start = start
        self._now = start
        self.latency = latency or Latency()
        self.luck = Random(f"{seed}/world")
        self.agenda = Agenda()
        self.cluster = Cluster(lambda: self._now, Random(f"{seed}/store"))
        self.faults = Faults()
        self.horizon: Instant | None = None  # nothing happens after it
        self.enough: Callable[[], bool] | None = None  # when true, the run is over
        self.published: list[tuple[Instant, Publish]] = []
        self._inbox: deque[Event] = deque()
        self._watches: dict[str, Watch] = {}
        self._performers: dict[type[AnyEffect], Callable[[Any], Answer]] = {
            Bind: self._bind,
            PatchPod: self._patch_pod,
            ReadPod: self._read_pod,
            Evict: self._evict,
            Publish: self._publish,
            Call: self._call,
        }
        self._held: dict[str, Instant] = {}  # kinds whose news are held back, and until when
        self._begun = False
        for kind in sorted(kinds, key=lambda kind: (kind == "Pod", kind)):  # pods last: they need the others
            self._watches[kind] = self.cluster.watch(kind, partial(self._expect, kind))
            self._watches[kind].take()

    # ── the World protocol ───────────────────────────────────────────────────────────────────────────────────

    @property
    def now(self) -> Instant:
        return self._now

    def perform(self, effects: Iterable[AnyEffect]) -> None:
        for effect in effects:
            fault = self.faults.meet(type(effect).__name__, getattr(effect, "pod", ""))
            if fault is None:
                self.later(self._write_takes(), partial(self._carry_out, effect))
            else:
                self._go_wrong(effect, fault)

    def take(self) -> Event | None:
        if not self._begun:
            self._begin()
        while not self._inbox:
            action = self.agenda.pop(self._now)
            if action is None:
                return None
            action()
        return self._inbox.popleft()

    def sleep(self, until: Instant | None) -> bool:
        """Jump to whatever comes next: the only place time moves."""
        if self.enough is not None and self.enough():
            return False
        due = [moment for moment in (until, self.agenda.next) if moment is not None]
        moment = min(due, default=None)
        if self.horizon is not None and (moment is None or moment > self.horizon):
            self._now = max(self._now, self.horizon)
            return False
        if moment is None:
            return False
        self._now = max(self._now, moment)
        return True

    # ── what the scheduler is told ───────────────────────────────────────────────────────────────────────────

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds whose objects the scheduler is told of."""
        return tuple(self._watches)

    def tell(self, event: Event) -> None:
        """Tell the scheduler something: an operator's word, say."""
        self._inbox.append(event)

    def hold_news(self, kind: str, until: Instant) -> None:
        """Nobody hears of this kind before that moment."""
        self._held[kind] = until

    # ── planning ─────────────────────────────────────────────────────────────────────────────────────────────

    def later(self, delay: Duration, action: Action) -> None:
        self.agenda.at(Instant(self._now + delay), action)

    def soon(self, action: Action) -> None:
        """At this moment, but after whatever is under way."""
        self.later(Duration(0), action)

    def _jitter(self) -> int:
        return self.luck.randrange(self.latency.jitter + 1) if self.latency.jitter else 0

    def _write_takes(self) -> Duration:
        return Duration(self.latency.write + self._jitter())

    # ── news ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        """What is there before the run begins is the first view, complete and at once."""
        self._begun = True
        for kind in self._watches:
            self._deliver(kind)
        self._inbox.append(Synced(self.kinds))

    def _expect(self, kind: str) -> None:
        """Something happened to this kind; its watchers hear of it in a moment."""
        if self._begun:
            self.later(Duration(self.latency.watch + self._jitter()), partial(self._deliver, kind))

    def _deliver(self, kind: str) -> None:
        held = self._held.get(kind)
        if held is not None and held > self._now:
            self.agenda.at(held, partial(self._deliver, kind))
            return
        for event in self._watches[kind].take():
            self._inbox.append(_observed(kind, event))

    # ── effects ──────────────────────────────────────────────────────────────────────────────────────────────

    def _carry_out(self, effect: AnyEffect) -> None:
        answer = self._attempt(effect)
        self._inbox.append(Completed(effect.id, answer))

    def _attempt(self, effect: AnyEffect) -> Answer:
        try:
            return self._performers[type(effect)](effect)
        except ApiError as error:
            return Answer(failure=Failure(error.reason, error.message, error.code))

    def _go_wrong(self, effect: AnyEffect, fault: Fault) -> None:
        unknown = Completed(effect.id, Answer(failure=Failure("Timeout", "no answer in time", applied="unknown")))
        match fault.outcome:
            case "lost":
                self.later(fault.after, partial(self._inbox.append, unknown))
            case "timeout-after-apply":
                self.later(self._write_takes(), partial(self._attempt, effect))
                self.later(fault.after, partial(self._inbox.append, unknown))
            case "late":
                self.later(self._write_takes(), partial(self._inbox.append, unknown))
                self.later(fault.after, partial(self._attempt, effect))
            case "refused":
                refusal = Answer(failure=Failure(fault.reason, fault.message, fault.code))
                self.later(self._write_takes(), partial(self._inbox.append, Completed(effect.id, refusal)))

    def _bind(self, effect: Bind) -> Answer:
        namespace, name = _split(effect.pod)
        return _pod_answer(self.cluster.bind(namespace, name, effect.node, effect.uid, effect.resource_version))

    def _patch_pod(self, effect: PatchPod) -> Answer:
        namespace, name = _split(effect.pod)
        condition = None if effect.condition is None else msgspec.to_builtins(effect.condition)
        nominated, version = effect.nominated_node_name, effect.resource_version
        return _pod_answer(self.cluster.say(namespace, name, effect.uid, condition, nominated, version))

    def _read_pod(self, effect: ReadPod) -> Answer:
        return _pod_answer(self.cluster.get("Pod", *_split(effect.pod)))

    def _evict(self, effect: Evict) -> Answer:
        namespace, name = _split(effect.pod)
        grace = None if effect.grace is None else effect.grace // 1_000_000_000
        self.cluster.evict(namespace, name, effect.uid, effect.message, grace)
        return Answer()

    def _publish(self, effect: Publish) -> Answer:
        self.published.append((self._now, effect))
        return Answer()

    def _call(self, effect: Call) -> Answer:
        match effect.step:
            case Patch(kind, key, body, version, _):
                return _answer(kind, self.cluster.patch(kind, *_split(key), body, version))
            case Create(kind, _, body):
                return _answer(kind, self.cluster.create({**body, "kind": kind}))
            case Delete(kind, key, uid):
                self.cluster.delete(kind, *_split(key), uid=uid)
                return Answer()
            case _:
                return Answer(failure=Failure("Unreachable", "there is no network in a simulation", applied="no"))


def _split(key: str) -> tuple[str, str]:
    namespace, _, name = key.rpartition("/")
    return namespace, name


def _observed(kind: str, event: WatchEvent) -> Observed:
    return Observed(_view(kind, event.obj), gone=event.type == "DELETED")


def _view(kind: str, obj: dict[str, Any]) -> Object:
    view: Any = read_or_invalid(obj, KINDS[kind])
    checked: Object = view
    return checked


def _answer(kind: str, obj: dict[str, Any]) -> Answer:
    view = _view(kind, obj)
    return Answer(obj=None if isinstance(view, Invalid) else view)


def _pod_answer(obj: dict[str, Any]) -> Answer:
    view = read_or_invalid(obj, Pod)
    return Answer(obj=None if isinstance(view, Invalid) else view)
