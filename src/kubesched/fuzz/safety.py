"""The laws that hold at every moment: of decisions, of what is sent, and of what a bind does to the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubesched.api.time import seconds
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.messages import AnyEffect, Bind, Evict, PatchPod, Publish
from kubesched.drive.tap import Moment
from kubesched.framework.decision import Decision
from kubesched.framework.records import IN_FLIGHT, QUEUED, Record, State
from kubesched.framework.steps import Answer
from kubesched.framework.tools import Note
from kubesched.fuzz.connection import Connection
from kubesched.fuzz.oracle import NodeFacts, PodFacts, View, is_poison, lacking, objections
from kubesched.fuzz.plugins import PROBE
from kubesched.fuzz.witness import Account, Chosen

if TYPE_CHECKING:
    from kubesched.fuzz.judge import Judge

ATTEMPTS_A_SECOND = 20  # and as many more as there are news
ROUNDS_AT_MOST = 12  # of one preemptor, faults not counted


# ── what a core says of an event ─────────────────────────────────────────────────────────────────────────────


def moment(judge: Judge, account: Account, told: Moment) -> None:
    """The moves, decisions and remarks of one event."""
    decisions = {decision.uid: decision for decision in told.decisions}
    popped = {record.uid for record in told.records if record.cause == "popped"}
    for uid in decisions.keys() - popped:  # it was asked about earlier, and an extender has answered
        _decided(judge, account, decisions[uid], told)
    for record in told.records:
        _moved(judge, account, record)
        if record.cause == "popped" and record.uid in decisions:
            _decided(judge, account, decisions[record.uid], told)
    for note in told.notes:
        _remarked(judge, account, note)


def _moved(judge: Judge, account: Account, record: Record) -> None:
    uid, state = record.uid, record.state
    account.states[uid] = state
    if state is State.TRYING and judge.stage.plan.asks:
        account.tried_with[uid] = judge.believed(account)
    if record.cause in ("flushed", "flushed_ready"):
        account.flushed.add(uid)
    if record.was is State.WAITING and state is State.PARKED:
        account.turned_away.add(uid)
    if state is State.ACTIVE:
        pod = account.view.pods.get(record.pod)
        if pod is not None and pod.uid == uid:
            account.active[uid] = pod.priority
    else:
        account.active.pop(uid, None)
    if state in IN_FLIGHT and state is not State.TRYING:
        if uid in account.chosen:
            account.flying[uid] = account.chosen[uid].node
    else:
        account.flying.pop(uid, None)
    if state is State.AMBIGUOUS:
        judge.notice("a bind was ambiguous")
    elif record.was is State.AMBIGUOUS:
        judge.notice(f"an ambiguous bind was settled: {record.cause}")
    if state is State.GONE:
        account.states.pop(uid, None)
        account.chosen.pop(uid, None)
        account.tried_with.pop(uid, None)


def _decided(judge: Judge, account: Account, decision: Decision, told: Moment) -> None:
    uid = decision.uid
    account.attempts[uid] += 1
    _at_leisure(judge, account, decision)
    (account.failed.add if decision.error else account.failed.discard)(uid)
    account.turned_away.discard(uid)
    if decision.placed or decision.nominate is not None:
        account.promises[uid] = "" if decision.placed else decision.nominate or ""
        if not account.promises[uid]:
            account.victims.pop(uid, None)  # taken back: its status says so when that has been written
    pod = account.view.pods.get(decision.pod)
    if pod is None or pod.uid != uid:
        return
    if not judge.stage.plan.asks:
        _in_order(judge, account, pod, told)
    if decision.placed:
        if uid in account.flushed:
            judge.blame("L1'", f"pod {pod.key} was woken by the flush alone, and was bound to {decision.node}")
        _placed(judge, account, pod, decision)
    if not decision.placed:
        account.flushed.discard(uid)
        if decision.post_filter is not None and decision.post_filter.victims:
            _preempts(judge, account, pod, decision)


def _at_leisure(judge: Judge, account: Account, decision: Decision) -> None:
    """Whoever is tried and tried again within a second, though there is no news, is in the way of everybody else."""
    now, heard = judge.stage.now, account.view.heard
    since, heard_then, times = account.pressure.get(decision.uid, (now, heard, 0))
    if now - since > seconds(1):
        since, heard_then, times = now, heard, 0
    account.pressure[decision.uid] = since, heard_then, times + 1
    if times > ATTEMPTS_A_SECOND + heard - heard_then:
        judge.blame("L3", f"pod {decision.pod} was tried {times} times within a second")


def _in_order(judge: Judge, account: Account, pod: PodFacts, told: Moment) -> None:
    """Who has just become active in this very event was not ready before."""
    fresh = {record.uid for record in told.records}
    for uid, priority in account.active.items():
        if priority > pod.priority and uid != pod.uid and uid not in fresh:
            judge.blame("S9", f"pod {pod.key} of priority {pod.priority} was tried before {uid} of {priority}")


def _placed(judge: Judge, account: Account, pod: PodFacts, decision: Decision) -> None:
    node = account.view.nodes.get(decision.node)
    asked = judge.stage.plan.asks  # then that was a while ago, and the world has moved on
    if node is None:
        if not asked:
            judge.blame("S4", f"pod {pod.key} was placed on {decision.node}, which nobody has told of")
        return
    believed = judge.believed(account)
    seen = account.tried_with.get(pod.uid, believed) if asked else believed  # an attempt sees what was when it began
    # One that was on its way there when the attempt began may have come back since, and a rival may have bound it.
    known = frozenset({other.uid for other in seen.on(node.name)} & {other.uid for other in believed.on(node.name)})
    version = seen.nodes.get(node.name, node).version
    account.turns += 1
    account.chosen[pod.uid] = Chosen(pod, node.name, node.uid, version, believed, known, account.turns)
    if asked:
        return
    _keeps_promises(judge, account, believed, pod, node)
    problems = objections(believed, pod, node)
    if problems:
        law = "S1b" if lacking(believed, pod, node, frozenset((pod.uid,))) else "S4"
        judge.blame(law, f"pod {pod.key} was placed on {node.name}: {'; '.join(problems)}")


def _keeps_promises(judge: Judge, account: Account, believed: View, pod: PodFacts, node: NodeFacts) -> None:
    """Room that was promised to others of its priority or higher, and whose status says so, is not free."""
    held = [
        other
        for other in account.view.pods.values()
        if other.promised == node.name == account.promises.get(other.uid)
        and not other.node
        and other.uid != pod.uid
        and other.priority >= pod.priority
        and account.states.get(other.uid) in QUEUED
    ]
    if held and not judge.stage.plan.custom.rival:
        with_them = View()
        with_them.nodes, with_them.others = believed.nodes, believed.others
        with_them.pods = {**believed.pods, **{other.key: other._replace(node=node.name) for other in held}}
        short = lacking(with_them, pod, node, frozenset((pod.uid,)))
        if short:
            names, why = ", ".join(other.key for other in held), "; ".join(short)
            judge.blame("S8", f"pod {pod.key} takes room on {node.name} that was promised to {names}: {why}")


def _remarked(judge: Judge, account: Account, note: Note) -> None:
    """What the probe among the plugins has seen."""
    if note.plugin != PROBE:
        return
    uid = dict(note.values)["uid"]
    match note.text:
        case "reserved":
            if uid in account.reserved:
                judge.blame("S5", f"{uid} was reserved twice")
            account.reserved.add(uid)
        case "unreserved":
            account.reserved.discard(uid)
        case "bound":
            if uid not in account.reserved:
                judge.blame("S5", f"{uid} was bound and is not reserved: it was given back before")
            account.reserved.discard(uid)


# ── preemption ───────────────────────────────────────────────────────────────────────────────────────────────


def _preempts(judge: Judge, account: Account, pod: PodFacts, decision: Decision) -> None:
    assert decision.post_filter is not None, "it asked for evictions"
    judge.notice("a pod preempted")
    name, victims = decision.post_filter.node or "", decision.post_filter.victims
    believed, node = judge.believed(account), account.view.nodes.get(name)
    asked = judge.stage.plan.asks  # then the world has moved on since
    if pod.spec.get("preemptionPolicy") == "Never":
        judge.blame("S8", f"pod {pod.key} must never preempt, and does")
    for victim in victims:
        if victim.priority >= pod.priority:
            judge.blame("S8", f"{victim.key} of {victim.priority} is a victim of {pod.key} of {pod.priority}")
    if node is None and not asked:
        judge.blame("S8", f"pod {pod.key} makes room on {name}, which nobody has told of")
    for other in account.view.pods.values():
        if other.priority < pod.priority and account.promises.get(other.uid) == name:
            account.promises[other.uid] = ""  # it shall look elsewhere; its status will say so when that is written
            account.victims.pop(other.uid, None)
    away = [victim.uid for victim in victims]
    problems = [] if asked or node is None else objections(believed, pod, node, away)
    if problems:
        judge.blame("S8", f"pod {pod.key} would not fit on {name} without its victims: {'; '.join(problems)}")
    if not asked and node is not None:
        _needed(judge, account, believed, pod, node, victims)
    _again(judge, account, pod, name, tuple(away))


def _needed(
    judge: Judge, account: Account, believed: View, pod: PodFacts, node: NodeFacts, victims: Sequence[PodInfo]
) -> None:
    """Every one of them, as far as can be told: of some pods nobody here can read the wishes, or what was promised."""
    if _strangers(account, node.name) or _promised(account, node.name, pod):
        return
    for victim in victims:
        others = [other.uid for other in victims if other.uid != victim.uid]
        if not objections(believed, pod, node, others):
            judge.blame("S8", f"{victim.key} need not leave {node.name} for {pod.key}")


def _strangers(account: Account, node: str) -> bool:
    core = account.process.core
    return core is not None and any(on.node == node and is_poison(on.info.key) for on in core.mirror.placed.values())


def _promised(account: Account, node: str, pod: PodFacts) -> bool:
    """Whether others were promised room there, which the second opinion does not count."""
    core = account.process.core
    return core is not None and any(other.uid != pod.uid for other in core.queue.nominated().get(node, ()))


def _again(judge: Judge, account: Account, pod: PodFacts, node: str, victims: tuple[str, ...]) -> None:
    """A new round while the victims of the last one are going is one too many, unless their node went meanwhile."""
    there = account.view.nodes.get(node)
    uid_of_node = "" if there is None else there.uid
    account.rounds[pod.uid] += 1
    before = account.victims.get(pod.uid)
    if before is not None and before[0] == uid_of_node and pod.promised == node:
        going = {other.uid for other in account.view.on(node) if other.terminating}
        still = {uid for uid in going.intersection(before[1]) if account.evicted[pod.uid, uid]}
        if still:
            judge.blame("S8", f"pod {pod.key} evicts again from {node} while {sorted(still)} are going")
    account.victims[pod.uid] = (uid_of_node, victims)
    for uid in victims:
        account.for_whom[uid] = pod.uid
    if account.rounds[pod.uid] > ROUNDS_AT_MOST + judge.stage.faults:
        judge.blame("S8", f"pod {pod.key} has evicted {account.rounds[pod.uid]} times, and is not bound")


# ── what is sent ─────────────────────────────────────────────────────────────────────────────────────────────


def sends(judge: Judge, account: Account, effect: AnyEffect) -> None:
    match effect:
        case Bind():
            _sends_bind(judge, account, effect)
        case Evict():
            _sends_evict(judge, account, effect)
        case PatchPod():
            _sends_patch(judge, account, effect)
        case Publish():
            if any(not (char.isprintable() or char == "\n") for char in effect.reason):
                judge.blame("S18", f"an Event has the reason {effect.reason!r}")


def _sends_bind(judge: Judge, account: Account, effect: Bind) -> None:
    pod, node = account.view.pods.get(effect.pod), account.view.nodes.get(effect.node)
    if is_poison(effect.pod):
        return
    if not effect.uid:
        judge.blame("S3", f"the bind of {effect.pod} names no uid")
    if pod is None or pod.uid != effect.uid:
        judge.blame("S3", f"{effect.pod} {effect.uid} is bound, and it is not there any more")
        return
    placed = pod.node and account.view.latest != effect.uid  # a timer that was due comes before news of the same moment
    if pod.terminating or pod.gated or placed:
        judge.blame("S3", f"{effect.pod} is bound, and it is {_why_not(pod)}")
    chosen = account.chosen.get(effect.uid)
    if chosen is None or chosen.node != effect.node:
        judge.blame("S4", f"{effect.pod} is bound to {effect.node}, and was decided for {chosen and chosen.node}")
        return
    if node is None or node.uid != chosen.node_uid:
        judge.blame("S4", f"{effect.pod} is bound to {effect.node}, which has gone or is another by now")
    for sent in account.under_way(judge.truth):
        if isinstance(sent.effect, Bind) and sent.effect.uid == effect.uid:
            judge.blame("S2", f"{effect.pod} is bound again while an earlier bind is not settled")


def _why_not(pod: PodFacts) -> str:
    return "going" if pod.terminating else "gated" if pod.gated else f"on {pod.node} already"


def _sends_evict(judge: Judge, account: Account, effect: Evict) -> None:
    preemptor = account.for_whom.get(effect.uid)
    if preemptor is None:
        judge.blame("S8", f"{effect.pod} is evicted, and nobody chose it")
        return
    pair = account.evicting[effect.id] = (preemptor, effect.uid)
    account.evicted[pair] += 1
    if account.evicted[pair] > 1:
        judge.blame("S8", f"{effect.pod} is evicted twice for the same pod")


def _sends_patch(judge: Judge, account: Account, effect: PatchPod) -> None:
    if not effect.nominated_node_name:
        return
    pod = account.view.pods.get(effect.pod)
    if pod is not None and pod.uid == effect.uid and pod.node:
        judge.blame("S11", f"{effect.pod} is on {pod.node}, and is promised room on {effect.nominated_node_name}")


# ── what a bind does to the truth ────────────────────────────────────────────────────────────────────────────


def bound(judge: Judge, connection: Connection, effect: Bind, answer: Answer) -> None:
    """A bind of ours has just been carried out; the truth is as it was the moment before."""
    if answer.obj is not None and answer.obj.metadata.uid != effect.uid:
        judge.blame("S3", f"{effect.pod} was decided for {effect.uid} and bound as {answer.obj.metadata.uid}")
    account, truth = judge.accounts.get(connection.owner), judge.truth
    pod, node = truth.pods.get(effect.pod), truth.nodes.get(effect.node)
    chosen = None if account is None else account.chosen.get(effect.uid)
    if account is None or pod is None or node is None or chosen is None or node.uid != chosen.node_uid:
        return
    ours = View()
    ours.nodes, ours.others = truth.nodes, truth.others
    # Whom we could not know of we cannot be blamed for: pods somebody else put there after we decided.
    ours.pods = {
        key: other
        for key, other in truth.pods.items()
        if not other.node or other.uid in chosen.known or other.uid in judge.ours
    }
    versions = [room for version, room in judge.rooms.get(node.name, ()) if version >= chosen.node_version]
    roomiest = {name: max(room.get(name, 0) for room in versions) for room in versions for name in room}
    short = lacking(ours, pod, node._replace(room=roomiest), frozenset((pod.uid,)))
    if short:
        judge.blame("S1a", f"{pod.key} was bound to {node.name}: {'; '.join(short)}")
    _neighbours(judge, account, chosen, pod)


def _neighbours(judge: Judge, account: Account, chosen: Chosen, pod: PodFacts) -> None:
    """Ports, anti-affinity and claims cannot be broken by news that are late, if all others are ours.

    Labels, of pods and of nodes, are taken as they were when the later of the two was decided, for that decision had
    to mind the other one: nobody keeps a rule that changes afterwards, while a bind waits or is sent again.
    """
    if judge.stage.plan.asks:
        return
    for other in judge.truth.pods.values():
        if not other.node or other.uid not in judge.ours:
            continue
        theirs = account.chosen.get(other.uid)
        later = theirs is not None and theirs.node == other.node and theirs.turn > chosen.turn
        believed = theirs.believed if theirs is not None and later else chosen.believed
        then = {one.uid: one for one in believed.pods.values()}
        both = View()
        both.nodes, both.others = believed.nodes, believed.others
        both.pods[other.key] = then.get(other.uid, other)._replace(node=other.node)
        bare = then.get(pod.uid, pod)
        bare = bare._replace(near=(), obj={**bare.obj, "spec": {}}, requests={})
        node = believed.nodes.get(chosen.node, chosen.believed.nodes[chosen.node])._replace(taints=())
        problems = [text for text in objections(both, bare, node) if "apart" in text or "taken" in text]
        if problems:
            judge.blame("S10", f"{pod.key} was bound to {node.name}: {'; '.join(problems)}")
