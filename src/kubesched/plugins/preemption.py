"""DefaultPreemption: make room for a pod that fits nowhere, by evicting pods of lower priority.

The search asks, of every node where fewer pods may help: would the pod fit here without all lower ones?  If so,
which of them can stay after all?  What remains are the node's victims, and of all nodes the one whose victims
are least missed is taken.  Nothing is evicted here; the nomination says who shall go, and the core sees to it.

`candidates`, `select_victims` and `pick_one` are usable by themselves, for plugins that preempt by other rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import NamedTuple

from msgspec import Struct

from kubesched.api.labels import Selector, SelectorError, aggregate, compile_label_selector
from kubesched.api.objects import KubeObject, Pod, PodDisruptionBudget
from kubesched.api.time import Instant, parse_rfc3339
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.trial import Trial
from kubesched.cluster.types import Rows
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Rejected
from kubesched.framework.errors import InternalError, KubeschedError
from kubesched.framework.events import POD, Action, Hint, QueueingHint
from kubesched.framework.extender import Proposal, Proposals
from kubesched.framework.hooks import Nomination, Write
from kubesched.framework.status import SUCCESS, Code, Status, error, unresolvable, unschedulable
from kubesched.framework.tools import Tools

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NEVER = "not eligible due to preemptionPolicy=Never."
STILL_GOING = "not eligible due to a terminating pod on the nominated node."
UNDER_WAY = "waiting for the preemption for this pod to be finished"
_NO_VICTIMS, _UNDER_WAY = unresolvable(NO_VICTIMS), unresolvable(UNDER_WAY)
_LOWEST = -(2**31)


class DefaultPreemptionArgs(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How many nodes to find victims on before the best is picked: a share of the nodes, and at least so many.

    Args:
        min_candidate_nodes_percentage: 0 to 100.
        min_candidate_nodes_absolute: 0 or more; one of the two must not be 0.
    """

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


def validate_default_preemption(args: DefaultPreemptionArgs) -> Iterator[tuple[str, str]]:
    """What is wrong with the arguments, as (path, message)."""
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    if not 0 <= percentage <= 100:
        yield "minCandidateNodesPercentage", f"Invalid value: {percentage}: not in valid range [0, 100]"
    if absolute < 0:
        yield "minCandidateNodesAbsolute", f"Invalid value: {absolute}: not in valid range [0, inf)"
    if percentage == 0 and absolute == 0:
        both = "Invalid value: 0: cannot be zero at the same time as"
        yield "minCandidateNodesPercentage", f"{both} minCandidateNodesAbsolute"
        yield "minCandidateNodesAbsolute", f"{both} minCandidateNodesPercentage"


class Victims(NamedTuple):
    """The pods that must leave a node, the most important first, and how many of them a budget protects."""

    pods: tuple[PodInfo, ...]
    violations: int


class Candidate(NamedTuple):
    """A node that would take the pod, and at what price."""

    node: str
    victims: Victims


class DefaultPreemption:
    """Evict pods of lower priority where that makes room for a pod that fits nowhere.

    What it does:  on nodes that were turned down only for now, tries the pod without all pods of lower priority,
                   then brings back as many as fit beside it, those protected by a PodDisruptionBudget first.  Of
                   the nodes found it nominates the one with, in this order: fewest budget violations, lowest
                   highest victim, lowest sum of priorities, fewest victims, most recently started ones.
    Answers:       Unschedulable, with the reasons per node, where no eviction would help.  A pod waits in front
                   of the queue while evictions on its behalf are under way.
    Wakes on:      nothing of its own: the plugins that turned the pod down wake it when its victims have left.
    Tiers:         one node after the other; nodes without a pod of lower priority cost nothing.
    Same as:       kube-scheduler DefaultPreemption, v1.36.
    """

    name = "DefaultPreemption"
    reads = (PodDisruptionBudget,)
    writes = (Write("delete", Pod),)

    def __init__(self, args: DefaultPreemptionArgs | None = None, tools: Tools | None = None) -> None:
        self.args = args or DefaultPreemptionArgs()
        self.tools = tools

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return _UNDER_WAY if self.tools is not None and self.tools.preempting(pod) else SUCCESS

    def post_filter(self, cycle: Cycle, pod: PodInfo, rejected: Rejected) -> Nomination | Status:
        leaving: Set[str] = frozenset()
        promised = None
        if self.tools is not None and self.tools.attached:
            leaving, promised = self.tools.leaving, self.tools.promised(pod)
        problem = ineligible(cycle, pod, rejected, leaving, promised)
        if problem:
            return unschedulable(f"preemption: {problem}")
        if not len(cycle.nodes):
            return error("preemption: no nodes available")
        rows = rejected.rows_with(Code.UNSCHEDULABLE, cycle.nodes.rows)
        search = candidates(cycle, pod, rows, self._enough(len(rows)))
        best = pick_one(search.found, cycle.now)
        if best is not None:
            _propose(cycle, search.found)
            return Nomination(best.node, best.victims.pods)
        if search.errors:
            return error(f"preemption: {aggregate(search.errors)}")
        text = f"preemption: {_fit_error(cycle, search.statuses)}"
        return Nomination("", status=unschedulable(text))

    def _enough(self, count: int) -> int:
        """How many candidates to find among so many nodes."""
        share = count * self.args.min_candidate_nodes_percentage // 100
        return min(max(share, self.args.min_candidate_nodes_absolute), count)

    def events_to_register(self) -> Sequence[Hint]:
        # Kept from kube-scheduler: registered so that a pod held back in front of the queue is looked at again;
        # whether a deletion helps it is for the plugins to say that turned it down.
        return (Hint(POD, Action.DELETE, _never),)


def _never(pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    return QueueingHint.SKIP


# ── may it? ──────────────────────────────────────────────────────────────────────────────────────────────────


def ineligible(
    cycle: Cycle, pod: PodInfo, rejected: Rejected, leaving: Set[str] = frozenset(), promised: str | None = None
) -> str:
    """Why this pod must not preempt now; empty if it may.

    Args:
        leaving: pods that were evicted already, whatever our view shows of that, by uid.
        promised: the node on which it was promised room; without it, what the cycle and its status say.
    """
    if pod.pod.spec.preemption_policy == "Never":
        return NEVER
    name = _promised(cycle, pod) if promised is None else promised
    node = cycle.nodes.named(name) if name else None
    if node is None or rejected.status(node.row).code is Code.UNRESOLVABLE:
        return ""  # an earlier promise, if there was one, is worth nothing any more
    # The watch may be slower than the answer to a deletion; kube-scheduler would evict once more meanwhile.
    if any(other.priority < pod.priority and (other.uid in leaving or _is_preempted(other.pod)) for other in node.pods):
        return STILL_GOING
    return ""


def _promised(cycle: Cycle, pod: PodInfo) -> str:
    """The node the pod was promised: as its status says, or as it will once that has been written."""
    written = pod.pod.status.nominated_node_name
    if written:
        return written
    return next((node for node, pods in cycle.nominated.items() if any(one.uid == pod.uid for one in pods)), "")


def _is_preempted(pod: Pod) -> bool:
    """Whether a pod is on its way out because a scheduler made it leave."""
    if not pod.terminating:
        return False
    target = next((condition for condition in pod.status.conditions if condition.type == "DisruptionTarget"), None)
    return target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"


# ── where, and at what price? ────────────────────────────────────────────────────────────────────────────────


class Found(NamedTuple):
    """What a search found: nodes and victims, what it heard from the other nodes it tried, and what went wrong."""

    found: list[Candidate]
    statuses: dict[int, Status]  # by row
    errors: list[str]


def candidates(cycle: Cycle, pod: PodInfo, rows: Rows, enough: int) -> Found:
    """Try nodes, from a place that luck chooses, until enough have been found that would take the pod.

    Nodes where nobody protected has to leave come first.  The search goes on until it has found one of those.
    """
    search = Found([], {}, [])
    gentle: list[Candidate] = []
    harsh: list[Candidate] = []
    count = len(rows)
    offset = cycle.luck.below(count, "preemption") if count else 0
    budgets = Budgets(cycle.objects)
    for i in range(count):
        node = NodeInfo(cycle.table, int(rows[(offset + i) % count]))
        answer = _try(cycle, pod, node, budgets)
        if isinstance(answer, Status):
            search.statuses[node.row] = answer
            if answer.code is Code.ERROR:
                search.errors.append(answer.message)
            continue
        found = harsh if answer.violations else gentle
        if len(found) < enough:
            found.append(Candidate(node.name, answer))
        if gentle and len(gentle) + len(harsh) >= enough:
            break
    search.found.extend((*gentle, *harsh))
    return search


def _try(cycle: Cycle, pod: PodInfo, node: NodeInfo, budgets: Budgets) -> Victims | Status:
    lower = [other for other in node.pods if other.priority < pod.priority]
    if not lower:
        return _NO_VICTIMS
    try:
        answer = select_victims(cycle, node, lower, budgets)
    except InternalError:
        raise
    except KubeschedError as problem:  # a plugin could not judge this node; others may do
        return error(str(problem))
    if isinstance(answer, Victims) and not answer.pods:
        return error(f'expected at least one victim pod on node "{node.name}"')
    return answer


def select_victims(cycle: Cycle, node: NodeInfo, lower: Sequence[PodInfo], budgets: Budgets) -> Victims | Status:
    """The fewest of the pods in `lower` that must leave the node for the cycle's pod to fit.

    Returns:
        why the pod does not fit even without all of them, if it does not.
    """
    importance = _importance(cycle.now)
    protected, others = budgets.split(sorted(lower, key=importance))
    leaving = cycle.spare(node, (*protected, *others))
    if leaving is None:
        leaving = _try_without(cycle, node, (*protected, *others))
    if isinstance(leaving, Status):
        return leaving
    victims = sorted(leaving, key=importance) if protected and others else leaving
    shielded = {pod.uid for pod in protected}
    return Victims(tuple(victims), sum(pod.uid in shielded for pod in victims))


def _try_without(cycle: Cycle, node: NodeInfo, lower: Sequence[PodInfo]) -> Sequence[PodInfo] | Status:
    """Take pods off a node and bring them back, one by one, where the cycle's pod still fits; returns the others."""
    with Trial(cycle.table) as trial:
        for other in lower:
            trial.evict(other, node.name)
        status = cycle.fits(node, trial)
        return _bring_back(cycle, node, trial, lower) if status.ok else status


def _bring_back(cycle: Cycle, node: NodeInfo, trial: Trial, pods: Sequence[PodInfo]) -> list[PodInfo]:
    """Bring pods back, one by one, as long as the cycle's pod still fits; returns those that cannot stay."""
    victims: list[PodInfo] = []
    refused: PodInfo | None = None  # cannot stay beside those that are back so far
    for other in pods:
        if refused is not None and _alike(refused, other):
            victims.append(other)
            continue
        trial.place(other, node.name)
        if cycle.fits(node, trial).ok:
            refused = None
        else:
            trial.evict(other, node.name)
            victims.append(other)
            refused = other
    return victims


def _alike(a: PodInfo, b: PodInfo) -> bool:
    """Whether a node cannot tell two of its pods apart but by their names, so that one may speak for both."""
    return (
        a.namespace == b.namespace
        and a.labels == b.labels
        and a.pod.terminating == b.pod.terminating
        and a.usage == b.usage
        and a.pod.annotations == b.pod.annotations
        and a.pod.spec == b.pod.spec
        # The claim of an ephemeral volume goes by the name of the pod.
        and not any(volume.ephemeral is not None for volume in a.pod.spec.volumes)
    )


def _importance(now: Instant) -> Callable[[PodInfo], tuple[int, Instant]]:
    """A sort key: higher pods first, of the same priority those that have run longer."""
    return lambda pod: (-pod.priority, started(pod, now))


def started(pod: PodInfo, now: Instant) -> Instant:
    """When a pod started; one that has not, or of which nobody can read it, is taken to start now."""
    written = pod.pod.status.start_time
    try:
        return now if written is None else parse_rfc3339(written)
    except ValueError:
        return now


# ── who is protected ─────────────────────────────────────────────────────────────────────────────────────────


class _Budget(NamedTuple):
    number: int
    selector: Selector
    allowed: int
    disrupted: frozenset[str]


class Budgets:
    """The PodDisruptionBudgets of a cluster, by namespace, with what each still allows."""

    def __init__(self, objects: Objects) -> None:
        self._by_namespace: dict[str, list[_Budget]] = {}
        for number, budget in enumerate(objects.all(PodDisruptionBudget)):
            try:
                selector = compile_label_selector(budget.spec.selector)
            except SelectorError:
                continue  # one that cannot be read protects nobody
            if not (selector.empty or selector.nothing):
                disrupted = frozenset(budget.status.disrupted_pods)
                kept = _Budget(number, selector, budget.status.disruptions_allowed, disrupted)
                self._by_namespace.setdefault(budget.namespace, []).append(kept)

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Pods whose eviction would overdraw a budget, and the others, each in the given order.

        Every pod draws on all budgets that mean it, in order.  One that the API server counts as disrupted
        already draws on none.
        """
        if not self._by_namespace:
            return [], list(pods)
        protected: list[PodInfo] = []
        others: list[PodInfo] = []
        drawn: dict[int, int] = {}
        for pod in pods:
            overdraws = False
            for budget in self._by_namespace.get(pod.namespace, ()) if pod.labels else ():
                if pod.name not in budget.disrupted and budget.selector.matches(pod.labels):
                    drawn[budget.number] = drawn.get(budget.number, 0) + 1
                    overdraws |= drawn[budget.number] > budget.allowed
            (protected if overdraws else others).append(pod)
        return protected, others


# ── which node? ──────────────────────────────────────────────────────────────────────────────────────────────


def pick_one(found: Sequence[Candidate], now: Instant) -> Candidate | None:
    """The candidate whose victims are least missed; the first of equals."""
    return min(found, key=lambda candidate: price(candidate.victims, now), default=None)


def _propose(cycle: Cycle, found: Sequence[Candidate]) -> None:
    """Leave what was found where extenders may look at it before anyone is evicted."""
    proposals = (Proposal(one.node, one.victims.pods, one.victims.violations) for one in found)
    cycle.put(Proposals(tuple(proposals), lambda one: price(Victims(one.victims, one.violations), cycle.now)))


def price(victims: Victims, now: Instant) -> tuple[int, int, int, int, int]:
    """How much it costs to evict them; kube-scheduler's criteria, most weighty first."""
    pods = victims.pods
    highest = max(pod.priority for pod in pods)
    # Priorities may be negative; lifted above zero, one more victim never makes the sum smaller.
    total = sum(pod.priority - _LOWEST for pod in pods)
    earliest = min(started(pod, now) for pod in pods if pod.priority == highest)
    return victims.violations, pods[0].priority, total, len(pods), -earliest


# ── what to say where nothing helps ──────────────────────────────────────────────────────────────────────────


def _fit_error(cycle: Cycle, statuses: dict[int, Status]) -> str:
    """The reasons of all nodes, counted; those not tried are those that evictions cannot help."""
    answers = Rejected(cycle.table.share_names(), len(cycle.nodes))
    answers.one_by_one = statuses
    answers.absent = unresolvable(NOT_HELPFUL)
    lines = sorted(f"{count} {reason}" for reason, count in answers.counts().items())
    return f"0/{len(cycle.nodes)} nodes are available: {', '.join(lines)}."
