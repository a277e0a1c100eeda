"""Bugs that schedulers have had, brought back one at a time: the fuzzer must find each of them.

A mutant replaces one method of the scheduler with the same method and the bug in it.  Its name is a Kubernetes issue's
story in `docs/reliability.md`, where the table of all of them stands; `test_mutants.py` plays the recorded seed of
each, and `python -m tests.fuzz.hunt` looks for seeds anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs
from tests.fuzz import needing
from tests.fuzz.mutant import Patch, mutant, nothing

from kubesched.api.objects import Node, Pod
from kubesched.api.time import Instant, seconds
from kubesched.cluster.mirror import Delta, Mirror
from kubesched.core import flight as flights
from kubesched.core import runner, watching
from kubesched.core.core import Core
from kubesched.core.evicting import Evictions
from kubesched.core.failing import Failing
from kubesched.core.flight import Flight
from kubesched.core.flying import Flying
from kubesched.core.messages import Bind
from kubesched.core.queue.backoff import Backoff
from kubesched.core.queue.hints import HintMap, Strategy
from kubesched.core.queue.inflight import InFlight
from kubesched.core.queue.nominator import Nominator
from kubesched.core.queue.priority import PriorityQueue
from kubesched.framework.records import State
from kubesched.framework.status import error
from kubesched.plugins import preemption

# ── who owns the room? ───────────────────────────────────────────────────────────────────────────────────────


@mutant("BM-01", "a bind fails and the pod's room is not given back (#28883, #26043, #37232)")
def bm_01(patch: Patch) -> None:
    forget = Mirror.forget

    def kept(self: Mirror, uid: str) -> bool:
        tracked = self.placed.get(uid)
        return True if tracked is not None and tracked.assumed else forget(self, uid)

    patch.setattr(Mirror, "forget", kept)


@mutant("BM-02", "what is assumed expires while the bind is still slow (#106361, #38503)")
def bm_02(patch: Patch) -> None:
    begin = Core._begin

    def expiring(self: Core, now: Instant) -> None:
        begin(self, now)
        for uid, flight in self.flights.items():
            record = self.life.story(flight.info.key)[-1]
            if record.state is State.BINDING and record.at + seconds(3) < now:
                self.mirror.forget(uid)

    patch.setattr(Core, "_begin", expiring)


@mutant("BM-03", "nobody knows whether the bind was carried out, and its room is sold again (kube-scheduler 1.36.4)")
def bm_03(patch: Patch) -> None:
    def forgotten(self: Flight) -> Any:
        return error("timed out")
        yield

    patch.setattr(Flight, "_resolve", forgotten)


@mutant(
    "BM-04",
    "an extender's bind timed out and had succeeded: it is asked for ever (#96579)",
    needing.bound_by_extender,
)
def bm_04(patch: Patch) -> None:
    def forgotten(self: Flight) -> Any:
        return None
        yield

    patch.setattr(Flight, "_resolve", forgotten)


@mutant("BM-05", "what was not assumed cannot be forgotten, and nobody goes on (#101877)")
def bm_05(patch: Patch) -> None:
    forget = Mirror.forget

    def strict(self: Mirror, uid: str) -> bool:
        if uid in self.placed and not self.placed[uid].assumed:
            raise ValueError("pod wasn't assumed so cannot be forgotten")
        return forget(self, uid)

    patch.setattr(Mirror, "forget", strict)


@mutant("BM-06", "an update of an assumed pod queues it again (#52914, #120662)")
def bm_06(patch: Patch) -> None:
    waiting = watching._pod_waiting

    def queued(core: Core, old: Pod | None, pod: Pod, info: Any) -> None:
        if pod.uid in core.flights and old is not None and not pod.terminating:
            core.queue.add(info, core.now)
        else:
            waiting(core, old, pod, info)

    patch.setattr(watching, "_pod_waiting", queued)


@mutant("BM-07", "a bind is on its way and the next cycle sees its room free (volcano#1383)")
def bm_07(patch: Patch) -> None:
    grant = Flying._grant

    def generous(self: Flying, flight: Flight, want: Any, token: int) -> Any:
        answer = grant(self, flight, want, token)
        if isinstance(want, flights.FencedBind):
            self._core.mirror.forget(flight.info.uid)
        return answer

    patch.setattr(Flying, "_grant", generous)


@mutant("BM-08", "a pod whose bind failed stays in Binding (kube-batch#909)")
def bm_08(patch: Patch) -> None:
    end = Flying._end

    def stuck(self: Flying, flight: Flight, status: Any) -> None:
        if status.ok or self._core.life.state(flight.info.uid) is not State.BINDING:
            end(self, flight, status)

    patch.setattr(Flying, "_end", stuck)


@mutant("BM-09", "a pod that is refused each time is tried without a pause, before everybody else (KAI-Scheduler#2075)")
def bm_09(patch: Patch) -> None:
    holds = Backoff.holds
    patch.setattr(Backoff, "holds", lambda self, pod, now: not pod.errors_in_a_row and holds(self, pod, now))


@mutant(
    "BM-10",
    "a waiting pod is bound elsewhere by somebody, and nobody hears of the room (#134859)",
    needing.held_and_placed,
)
def bm_10(patch: Patch) -> None:
    def quiet(core: Core, flight: Flight, pod: Pod, state: State | None) -> None:
        if pod.spec.node_name == flight.node and state in (State.BINDING, State.AMBIGUOUS):
            core.flying.confirmed(flight)
            return
        core.flying.abort(flight)
        core.queue.done(pod.uid)
        core.life.move(flight.info, "bound_elsewhere", pod.spec.node_name)

    patch.setattr(watching, "_flight_assigned", quiet)


# ── who is who? ──────────────────────────────────────────────────────────────────────────────────────────────


@mutant("BM-11", "an end and a namesake arrive as one update, and the process exits (#141255, #78085)")
def bm_11(patch: Patch) -> None:
    observe = Mirror.observe

    def strict(self: Mirror, obj: Any, gone: bool = False) -> Any:
        seen = self.pods.get(obj.key) if isinstance(obj, Pod) else None
        if seen is not None and not gone and seen.spec.node_name and seen.spec.node_name != obj.spec.node_name:
            raise SystemError("pod updated on a different node than previously added to")
        return observe(self, obj, gone)

    patch.setattr(Mirror, "observe", strict)


@mutant("BM-12", "a pod is known by its name: its namesake is bound in its place (#60966, #56682)")
def bm_12(patch: Patch) -> None:
    _change_bind(patch, lambda core, effect: {"uid": core.mirror.pods[effect.pod].uid, "resource_version": ""})
    gone = watching._pod_gone

    def by_name(core: Core, pod: Pod) -> None:
        if core.state(pod.key) is not State.BINDING:
            gone(core, pod)

    patch.setattr(watching, "_pod_gone", by_name)


def _change_bind(patch: Patch, change: Callable[[Core, Bind], dict[str, Any]]) -> None:
    handle = Core.handle

    def changed(self: Core, event: Any, now: Instant) -> Any:
        effects = handle(self, event, now)
        return [_replaced(one, change(self, one)) if isinstance(one, Bind) else one for one in effects]

    patch.setattr(Core, "handle", changed)


def _replaced(effect: Bind, fields: dict[str, Any]) -> Bind:
    return structs.replace(effect, **fields)


@mutant("BM-13", "a recreated pod leaves what was written down for it behind (#138316)")
def bm_13(patch: Patch) -> None:
    def leaky(self: PriorityQueue, uid: str, now: Instant) -> None:
        self._nominator.discard(uid)
        self._take_out(uid)

    patch.setattr(PriorityQueue, "delete", leaky)
    done = PriorityQueue.done

    def choosy(self: PriorityQueue, uid: str) -> None:
        if self._life.state(uid) is not State.TRYING and self._life.state(uid) is not State.WAITING:
            done(self, uid)

    patch.setattr(PriorityQueue, "done", choosy)


@mutant(
    "BM-14",
    "a node comes back under its name, and the snapshot is still the old one (#63262)",
    needing.nodes_go_unheard,
)
def bm_14(patch: Patch) -> None:
    observe = Mirror.observe

    def stale(self: Mirror, obj: Any, gone: bool = False) -> Any:
        if isinstance(obj, Node) and not gone:
            seen = self._seen("Node", obj.key)
            if seen is not None and seen.uid != obj.uid:
                return []
        return observe(self, obj, gone)

    patch.setattr(Mirror, "observe", stale)


@mutant("BM-15", "a node went before its pods did, and stays as a ghost (#95124, #86920, #31968)")
def bm_15(patch: Patch) -> None:
    remove = Mirror._remove

    def haunted(self: Mirror, old: Any) -> Any:
        if isinstance(old, Node) and self.table.pods[self.table.row_of[old.name]]:
            return Delta(old, None)
        return remove(self, old)

    patch.setattr(Mirror, "_remove", haunted)


# ── who wakes whom? ──────────────────────────────────────────────────────────────────────────────────────────


@mutant("BM-18", "what happens while a pod is being tried is not remembered for it (#72122)")
def bm_18(patch: Patch) -> None:
    patch.setattr(InFlight, "record", nothing)


@mutant("BM-19", "a pod goes back to the queue, and nobody is told that there is work (#119784)")
def bm_19(patch: Patch) -> None:
    patch.setattr(PriorityQueue, "deadline", None)


@mutant("BM-20", "rejections of long ago make an error look like a rejection (#120334, #119105)", needing.binds_fail)
def bm_20(patch: Patch) -> None:
    pop, put_back = PriorityQueue.pop, PriorityQueue.put_back
    old: dict[str, frozenset[str]] = {}

    def popped(self: PriorityQueue, now: Instant) -> Any:
        before = {pod.uid: pod.rejectors for pod in self}
        pod = pop(self, now)
        if pod is not None:
            old[pod.uid] = before[pod.uid]
        return pod

    def mixed(self: PriorityQueue, pod: Any, now: Instant, *, rejectors: Any, **more: Any) -> None:
        both = sorted(frozenset(rejectors) | old.get(pod.uid, frozenset()))
        put_back(self, pod, now, rejectors=both, **more)

    meanwhile = PriorityQueue._meanwhile

    def as_if_rejected(self: PriorityQueue, pod: Any) -> Any:
        stale = pod.rejectors and pod.uid not in self.in_flight
        return (Strategy.SKIP, "") if stale else meanwhile(self, pod)

    patch.setattr(PriorityQueue, "pop", popped)
    patch.setattr(PriorityQueue, "put_back", mixed)
    patch.setattr(PriorityQueue, "_meanwhile", as_if_rejected)


@mutant("BM-21", "a pod that is skipped is never said to be done (#126962, #120622, #122725)", needing.lingering)
def bm_21(patch: Patch) -> None:
    attempt = Core._try

    def skipping(self: Core, queued: Any) -> None:
        if queued.info.pod.terminating:
            self.life.move(queued.info, "gone", "it is being deleted")
        else:
            attempt(self, queued)

    patch.setattr(Core, "_try", skipping)


@mutant("BM-22", "whoever handles a failure suppresses what must be done about every failure (koordinator#3190)")
def bm_22(patch: Patch) -> None:
    back = Failing._return

    def suppressed(self: Failing, queued: Any, decision: Any, rejectors: Any, pending: Any) -> None:
        if rejectors:
            back(self, queued, decision, rejectors, pending)

    patch.setattr(Failing, "_return", suppressed)


@mutant("BM-23", "a node arrives tainted and is passed over; when the taint goes nobody is woken (#122284, #109437)")
def bm_23(patch: Patch) -> None:
    def checking_first(core: Core, delta: Any) -> None:
        old, new, _ = delta
        if isinstance(new, Node) and (new.spec.taints or new.spec.unschedulable):
            return
        if isinstance(old, Node) and (old.spec.taints or old.spec.unschedulable):
            return
        node(core, delta)

    node = watching._node
    patch.setattr(watching, "_node", checking_first)


@mutant(
    "BM-24",
    "what becomes of pods that wait themselves is no news to those who wait (#127290)",
    needing.promised_pods_go,
)
def bm_24(patch: Patch) -> None:
    patch.setattr(watching, "tell_of_released_promise", nothing)


@mutant(
    "BM-25",
    "a victim at permit gives way in memory, and its preemptor does not hear of it (#140082)",
    needing.preempting_held,
)
def bm_25(patch: Patch) -> None:
    evict = Evictions._evict

    def unheard(self: Evictions, preemption: Any, profile: Any, victim: Any) -> None:
        evict(self, preemption, profile, victim)
        if victim.uid not in preemption.remaining:
            preemption.remaining[victim.uid] = None

    patch.setattr(Evictions, "_evict", unheard)
    _deaf_to_assumed_room(patch)


def _deaf_to_assumed_room(patch: Patch) -> None:
    patch.setattr(Flying, "_tell_of_room", nothing)


@mutant(
    "BM-26",
    "the victim had gone already, and the preemptor waits for its end (#141694, #142294)",
    needing.preempting,
)
def bm_26(patch: Patch) -> None:
    settle = Evictions._settle

    def hopeful(self: Evictions, preemption: Any) -> None:
        if preemption.remaining or preemption.unanswered:
            settle(self, preemption)
        else:
            self.under_way.pop(preemption.pod.uid, None)

    patch.setattr(Evictions, "_settle", hopeful)


@mutant("BM-27", "the same victims are evicted again and again before they have gone (#134249)", needing.preempting)
def bm_27(patch: Patch) -> None:
    patch.setattr(preemption, "_is_preempted", lambda pod: False)
    patch.setattr(Evictions, "_await_end", nothing)
    patch.setattr(Evictions, "unanswered", lambda self, uid: False)


@mutant("BM-28", "pods nobody can place stand at the head of the queue without a pause (#86373, #71486, #72619)")
def bm_28(patch: Patch) -> None:
    patch.setattr(Backoff, "holds", lambda self, pod, now: False)
    patch.setattr(HintMap, "ask", lambda self, pod, event, old, new: Strategy.BACKOFF)


@mutant("BM-29", "the places of the queue do not agree on who is where (#78849)")
def bm_29(patch: Patch) -> None:
    def forgetful(self: PriorityQueue, uid: str) -> None:
        for place in (self._active, self._parked, self._errors):
            if place.remove(uid) is not None:
                return

    patch.setattr(PriorityQueue, "_take_out", forgetful)


@mutant("BM-30", "the beginning of a pod is missed, and it waits until the next start (#102790, #117497)")
def bm_30(patch: Patch) -> None:
    add = PriorityQueue.add
    names: set[str] = set()

    def missing(self: PriorityQueue, info: Any, now: Instant) -> None:
        if info.key not in names:
            names.add(info.key)
            add(self, info, now)

    patch.setattr(PriorityQueue, "add", missing)


# ── what was promised? ───────────────────────────────────────────────────────────────────────────────────────


@mutant("BM-31", "a pod is deleted, and its promise goes on holding room (#85447, #102339)")
def bm_31(patch: Patch) -> None:
    def kept(self: PriorityQueue, uid: str, now: Instant) -> None:
        self._take_out(uid)
        self.in_flight.end(uid)

    patch.setattr(PriorityQueue, "delete", kept)


@mutant("BM-32", "a pod is promised room after it was bound (#109236)")
def bm_32(patch: Patch) -> None:
    def late(self: PriorityQueue, info: Any, node: str | None) -> None:
        self._nominator.nominate(info, node or info.pod.status.nominated_node_name)

    patch.setattr(PriorityQueue, "nominate", late)


@mutant("BM-33", "a promise stands although its node has gone (#85677, #106780)", needing.promised_nodes_go)
def bm_33(patch: Patch) -> None:
    ineligible = preemption.ineligible

    def loyal(cycle: Any, pod: Any, rejected: Any, *known: Any) -> str:
        promised = preemption._promised(cycle, pod)
        if promised and cycle.nodes.named(promised) is None:
            return "it was promised room already"
        return ineligible(cycle, pod, rejected, *known)

    patch.setattr(preemption, "ineligible", loyal)


@mutant("BM-34", "promised room looks free to smaller pods, which take it (#72124)", needing.preempting)
def bm_34(patch: Patch) -> None:
    patch.setattr(Nominator, "by_node", {})


# ── the beginning ────────────────────────────────────────────────────────────────────────────────────────────


@mutant("BM-40", "scheduling begins before it is known who is where (#45220, #87083, #116729)", needing.begins_slowly)
def bm_40(patch: Patch) -> None:
    def hasty(self: Core) -> bool:
        return self._started and self._suspended is None and not self.draining and self.queue.ready

    patch.setattr(Core, "ready", property(hasty))


# ── poison ───────────────────────────────────────────────────────────────────────────────────────────────────


@mutant("BM-48", "a plugin raises, and the scheduler with it (#92050, #110726, #38105)")
def bm_48(patch: Patch) -> None:
    def trusting(*given: Any) -> Any:
        _, plugin, hook, *arguments = given
        return getattr(plugin, hook)(*arguments)

    patch.setattr(runner, "asked", trusting)
