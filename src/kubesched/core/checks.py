"""The invariants, as code: what must hold after every event, whatever happened.

Each check is a function that yields a sentence for every violation it finds.  Quick ones run after every event;
deep ones, which recompute what is otherwise kept up to date step by step, run always while the cluster is small, and
the more rarely the larger it is: looking at everything must cost an event next to nothing.  A violation is our bug,
never the user's: it stops the core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from kubesched.cluster.table import NodeTable
from kubesched.framework.errors import BrokenInvariant
from kubesched.framework.records import IN_FLIGHT, QUEUED, State

if TYPE_CHECKING:
    from kubesched.core.core import Core

Check: TypeAlias = "Callable[[Core], Iterator[str]]"

EVENTS_AN_OBJECT = 16  # between two deep checks, at least
SLOW_ANSWERS = 1_000
SMALL = 64  # objects: up to here, deep checks are as quick as any


def check(core: Core) -> None:
    """Run the checks that are due.  Raises BrokenInvariant."""
    for name, look in QUICK.items():
        _run(core, name, look)
    if core.position % deep_every(core) == 0:
        for name, look in DEEP.items():
            _run(core, name, look)


def deep_every(core: Core) -> int:
    """How many events there are from one deep check to the next: a power of two, so that it seldom changes."""
    objects = len(core.mirror.pods) + len(core.mirror.table.row_of)
    return 1 if objects <= SMALL else 1 << (EVENTS_AN_OBJECT * objects).bit_length()


def check_deeply(core: Core) -> None:
    """Run every check now.  Raises BrokenInvariant."""
    for name, look in (QUICK | DEEP).items():
        _run(core, name, look)


def _run(core: Core, name: str, look: Check) -> None:
    for problem in look(core):
        raise BrokenInvariant(f"{name}: {problem} (after event {core.position})", tuple(core.life.recent)[-20:])


# ── conservation: no pod is lost, none is counted twice ──────────────────────────────────────────────────────


def one_place(core: Core) -> Iterator[str]:
    """Q1.  A pod is in exactly one state, and is found exactly where that state says."""
    tried = core.suspended_uid
    for uid, state in core.life.each():
        queued, flying = uid in core.queue, uid in core.flights
        if queued and state not in QUEUED:
            yield f"pod {uid} is {state.value} and in the queue"
        if not queued and state in QUEUED:
            yield f"pod {uid} is {state.value} and not in the queue"
        if flying and state not in IN_FLIGHT:
            yield f"pod {uid} is {state.value} and in flight"
        if not flying and state in IN_FLIGHT and uid != tried:
            yield f"pod {uid} is {state.value} and nobody carries it"


def every_attempt_ends(core: Core) -> Iterator[str]:
    """Q2.  Pods popped are returned, bound, dropped or in flight; there is no fifth way."""
    tally = core.life.tally
    in_flight = sum(1 for _, state in core.life.each() if state in IN_FLIGHT)
    if tally["popped"] != tally["landed"] + in_flight:
        yield f"{tally['popped']} pods were popped, {tally['landed']} came out again and {in_flight} are in flight"


def none_is_lost(core: Core) -> Iterator[str]:
    """Q3.  Every pod that waits to be scheduled by us has a state, and every state has its pod."""
    waiting = {
        pod.uid
        for pod in core.mirror.pods.values()
        if not pod.spec.node_name and pod.spec.scheduler_name in core.profiles
    }
    known = {uid for uid, _ in core.life.each()}
    for uid in sorted(waiting - known):
        yield f"pod {uid} waits to be scheduled and nobody knows it"
    seen = {pod.uid for pod in core.mirror.pods.values()} | {pod.uid for pod in core.mirror.invalid.values()}
    for uid in sorted(known - seen):
        yield f"pod {uid} has a state and does not exist"


def log_is_empty_when_idle(core: Core) -> Iterator[str]:
    """Q4.  Events are kept for pods in flight, and for nobody else."""
    if core.queue.events_kept and not any(state in IN_FLIGHT for _, state in core.life.each()):
        yield f"{core.queue.events_kept} events are kept and no pod is in flight"


def gauges_are_true(core: Core) -> Iterator[str]:
    """Q5.  What is counted equals what is there."""
    states = core.life.counts()
    expected = {
        "active": states.get(State.ACTIVE, 0),
        "backoff": states.get(State.BACKOFF, 0),
        "unschedulable": states.get(State.PARKED, 0),
        "gated": states.get(State.GATED, 0),
    }
    counted = dict(core.queue.counts())
    if counted != expected:
        yield f"the queue counts {counted} and the states say {expected}"


def nobody_sleeps_without_alarm(core: Core) -> Iterator[str]:
    """Q6.  Something is registered that will wake every pod that sleeps."""
    for uid, state in core.life.each():
        if state in QUEUED and core.queue.alarm(uid) is None:
            yield f"pod {uid} is {state.value} and nothing will wake it"


# ── safety ───────────────────────────────────────────────────────────────────────────────────────────────────


def assumed_are_in_flight_or_bound(core: Core) -> Iterator[str]:
    """S7, in part.  Room is held only for pods on their way, or bound and not yet echoed."""
    for tracked in core.mirror.assumed():
        state = core.life.state(tracked.info.uid)
        if state not in (*IN_FLIGHT, State.BOUND):
            yield f"pod {tracked.info.key} holds room on {tracked.node} and is {state.value if state else 'unknown'}"


def flights_hold_room(core: Core) -> Iterator[str]:
    """S2, in part.  A pod in flight holds room exactly on the node it flies to."""
    for flight in core.flights.values():
        tracked = core.mirror.placed.get(flight.info.uid)
        if tracked is None or tracked.node != flight.node:
            room = tracked.node if tracked else "none"
            yield f"pod {flight.info.key} flies to {flight.node} and holds room on {room}"


def promises_are_to_waiting_pods(core: Core) -> Iterator[str]:
    """S11.  Room is promised to pods that wait, never to bound or departed ones."""
    for node, infos in core.queue.nominated().items():
        for info in infos:
            if core.life.state(info.uid) not in (*QUEUED, State.TRYING):
                yield f"pod {info.key} was promised room on {node} and does not wait"


def rows_are_the_sum_of_their_pods(core: Core) -> Iterator[str]:
    """S7.  What is kept up to date step by step equals what is counted afresh."""
    kept, fresh = core.mirror.table, recounted(core.mirror.table)
    for name, row in kept.row_of.items():
        twin = fresh.row_of[name]
        for resource in kept.resources:
            have = int(kept.requested[row, kept.resources.find(resource)])
            want = int(fresh.requested[twin, fresh.resource_column(resource)])
            if have != want:
                yield f"node {name} is said to have {have} {resource} requested, and its pods request {want}"
        if not np.array_equal(kept.nonzero_requested[row], fresh.nonzero_requested[twin]):
            yield f"node {name}: the amounts for scoring do not add up"
        if kept.ports[row] != fresh.ports[twin]:
            yield f"node {name}: the host ports in use do not add up"
    where = {uid: kept.names[row] for uid, row in kept.place_of.items()}
    told = {uid: tracked.node for uid, tracked in core.mirror.placed.items() if tracked.node in kept.row_of}
    if where != told:
        yield "the table and the mirror disagree on who is where"


def recounted(table: NodeTable) -> NodeTable:
    """The same nodes and pods, counted from nothing."""
    fresh = NodeTable()
    for node in table.nodes:
        if node is not None:
            fresh.add_node(node)
    for row, pods in enumerate(table.pods):
        for pod in pods:
            fresh.place(pod, table.names[row])
    return fresh


def timers_have_somebody(core: Core) -> Iterator[str]:
    """S16, in part.  What is remembered is bounded by what is there."""
    bound = 8 * (len(core.flights) + len(core.mirror.pods) + 8)
    if len(core.timers) > bound:
        yield f"{len(core.timers)} timers for {len(core.mirror.pods)} pods"
    if len(core.outbox) > 4 * bound + SLOW_ANSWERS:  # of pods that are gone, by a world that takes its time
        yield f"{len(core.outbox)} effects are unanswered, for {len(core.mirror.pods)} pods"


QUICK: dict[str, Check] = {
    "flights hold room": flights_hold_room,
    "timers have somebody": timers_have_somebody,
}

DEEP: dict[str, Check] = {
    "one place": one_place,
    "every attempt ends": every_attempt_ends,
    "none is lost": none_is_lost,
    "log is empty when idle": log_is_empty_when_idle,
    "gauges are true": gauges_are_true,
    "nobody sleeps without alarm": nobody_sleeps_without_alarm,
    "assumed are in flight or bound": assumed_are_in_flight_or_bound,
    "promises are to waiting pods": promises_are_to_waiting_pods,
    "rows are the sum of their pods": rows_are_the_sum_of_their_pods,
}
