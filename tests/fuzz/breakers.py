"""One broken scheduler for every law of the judge, so that each law is known to notice.

Where a mutant of `mutants.py` breaks the law, it is used; the others are bugs nobody has had.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs
from tests.fuzz.mutants import MUTANTS

from kubesched.api.time import Instant, seconds
from kubesched.core import watching
from kubesched.core.core import Core
from kubesched.core.failing import Failing
from kubesched.core.flight import Flight
from kubesched.core.messages import Bind, PatchPod
from kubesched.core.outbox import Outbox
from kubesched.core.queue.hints import HintMap
from kubesched.core.queue.priority import PriorityQueue
from kubesched.plugins.priority_sort import PrioritySort
from kubesched.wire.elector import Elector
from kubesched.wire.reflector import Reflector

Patch = pytest.MonkeyPatch


def _nothing(*given: Any, **named: Any) -> None:
    """What is not done."""


def sends_other_binds(**fields: Any) -> Callable[[Patch], None]:
    """Binds are not what was decided."""

    def bring(patch: Patch) -> None:
        handle = Core.handle

        def changed(self: Core, event: Any, now: Instant) -> Any:
            effects = handle(self, event, now)
            return [structs.replace(one, **fields) if isinstance(one, Bind) else one for one in effects]

        patch.setattr(Core, "handle", changed)

    return bring


def binds_twice(patch: Patch) -> None:
    handle = Core.handle

    def doubled(self: Core, event: Any, now: Instant) -> Any:
        effects = handle(self, event, now)
        return [*effects, *(structs.replace(one, id=-one.id) for one in effects if isinstance(one, Bind))]

    patch.setattr(Core, "handle", doubled)


def keeps_reservations(patch: Patch) -> None:
    patch.setattr(Flight, "_unreserve", _nothing)


def lowest_first(patch: Patch) -> None:
    patch.setattr(PrioritySort, "key", lambda self, queued: (queued.info.priority, queued.info.uid))
    patch.setattr(PriorityQueue, "attach", _in_any_order(PriorityQueue.attach))


def _in_any_order(attach: Any) -> Any:
    def attached(self: PriorityQueue, *given: Any) -> None:
        attach(self, *given)
        self._active = type(self._active)(lambda queued: (queued.info.priority, queued.seq))

    return attached


def promises_to_the_bound(patch: Patch) -> None:
    assigned = watching._pod_assigned

    def promised(core: Core, pod: Any, info: Any) -> None:
        assigned(core, pod, info)
        fields = {"pod": pod.key, "uid": pod.uid, "condition": None, "nominated_node_name": pod.spec.node_name}
        core.outbox.emit(PatchPod, **fields)

    patch.setattr(watching, "_pod_assigned", promised)


def goes_back_in_time(patch: Patch) -> None:
    gather = Reflector._gather

    def from_the_start(self: Reflector, now: Instant) -> None:
        gather(self, now)
        self.reached = 0

    patch.setattr(Reflector, "_gather", from_the_start)


def remembers_answered_effects(patch: Patch) -> None:
    patch.setattr(Outbox, "settle", lambda self, number: self._heirs.get(number))


def says_control_characters(patch: Patch) -> None:
    publish = Core.publish

    def coloured(self: Core, info: Any, profile: Any, reason: str, note: str, **more: Any) -> None:
        publish(self, info, profile, f"\x1b[31m{reason}", note, **more)

    patch.setattr(Core, "publish", coloured)


def registers_no_alarm(patch: Patch) -> None:
    patch.setattr(HintMap, "alarm", lambda self, pod: None)


def wakes_by_the_flush_alone(patch: Patch) -> None:
    attach = PriorityQueue.attach

    def impatient(self: PriorityQueue, *given: Any) -> None:
        self._parked_max = seconds(10)
        attach(self, *given)

    patch.setattr(PriorityQueue, "attach", impatient)
    patch.setattr(PriorityQueue, "notify", _nothing)


def says_nothing(patch: Patch) -> None:
    patch.setattr(Failing, "say", _nothing)


def waits_for_the_dead(patch: Patch) -> None:
    """Whoever waits believes longer than it must that somebody leads."""
    expires = Elector._expires
    assert expires.fget is not None
    patch.setattr(Elector, "_expires", property(lambda self: Instant(expires.fget(self) + seconds(10))))


def keeps_the_lease(patch: Patch) -> None:
    def ends(self: Elector, now: Instant) -> None:
        self._forget_requests()
        self.standing = "released"

    patch.setattr(Elector, "stop", ends)


BREAKERS: dict[str, Callable[[Patch], None]] = {
    "S1a": MUTANTS["BM-41"].bring_back,
    "S1b": MUTANTS["BM-03"].bring_back,
    "S2": binds_twice,
    "S3": sends_other_binds(uid=""),
    "S4": sends_other_binds(node="nowhere"),
    "S5": keeps_reservations,
    "S7": MUTANTS["BM-08"].bring_back,
    "S8": MUTANTS["BM-27"].bring_back,
    "S9": lowest_first,
    "S10": MUTANTS["BM-41"].bring_back,
    "S11": promises_to_the_bound,
    "S12": MUTANTS["BM-42"].bring_back,
    "S15": goes_back_in_time,
    "S16": remembers_answered_effects,
    "S17": MUTANTS["BM-48"].bring_back,
    "S18": says_control_characters,
    "Q": MUTANTS["BM-13"].bring_back,
    "Q6": registers_no_alarm,
    "L1": MUTANTS["BM-19"].bring_back,
    "L1'": wakes_by_the_flush_alone,
    "L2": says_nothing,
    "L3": MUTANTS["BM-28"].bring_back,
    "L6": waits_for_the_dead,
    "L7": keeps_the_lease,
}
"""Law → what breaks it."""
