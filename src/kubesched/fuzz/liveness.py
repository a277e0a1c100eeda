"""The laws of the quiet: faults have stopped, nobody changes anything, and some time has passed.

Every pod that fits somewhere must be bound, every other one must say why, nobody tries for ever, and what a
scheduler believes is what is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubesched.core import checks
from kubesched.core.core import Core
from kubesched.framework.errors import BrokenInvariant
from kubesched.framework.records import QUEUED, State
from kubesched.fuzz.oracle import NodeFacts, PodFacts, View, is_poison, objections
from kubesched.fuzz.witness import Account

if TYPE_CHECKING:
    from kubesched.fuzz.judge import Judge

ATTEMPTS_AT_MOST = 12


def at_rest(judge: Judge) -> None:
    """What must be true when all has come to rest."""
    for account in list(judge.accounts.values()):
        if not account.process.ours or account.process.core is None:
            continue
        core = account.process.core
        try:
            checks.check_deeply(core)
        except BrokenInvariant as error:
            judge.raised(account.process, error)
        _beliefs(judge, core)
        _leftovers(judge, account, core)
        for pod in judge.truth.pods.values() if account.connection.leading else ():
            if _ours_to_place(pod, core):
                _waiting(judge, account, core, pod)


def after_rest(judge: Judge) -> None:
    """Nothing may have been written since, unless somebody's attempts end with an error each time."""
    for account in judge.accounts.values():
        if account.process.ours and account.effects and not account.failed and not _restless(judge):
            judge.blame("L3", f"{account.effects} effects in the last seconds, and nothing has changed")


def _restless(judge: Judge) -> bool:
    """Somebody goes on for ever by the plan."""
    if not judge.truth.nodes:
        return True  # kept from kube-scheduler: without any node every attempt is an error, and errors are tried again
    return judge.stage.plan.asks or "Moody" in str(judge.stage.plan.scheduler)


def _ours_to_place(pod: PodFacts, core: Core) -> bool:
    name = pod.spec.get("schedulerName") or "default-scheduler"
    return not pod.node and name in core.profiles and not pod.poisoned


# ── S7, S5, S16: what it believes, and what it kept ──────────────────────────────────────────────────────────


def _beliefs(judge: Judge, core: Core) -> None:
    truth, mirror = judge.truth, core.mirror
    told = {key: (pod.uid, pod.spec.node_name) for key, pod in mirror.pods.items()}
    there = {key: (pod.uid, pod.node) for key, pod in truth.pods.items()}
    for key in sorted(told.keys() | there.keys()):
        if told.get(key) != there.get(key) and not is_poison(key):
            judge.blame("S7", f"pod {key} is {there.get(key)}, and is believed to be {told.get(key)}")
    if mirror.table.row_of.keys() != truth.nodes.keys():
        judge.blame("S7", f"nodes are {sorted(truth.nodes)}, and are believed to be {sorted(mirror.table.row_of)}")
        return
    for node in truth.nodes.values():
        if node.name in truth.strange.values():
            continue
        used, row = truth.used(node.name), mirror.table.row_of[node.name]
        seen = mirror.table.nodes[row]
        if seen is None or seen.uid != node.uid:
            judge.blame("S7", f"{node.name} is believed to be another that is gone")
        for resource in ("cpu", "memory"):
            believed = int(mirror.table.requested[row, mirror.table.resources.find(resource)])
            if believed != used.get(resource, 0):
                judge.blame("S7", f"{node.name} has {used.get(resource, 0)} {resource} in use, not {believed}")
    if mirror.assumed():
        held = ", ".join(tracked.info.key for tracked in mirror.assumed())
        judge.blame("S7", f"room is still assumed for {held}")


def _leftovers(judge: Judge, account: Account, core: Core) -> None:
    lasting = [uid for uid in core.flights if core.life.state(uid) is not State.WAITING]
    if lasting:
        judge.blame("S5", f"{lasting} are still on their way")
    if account.reserved:
        judge.blame("S5", f"{sorted(account.reserved)} are still reserved")
    if len(core.outbox):
        judge.blame("S16", f"{len(core.outbox)} effects were never answered")
    if core.queue.events_kept:
        judge.blame("S16", f"{core.queue.events_kept} events are still kept for pods in flight")


# ── L1, L2, L3: who still waits, and why ─────────────────────────────────────────────────────────────────────


def _waiting(judge: Judge, account: Account, core: Core, pod: PodFacts) -> None:
    state = core.life.state(pod.uid)
    if pod.terminating:
        return
    if state is None or (state not in QUEUED and state is not State.INVALID):
        judge.blame("L2", f"pod {pod.key} waits, and is {state.value if state else 'unknown'} to its scheduler")
    if pod.gated:
        return
    attempts, happened = account.attempts[pod.uid], judge.changes - judge.changes_before
    if attempts > ATTEMPTS_AT_MOST + happened and pod.uid not in account.failed and not _restless(judge):
        judge.blame("L3", f"pod {pod.key} was tried {attempts} times in the quiet")
    there = None if pod.uid in account.turned_away else home(judge, pod)
    if there is not None:
        sleeps = "" if state is None else f" ({state.value}: {core.queue.alarm(pod.uid)})"
        judge.blame("L1", f"pod {pod.key} fits on {there.name}, and still waits{sleeps}")
    elif not _said_why(judge, pod):
        judge.blame("L2", f"pod {pod.key} waits, and its status does not say why")


def home(judge: Judge, pod: PodFacts) -> NodeFacts | None:
    """A node the pod must have got by now, if there is one."""
    if _held_back(judge, pod):
        return None
    truth = judge.truth
    strange = set(truth.strange.values())
    for node in truth.nodes.values():
        if node.name in strange:
            continue  # somebody may hold room there who cannot be read
        if not objections(truth, pod, node) and not _promised_to_others(truth, pod, node.name):
            return node
    if pod.spec.get("preemptionPolicy") == "Never" or _waits_for_victims(truth, pod) or _asks_late(pod):
        return None
    for node in truth.nodes.values():
        lower = [other.uid for other in truth.on(node.name) if other.priority < pod.priority]
        going = any(other.terminating for other in truth.on(node.name))
        if lower and not going and node.name not in strange and not objections(truth, pod, node, lower):
            if not _promised_to_others(truth, pod, node.name):
                return node
    return None


def _held_back(judge: Judge, pod: PodFacts) -> bool:
    """Somebody keeps it from being bound whom the second opinion does not know."""
    extender = judge.stage.plan.custom.extender
    return extender in ("strict", "evil") or "mood" in pod.labels


def _asks_late(pod: PodFacts) -> bool:
    """Filters that ask after that for resources have not turned a pod down where room was short; they turned down
    what eviction would have made of it, and what makes them agree wakes nobody: nor does it with kube-scheduler."""
    return bool(pod.near or pod.claims or pod.spec.get("topologySpreadConstraints"))


def _waits_for_victims(view: View, pod: PodFacts) -> bool:
    """While somebody goes to make the room it was promised, however long that takes, it asks nobody else to go.

    A promise of room on a node that has gone is worth nothing, even if pods that were there do not go with it.
    """
    on_its_way = view.on(pod.promised) if pod.promised in view.nodes else ()
    return any(other.terminating and other.priority < pod.priority for other in on_its_way)


def _promised_to_others(view: View, pod: PodFacts, node: str) -> bool:
    return any(
        other.promised == node and not other.node and other.priority >= pod.priority and other.uid != pod.uid
        for other in view.pods.values()
    )


def _said_why(judge: Judge, pod: PodFacts) -> bool:
    if any(met.effect == "PatchPod" and met.key == pod.key for met in judge.stage.met):
        return True  # it tried to say so
    conditions = (pod.obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)
