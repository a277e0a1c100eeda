"""Pod topology spread: keep the pods of a workload evenly over zones, hosts, or whatever a node label tells apart."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct

from kubesched.api.names import check_label_key
from kubesched.api.objects import (
    KubeObject,
    LabelSelector,
    Node,
    Pod,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    TopologySpreadConstraint,
)
from kubesched.api.selectors import Selector, SelectorError
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import NO_ROWS, Mask, Rows, Scores
from kubesched.cluster.vocab import ABSENT
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, POD, Action, Hint, QueueingHint, resource_name
from kubesched.framework.hooks import RESTLESS, Signature
from kubesched.framework.profile import MAX_SCORE
from kubesched.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from kubesched.framework.tools import Tools
from kubesched.framework.vector import Verdict
from kubesched.plugins.spread_constraints import (
    HARD,
    SOFT,
    SYSTEM_DEFAULTS,
    Constraint,
    Inclusion,
    compile_constraints,
    deduced_selector,
    has_all_keys,
    with_all_keys,
    with_selector,
)
from kubesched.plugins.spread_domains import HardDomains, HardSpread, SoftDomains, SoftSpread, Tallies

NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
TOO_SKEWED = "node(s) didn't match pod topology spread constraints"

_COMES_OR_GOES = Action.ADD | Action.UPDATE | Action.DELETE
_KEPT = 4096  # pods alike whose constraints are remembered

# ── arguments ────────────────────────────────────────────────────────────────────────────────────────────────


class DefaultConstraint(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A constraint in the arguments; the fields of a pod's, though a selector is refused."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()

    @property
    def constraint(self) -> TopologySpreadConstraint:
        return TopologySpreadConstraint(**{name: getattr(self, name) for name in self.__struct_fields__})


class PodTopologySpreadArgs(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How pods without constraints of their own are spread.

    Args:
        default_constraints: constraints for pods that have none; only with `defaultingType: List`.
        defaulting_type: `System` for the built-in ones (hosts and zones, soft), `List` for `default_constraints`.
    """

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: str = "System"


def validate_pod_topology_spread(args: PodTopologySpreadArgs) -> Iterator[tuple[str, str]]:
    """What cannot be used, each as where and why."""
    if args.defaulting_type not in ("System", "List"):
        yield "defaultingType", f'Unsupported value: "{args.defaulting_type}": supported values: "System", "List"'
    elif args.defaulting_type == "System" and args.default_constraints:
        yield "defaultingType", 'Invalid value: "System": when .defaultConstraints are not empty'
    seen: set[tuple[str, str]] = set()
    for at, one in enumerate(args.default_constraints):
        yield from _constraint_faults(f"defaultConstraints[{at}]", one)
        pair = (one.topology_key, one.when_unsatisfiable)
        if pair in seen:
            yield f"defaultConstraints[{at}]", f'Duplicate value: "{{{pair[0]}, {pair[1]}}}"'
        seen.add(pair)


def _constraint_faults(path: str, one: DefaultConstraint) -> Iterator[tuple[str, str]]:
    if one.max_skew <= 0:
        yield f"{path}.maxSkew", f"Invalid value: {one.max_skew}: not in valid range (0, inf)"
    if not one.topology_key:
        yield f"{path}.topologyKey", "Required value: can not be empty"
    elif sentence := check_label_key(one.topology_key):
        yield f"{path}.topologyKey", f'Invalid value: "{one.topology_key}": {sentence}'
    if not one.when_unsatisfiable:
        yield f"{path}.whenUnsatisfiable", "Required value: can not be empty"
    elif one.when_unsatisfiable not in (HARD, SOFT):
        supported = f'supported values: "{HARD}", "{SOFT}"'
        yield f"{path}.whenUnsatisfiable", f'Unsupported value: "{one.when_unsatisfiable}": {supported}'
    if one.label_selector is not None:
        problem = "constraint must not define a selector, as they deduced for each pod"
        yield f"{path}.labelSelector", f"Forbidden: {problem}"


# ── the plugin ───────────────────────────────────────────────────────────────────────────────────────────────

Both: TypeAlias = tuple[tuple[Constraint, ...], tuple[Constraint, ...]]
"""The hard constraints of a pod, and the soft ones."""


class PodTopologySpread:
    """Spread the pods of a workload evenly over topology domains.

    What it does:  a DoNotSchedule constraint rejects nodes in whose domain the pods its selector means would
                   outnumber those of the emptiest domain by more than maxSkew; a ScheduleAnyway constraint scores
                   nodes the higher, the fewer such pods their domain holds.  Pods without constraints get the
                   defaults of the arguments, with the selector of their Services and their controller.
    Answers:       UnschedulableAndUnresolvable where a node lacks the label; Unschedulable where it is too full.
    Wakes on:      a pod the constraints count comes, begins to go, goes or changes its labels; the pod's own labels or
                   tolerations change; a node comes, goes, or changes its labels or taints.
    Tiers:         filter, filter_all, score, score_all.
    Same as:       kube-scheduler PodTopologySpread, v1.36.
    """

    name = "PodTopologySpread"
    reads = (Service, ReplicationController, ReplicaSet, StatefulSet)
    board: Literal["node", "row"] = "row"

    def __init__(self, args: PodTopologySpreadArgs | None = None, tools: Tools | None = None) -> None:
        self.args = args or PodTopologySpreadArgs()
        self.tools = tools or Tools(self.name)
        self._system = self.args.defaulting_type == "System"
        self._defaults = (
            SYSTEM_DEFAULTS if self._system else tuple(one.constraint for one in self.args.default_constraints)
        )
        self._hard_defaults = any(one.when_unsatisfiable == HARD for one in self._defaults)
        self._plain_defaults = not any(one.label_selector or one.match_label_keys for one in self._defaults)
        self._selectors = SelectorCache()
        self._both_known: dict[bytes, Both] = {}
        self._both_clock = -1

    # ── filtering ────────────────────────────────────────────────────────────────────────────────────────────

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        try:
            constraints = self._constraints(pod, HARD, cycle.objects)
        except SelectorError as fault:
            return error(f"get constraints from pod: {fault}")
        if not constraints:
            return SKIP
        inclusion = self._inclusion(pod, nodes, with_all_keys(nodes, constraints))
        tallies = Tallies.within(cycle, pod.namespace)
        domains = [HardDomains(one, pod, inclusion.of(one), tallies.of(one.selector)) for one in constraints]
        cycle.put(HardSpread(domains, cycle.table.clock))
        return SUCCESS

    def refilter(self, cycle: Cycle, pod: PodInfo) -> Rows | None:
        spread = cycle.find(HardSpread)
        return NO_ROWS if spread is None else spread.follow(cycle.table)

    def add_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        cycle.get(HardSpread).account(pod, other, node, 1)

    def remove_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        cycle.get(HardSpread).account(pod, other, node, -1)

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        for domains in cycle.get(HardSpread).domains:
            code = int(domains.codes[node.row])
            if code == ABSENT:
                return unresolvable(NO_LABEL)
            if domains.counts[code] > domains.limit:
                return unschedulable(TOO_SKEWED)
        return SUCCESS

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        for domains in cycle.get(HardSpread).domains:
            codes = domains.codes[nodes.rows]
            full = np.append(domains.counts > domains.limit, False)[codes]  # ABSENT is -1: the last answer
            left = verdict.ok
            verdict.reject(left & (codes == ABSENT), NO_LABEL, unresolvable=True)
            verdict.reject(left & full, TOO_SKEWED)
        return verdict

    # ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────

    def pre_score(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        if not len(cycle.nodes):
            return SKIP
        try:
            constraints = self._constraints(pod, SOFT, cycle.objects)
        except SelectorError as fault:
            return error(f"calculating preScoreState: {fault}")
        if not constraints:
            return SKIP
        seen, counted = np.ones(len(nodes), dtype=np.bool_), np.ones(len(cycle.nodes), dtype=np.bool_)
        if pod.pod.spec.topology_spread_constraints or not self._system:
            seen, counted = with_all_keys(nodes, constraints), with_all_keys(cycle.nodes, constraints)
        # With the built-in defaults, a node that has no zone is compared all the same, by its host alone.
        inclusion, tallies = self._inclusion(pod, cycle.nodes, counted), Tallies.within(cycle, pod.namespace)
        domains = [
            SoftDomains.of(one, nodes.where(seen), inclusion.of(one), tallies.of(one.selector)) for one in constraints
        ]
        cycle.put(SoftSpread(domains, nodes, ~seen))
        return SUCCESS

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        spread = cycle.get(SoftSpread)
        if spread.ignored_rows[node.row]:
            return 0
        total = 0.0
        for domains in spread.domains:
            total += domains.charge(node.row)
        return _rounded(total)

    def score_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Scores:
        spread = cycle.get(SoftSpread)
        total = np.zeros(len(nodes), dtype=np.float64)
        for domains in spread.domains:
            total += domains.charges(nodes.rows)
        whole = np.trunc(total)
        scores: Scores = (whole + np.where(total - whole >= 0.5, 1.0, 0.0)).astype(np.int64)
        scores[spread.ignored_rows[nodes.rows]] = 0
        return scores

    def normalize_score(self, cycle: Cycle, pod: PodInfo, scores: Scores) -> Scores:
        spread = cycle.get(SoftSpread)
        if spread.whole:
            return _spread_out(scores)
        result = np.zeros_like(scores)
        result[~spread.ignored] = _spread_out(scores[~spread.ignored])
        return result

    def rescore(self, cycle: Cycle, pod: PodInfo, moved: bool) -> Rows | None:
        spread = cycle.find(SoftSpread)
        if spread is None:
            return NO_ROWS
        return None if moved else spread.follow(cycle.table)  # the feasible nodes are those that are compared

    def by_value(self, cycle: Cycle, pod: PodInfo) -> bool:
        return cycle.get(SoftSpread).whole

    # ── hints and signature ──────────────────────────────────────────────────────────────────────────────────

    def events_to_register(self) -> Sequence[Hint]:
        # Beyond kube-scheduler: any update, for one that is going is not counted from then on, however long it takes.
        pods = Action.ADD | Action.UPDATE | Action.DELETE
        nodes = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        hints = (Hint(POD, pods, self._after_pod), Hint(NODE, nodes, self._after_node))
        if not self._hard_defaults:
            return hints
        # Beyond kube-scheduler: these say whom a default constraint counts.
        return hints + tuple(Hint(resource_name(kind), _COMES_OR_GOES, self._after_owner) for kind in self.reads)

    def _after_owner(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        namespaces = (one.namespace for one in (old, new) if one is not None)
        return _queue_if(not pod.pod.spec.topology_spread_constraints and pod.namespace in namespaces)

    def _after_pod(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        versions = [one for one in (old, new) if isinstance(one, Pod)]
        if not all(_is_concerned(one, pod) for one in versions):
            return QueueingHint.SKIP
        try:
            constraints = self._constraints(pod, HARD)
        except SelectorError:
            return QueueingHint.QUEUE
        if isinstance(old, Pod) and isinstance(new, Pod):
            if new.uid == pod.uid and not pod.pod.spec.topology_spread_constraints and old.labels != new.labels:
                return _queue_if(self._hard_defaults)  # others may count now for a default constraint
            tolerates_more = new.uid == pod.uid and old.spec.tolerations != new.spec.tolerations
            if tolerates_more and any(one.honor_taints for one in constraints):
                return QueueingHint.QUEUE
            return _queue_if(any(_counts(one, old) != _counts(one, new) for one in constraints))
        return _queue_if(any(one.selector.matches(version.labels) for one in constraints for version in versions))

    def _after_node(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        try:
            constraints = self._constraints(pod, HARD)
        except SelectorError:
            return QueueingHint.QUEUE
        was = isinstance(old, Node) and has_all_keys(old.labels, constraints)
        now = isinstance(new, Node) and has_all_keys(new.labels, constraints)
        if not (isinstance(old, Node) and isinstance(new, Node)):
            return _queue_if(was or now)
        keys = [one.topology_key for one in constraints]
        moved = any(old.labels.get(key) != new.labels.get(key) for key in keys)
        return _queue_if(was != now or (now and (moved or old.spec.taints != new.spec.taints)))

    def context(self, cycle: Cycle) -> Hashable:
        return cycle.objects.changed(Service, ReplicationController, ReplicaSet, StatefulSet)

    def alike(self, cycle: Cycle, pod: PodInfo) -> Hashable | None:
        """Its constraints, whether it counts for them itself, and which nodes it counts."""
        try:
            hard, soft = self._both(pod, cycle.objects)
        except SelectorError:
            return None
        if not hard and not soft:
            return ()
        spec = pod.pod.spec
        affinity = None if spec.affinity is None else spec.affinity.node_affinity
        counted = msgspec.json.encode((spec.node_selector, affinity, spec.tolerations))
        itself = tuple(one.selector.matches(pod.labels) for one in (*hard, *soft))
        return pod.namespace, hard, soft, itself, counted, bool(spec.topology_spread_constraints)

    def outlook(self, cycle: Cycle, pod: PodInfo) -> Hashable:
        try:
            return cycle.table.node_clock if any(self._both(pod, cycle.objects)) else None
        except SelectorError:
            return RESTLESS

    def _both(self, pod: PodInfo, objects: Objects) -> Both:
        """Hard and soft constraints, remembered for pods alike.  Raises SelectorError."""
        clock = objects.changed(Service, ReplicationController, ReplicaSet, StatefulSet)
        if clock != self._both_clock or len(self._both_known) >= _KEPT:
            self._both_clock = clock
            self._both_known.clear()
        known = self._both_known.get(pod.fingerprint)
        if known is None:
            hard, soft = (self._constraints(pod, action, objects) for action in (HARD, SOFT))
            known = self._both_known[pod.fingerprint] = (hard, soft)
        return known

    def sign_pod(self, pod: PodInfo) -> Signature | Status:
        # Where a pod with constraints may go changes with every pod placed, on nodes that are otherwise untouched.
        if pod.pod.spec.topology_spread_constraints:
            return unschedulable("pods with topology constraints are not signable")
        if self._defaults:
            return unschedulable("pods with default topology constraints are not signable")
        return ()

    # ── constraints ──────────────────────────────────────────────────────────────────────────────────────────

    def _constraints(self, pod: PodInfo, action: str, objects: Objects | None = None) -> tuple[Constraint, ...]:
        """The pod's constraints of one kind, or the defaults.  Raises SelectorError."""
        hardness = "hard" if action == HARD else "soft"
        own = pod.pod.spec.topology_spread_constraints
        if not own and self._plain_defaults and self._selectors.of(pod, objects or self.tools.objects).empty:
            return ()  # default constraints are for pods that some Service or controller means
        label_keys = self.tools.features.match_label_keys_in_pod_topology_spread
        try:
            constraints = compile_constraints(own or self._defaults, pod.labels, action, label_keys=label_keys)
        except SelectorError as fault:
            doing = "obtaining pod's" if own else "setting default"
            raise SelectorError(f"{doing} {hardness} topology spread constraints: {fault}") from None
        if own or not constraints:
            return constraints
        return with_selector(constraints, self._selectors.of(pod, objects or self.tools.objects))

    def _inclusion(self, pod: PodInfo, nodes: Nodes, whole: Mask) -> Inclusion:
        comparisons = self.tools.features.taint_toleration_comparison_operators
        return Inclusion(pod, nodes, whole, comparisons=comparisons)


class SelectorCache:
    """Deduced selectors of pods alike, good until any object changes: thousands of Services need one look."""

    def __init__(self) -> None:
        self._objects: Objects | None = None
        self._clock = -1
        self._known: dict[object, Selector] = {}

    def of(self, pod: PodInfo, objects: Objects) -> Selector:
        clock = objects.changed(Service, ReplicationController, ReplicaSet, StatefulSet)
        if objects is not self._objects or clock != self._clock:
            self._objects, self._clock = objects, clock
            self._known.clear()
        key = (pod.class_key, pod.pod.controller)
        selector = self._known.get(key)
        if selector is None:
            selector = self._known[key] = deduced_selector(pod, objects)
        return selector


def _spread_out(scores: Scores) -> Scores:
    """From charges to marks: who is charged least gets most."""
    if not len(scores):
        return scores
    least, most = int(scores.min()), max(0, int(scores.max()))
    marks: Scores = MAX_SCORE * (most + least - scores) // most if most else np.full_like(scores, MAX_SCORE)
    return marks


def _rounded(number: float) -> int:
    """The nearest integer, halves up.  The number is not negative."""
    whole = math.trunc(number)
    return whole + (number - whole >= 0.5)


def _is_concerned(other: Pod, pod: PodInfo) -> bool:
    """Whether a pod's change can matter: it is the waiting pod itself, or has a place beside it."""
    placed = other.spec.node_name or other.status.nominated_node_name
    return other.uid == pod.uid or bool(placed and other.namespace == pod.namespace)


def _counts(constraint: Constraint, other: Pod) -> bool:
    return not other.terminating and constraint.selector.matches(other.labels)


def _queue_if(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP
