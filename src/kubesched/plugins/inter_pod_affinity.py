"""Pod affinity and anti-affinity: be near those pods, stay away from these."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from kubesched.api.objects import KubeObject, Namespace, Node, Pod
from kubesched.cluster.columns import Nodes
from kubesched.cluster.neighbours import PodClass
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import AffinityTerm, PodInfo
from kubesched.cluster.table import NodeTable
from kubesched.cluster.types import NO_ROWS, Mask, Rows, Scores, joined
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, POD, Action, Hint, QueueingHint, resource_name
from kubesched.framework.hooks import Signature
from kubesched.framework.profile import MAX_SCORE
from kubesched.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from kubesched.framework.tools import Tools
from kubesched.framework.vector import Verdict
from kubesched.plugins.affinity_hints import matches_all, namespace_helps, node_helps, pod_helps
from kubesched.plugins.domains import DomainCounts, Following, Gathering, rows_in

NOT_NEAR = "node(s) didn't match pod affinity rules"
TOO_NEAR = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"

_NO_LABELS: Mapping[str, str] = {}

# ── arguments ────────────────────────────────────────────────────────────────────────────────────────────────


class InterPodAffinityArgs(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How much the wishes of pods already placed count.

    Args:
        hard_pod_affinity_weight: what a placed pod's required affinity to the newcomer adds to the score, 0 to 100.
        ignore_preferred_terms_of_existing_pods: do not score pods that have no preferred terms themselves.
    """

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


def validate_inter_pod_affinity(args: InterPodAffinityArgs) -> Iterator[tuple[str, str]]:
    """What is wrong with the arguments, as (path, message)."""
    weight = args.hard_pod_affinity_weight
    if not 0 <= weight <= 100:
        yield "hardPodAffinityWeight", f"Invalid value: {weight}: not in valid range [0, 100]"


# ── what pre_filter and pre_score work out ───────────────────────────────────────────────────────────────────


class Requirements:
    """What required terms say of every domain: the pod's own, and those of the pods already there about it."""

    def __init__(
        self,
        affinity: Sequence[AffinityTerm],
        anti_affinity: Sequence[AffinityTerm],
        namespace_labels: Mapping[str, str],
        near: DomainCounts,
        away: DomainCounts,
        unwelcome: DomainCounts,
        followings: Sequence[Following] = (),
    ) -> None:
        self.affinity = affinity
        self.anti_affinity = anti_affinity
        self.namespace_labels = namespace_labels
        self.near = near  # pods that match all terms of the pod's affinity, once per term
        self.away = away  # pods that match a term of its anti-affinity
        self.unwelcome = unwelcome  # terms of others' anti-affinity that match the pod
        self.followings = followings  # of these three

    @staticmethod
    def of(
        table: NodeTable,
        affinity: Sequence[AffinityTerm],
        anti_affinity: Sequence[AffinityTerm],
        namespace_labels: Mapping[str, str],
        minding: Gathering,
    ) -> Requirements:
        """Count pods as they are now."""
        gatherings = _near(table, affinity), _away(table, anti_affinity), minding
        followings = [Following(gathering, table) for gathering in gatherings]
        near, away, unwelcome = (following.domains for following in followings)
        return Requirements(affinity, anti_affinity, namespace_labels, near, away, unwelcome, followings)

    @property
    def nothing(self) -> bool:
        """Whether no node can be wrong for the pod as things stand."""
        return not self.unwelcome and not self.affinity and not self.anti_affinity

    def follow(self, table: NodeTable) -> Rows | None:
        """Bring the counts up to date; the rows that fit now and did not, or the other way round.  None: ask anew."""
        near, _, minding = self.followings
        before = near.somebody, minding.somebody
        found: list[Rows] = []
        for following in self.followings:
            moved = following.follow(table)
            if moved is None:
                return None
            crossed: dict[str, dict[int, None]] = {}
            for one in moved:
                if (one.before > 0) is not (one.now > 0):
                    crossed.setdefault(one.key, {})[one.code] = None
            found += [rows_in(table, key, list(codes)) for key, codes in crossed.items()]
        self.near, self.away, self.unwelcome = [following.domains for following in self.followings]
        # While nobody is near, a pod may be the first; and while nobody minds, the filter may have nothing to say:
        # then no node is judged by its own domain alone.
        return joined(*found) if before == (near.somebody, minding.somebody) else None

    def account(self, pod: PodInfo, other: PodInfo, row: int, sign: int) -> None:
        """Another pod comes to a row, or leaves it."""
        for term in other.required_anti_affinity:
            if term.matches(pod.namespace, pod.labels, self.namespace_labels):
                self.unwelcome.add(term.topology_key, row, sign)
        if matches_all(self.affinity, other.namespace, other.labels):
            for term in self.affinity:
                self.near.add(term.topology_key, row, sign)
        for term in self.anti_affinity:
            if term.matches(other.namespace, other.labels, None):
                self.away.add(term.topology_key, row, sign)

    def clone(self) -> Requirements:
        return Requirements(
            self.affinity,
            self.anti_affinity,
            self.namespace_labels,
            self.near.clone(),
            self.away.clone(),
            self.unwelcome.clone(),
        )


_INTERESTS_KEPT = 4096  # pods alike for which it is remembered who minds them


class Preferences:
    """What preferred terms, and others' required affinity, add up to in every domain."""

    def __init__(self, gathering: Gathering, table: NodeTable) -> None:
        self._following = Following(gathering, table)
        self.domains = self._following.domains

    def follow(self, table: NodeTable) -> Rows | None:
        """Bring the counts up to date; the rows with another score.  None: ask anew."""
        moved = self._following.follow(table)
        if moved is None:
            return None
        self.domains = self._following.domains
        codes: dict[str, dict[int, None]] = {}
        for one in moved:
            codes.setdefault(one.key, {})[one.code] = None
        return joined(*[rows_in(table, key, list(some)) for key, some in codes.items()])


# ── the plugin ───────────────────────────────────────────────────────────────────────────────────────────────


class InterPodAffinity:
    """Place a pod near the pods its affinity names and away from those its anti-affinity names.

    What it does:  rejects nodes in whose domain no pod matches a required affinity term, or some pod matches a
                   required anti-affinity term, or some pod's own required anti-affinity means the newcomer;
                   scores domains by the weights of preferred terms, in both directions.  Where nobody matches a
                   pod's affinity yet and the pod matches it itself, it may be the first.
    Answers:       UnschedulableAndUnresolvable where affinity is not met; Unschedulable where anti-affinity is
                   not, since evicting the others would help.
    Wakes on:      a pod that its terms mean comes, goes or changes its labels; the pod's own labels change; a
                   node comes or changes its labels; a namespace that a term may mean changes.
    Tiers:         filter, filter_all, score, score_all.
    Same as:       kube-scheduler InterPodAffinity, v1.36.
    """

    name = "InterPodAffinity"
    reads = (Namespace,)
    board: Literal["node", "row"] = "row"

    def __init__(self, args: InterPodAffinityArgs | None = None, tools: Tools | None = None) -> None:
        self.args = args or InterPodAffinityArgs()
        self.tools = tools
        self._interests: dict[Hashable, tuple[tuple[bytes, tuple[int, ...]], ...]] = {}

    # ── filtering ────────────────────────────────────────────────────────────────────────────────────────────

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        if pod.errors:
            return unresolvable(f"parsing pod: {_joined(pod.errors)}")
        labels = cycle.objects.namespace_labels(pod.namespace) or _NO_LABELS
        minding = _minding(nodes.table, pod, labels)
        if not minding and not pod.required_affinity and not pod.required_anti_affinity:
            return SKIP
        affinity = _with_namespaces(pod.required_affinity, cycle.objects)
        anti_affinity = _with_namespaces(pod.required_anti_affinity, cycle.objects)
        required = Requirements.of(nodes.table, affinity, anti_affinity, labels, minding)
        cycle.put(required)
        return SKIP if required.nothing else SUCCESS

    def refilter(self, cycle: Cycle, pod: PodInfo) -> Rows | None:
        required = cycle.find(Requirements)
        return NO_ROWS if required is None else required.follow(cycle.table)

    def add_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        cycle.get(Requirements).account(pod, other, node.row, 1)

    def remove_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        cycle.get(Requirements).account(pod, other, node.row, -1)

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        required = cycle.get(Requirements)
        row, labels = node.row, node.labels
        keys = [term.topology_key for term in required.affinity]
        if not all(key in labels for key in keys):
            return unresolvable(NOT_NEAR)
        if not all(required.near.at(key, row) > 0 for key in keys) and not _may_be_first(required, pod):
            return unresolvable(NOT_NEAR)
        if any(required.away.at(term.topology_key, row) > 0 for term in required.anti_affinity):
            return unschedulable(TOO_NEAR)
        if any(required.unwelcome.at(key, row) > 0 for key in required.unwelcome.keys):
            return unschedulable(UNWELCOME)
        return SUCCESS

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        required = cycle.get(Requirements)
        verdict = Verdict(len(nodes))
        keys = {term.topology_key: None for term in required.affinity}
        if keys:
            lacking = _any(required.near.lacking(key, nodes.rows) for key in keys)
            if not _may_be_first(required, pod):
                lacking = _any([lacking, *(required.near.at_rows(key, nodes.rows) <= 0 for key in keys)])
            verdict.reject(lacking, NOT_NEAR, unresolvable=True)
        keys = {term.topology_key: None for term in required.anti_affinity}
        for reason, counts, asked in (
            (TOO_NEAR, required.away, tuple(keys)),
            (UNWELCOME, required.unwelcome, required.unwelcome.keys),
        ):
            if asked:
                occupied = _any(counts.at_rows(key, nodes.rows) > 0 for key in asked)
                verdict.reject(verdict.ok & occupied, reason)
        return verdict

    # ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────

    def pre_score(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        wishes = _has_preferences(pod)
        if self.args.ignore_preferred_terms_of_existing_pods and not wishes:
            return SKIP
        if pod.errors:
            return error(f"failed to parse pod: {_joined(pod.errors)}")
        gathering = Gathering()
        if wishes:
            self._own_wishes(gathering, pod, cycle)
        self._others_wishes(gathering, pod, cycle)
        if not gathering:
            return SKIP
        preferences = Preferences(gathering, cycle.table)
        cycle.put(preferences)
        return SUCCESS if preferences.domains.keys else SKIP

    def rescore(self, cycle: Cycle, pod: PodInfo, moved: bool) -> Rows | None:
        preferences = cycle.find(Preferences)
        return NO_ROWS if preferences is None else preferences.follow(cycle.table)

    def by_value(self, cycle: Cycle, pod: PodInfo) -> bool:
        return True

    def _own_wishes(self, gathering: Gathering, pod: PodInfo, cycle: Cycle) -> None:
        for sign, own in ((1, pod.preferred_affinity), (-1, pod.preferred_anti_affinity)):
            for term in _with_namespaces(own, cycle.objects):
                _gather(gathering, cycle.table, (term,), term.topology_key, sign * term.weight)

    def _others_wishes(self, gathering: Gathering, pod: PodInfo, cycle: Cycle) -> None:
        labels = cycle.objects.namespace_labels(pod.namespace) or _NO_LABELS
        hard = self.args.hard_pod_affinity_weight
        for held in cycle.table.neighbours.holders():
            other = held.example
            weighted = [
                *((term, hard) for term in other.required_affinity if hard > 0),
                *((term, term.weight) for term in other.preferred_affinity),
                *((term, -term.weight) for term in other.preferred_anti_affinity),
            ]
            for term, weight in weighted:
                if term.matches(pod.namespace, pod.labels, labels):
                    gathering.add(term.topology_key, held, weight)

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        domains = cycle.get(Preferences).domains
        return sum(domains.at(key, node.row) for key in domains.keys)

    def score_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Scores:
        domains = cycle.get(Preferences).domains
        scores: Scores = np.zeros(len(nodes), dtype=np.int64)
        for key in domains.keys:
            scores += domains.at_rows(key, nodes.rows)
        return scores

    def normalize_score(self, cycle: Cycle, pod: PodInfo, scores: Scores) -> Scores:
        if not len(scores):
            return scores
        least = int(scores.min())
        spread = int(scores.max()) - least
        if spread <= 0:
            return np.zeros_like(scores)
        # Go divides first and cuts off last, all in float64.
        stretched: Scores = (float(MAX_SCORE) * ((scores - least) / float(spread))).astype(np.int64)
        return stretched

    # ── hints and signature ──────────────────────────────────────────────────────────────────────────────────

    def events_to_register(self) -> Sequence[Hint]:
        return (
            Hint(POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE, self._after_pod),
            Hint(NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._after_node),
            Hint(resource_name(Namespace), Action.ADD | Action.UPDATE | Action.DELETE, self._after_namespace),
        )

    def _after_pod(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        if pod.errors or (isinstance(old, Pod) and isinstance(new, Pod) and new.uid == pod.uid):
            return QueueingHint.QUEUE
        was, now = (version if isinstance(version, Pod) else None for version in (old, new))
        return _queue_if(pod_helps(pod, was, now, self.tools))

    def _after_node(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        if pod.errors or not isinstance(new, Node):
            return _queue_if(bool(pod.errors))
        return _queue_if(node_helps(pod, old if isinstance(old, Node) else None, new, self.tools))

    def _after_namespace(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        namespace = old if new is None else new
        return _queue_if(namespace is not None and namespace_helps(pod, namespace))

    def context(self, cycle: Cycle) -> Hashable:
        return cycle.table.neighbours.shape, cycle.objects.changed(Namespace)

    def alike(self, cycle: Cycle, pod: PodInfo) -> Hashable | None:
        """Its own terms and whether it matches them itself; and who minds it, or likes it."""
        if pod.errors:
            return None
        own = pod.affinity_key if pod.has_affinity else b""
        meant = matches_all(_with_namespaces(pod.required_affinity, cycle.objects), pod.namespace, pod.labels)
        return own, meant, self._interested(cycle, pod), cycle.objects.changed(Namespace)

    def outlook(self, cycle: Cycle, pod: PodInfo) -> Hashable:
        """Who is interested; where pods are is followed pod by pod."""
        table = cycle.table
        concerned = pod.has_affinity or self._interested(cycle, pod)
        return (table.node_clock, table.neighbours.shape) if concerned else None

    def _interested(self, cycle: Cycle, pod: PodInfo) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
        """The holders of affinity of whose terms some mean the pod, and which."""
        key = (pod.fingerprint, self.context(cycle))
        found = self._interests.get(key)
        if found is None:
            if len(self._interests) >= _INTERESTS_KEPT:
                self._interests.clear()
            found = self._interests[key] = tuple(self._interest(cycle, pod))
        return found

    def _interest(self, cycle: Cycle, pod: PodInfo) -> Iterator[tuple[bytes, tuple[int, ...]]]:
        labels = cycle.objects.namespace_labels(pod.namespace) or _NO_LABELS
        for held in cycle.table.neighbours.holders():
            other = held.example
            terms = (
                *other.required_anti_affinity,
                *other.required_affinity,
                *other.preferred_affinity,
                *other.preferred_anti_affinity,
            )
            which = tuple(i for i, term in enumerate(terms) if term.matches(pod.namespace, pod.labels, labels))
            if which:
                yield other.affinity_key, which

    def sign_pod(self, pod: PodInfo) -> Signature | Status:
        if pod.has_affinity:
            return unschedulable("pods with InterPodAffinity are not signable")
        # kube-scheduler leaves the labels out where preferred terms are ignored; others' required anti-affinity
        # reads them all the same, and the namespace too.
        return (("v1.Pod.Labels", (pod.namespace, *sorted(pod.labels.items()))),)


# ── whom terms mean ──────────────────────────────────────────────────────────────────────────────────────────


def _with_namespaces(terms: Sequence[AffinityTerm], objects: Objects) -> tuple[AffinityTerm, ...]:
    """A pod's own terms, with the namespaces their selectors mean today written out.

    Kept from kube-scheduler: the selector stays beside the names and is later asked about no labels at all, so
    that one of NotIn and DoesNotExist alone means every namespace.
    """
    return tuple(_with_names(term, objects) for term in terms)


def _with_names(term: AffinityTerm, objects: Objects) -> AffinityTerm:
    selector = term.namespace_selector
    if selector.empty or selector.nothing:
        return term
    names = (one.name for one in objects.all(Namespace) if selector.matches(one.labels))
    return term._replace(namespaces=term.namespaces.union(names))


def _meant(table: NodeTable, terms: Sequence[AffinityTerm]) -> Iterator[PodClass]:
    """The groups of pods that all of a pod's own terms mean."""
    if not terms:
        return
    first = terms[0]
    if first.namespace_selector.matches(_NO_LABELS):
        groups: Iterable[PodClass] = table.neighbours.classes()
    else:
        groups = (group for name in sorted(first.namespaces) for group in table.neighbours.classes(name))
    for group in groups:
        if matches_all(terms, group.namespace, group.labels):
            yield group


def _gather(gathering: Gathering, table: NodeTable, terms: Sequence[AffinityTerm], key: str, weight: int = 1) -> None:
    """Count the pods that all these terms mean, those of groups that appear later included."""
    for group in _meant(table, terms):
        gathering.add(key, group, weight)
    gathering.want(key, weight, lambda group: matches_all(terms, group.namespace, group.labels))


def _near(table: NodeTable, terms: Sequence[AffinityTerm]) -> Gathering:
    gathering = Gathering()
    for term in terms:
        _gather(gathering, table, terms, term.topology_key)
    return gathering


def _away(table: NodeTable, terms: Sequence[AffinityTerm]) -> Gathering:
    gathering = Gathering()
    for term in terms:
        _gather(gathering, table, (term,), term.topology_key)
    return gathering


def _minding(table: NodeTable, pod: PodInfo, namespace_labels: Mapping[str, str]) -> Gathering:
    """Who is there and does not want the pod near."""
    gathering = Gathering()
    for held in table.neighbours.holders():
        for term in held.example.required_anti_affinity:
            if term.matches(pod.namespace, pod.labels, namespace_labels):
                gathering.add(term.topology_key, held)
    return gathering


def _may_be_first(required: Requirements, pod: PodInfo) -> bool:
    """Whether nobody matches the pod's affinity anywhere and it would match it itself: someone has to begin."""
    return not required.near and matches_all(required.affinity, pod.namespace, pod.labels)


def _has_preferences(pod: PodInfo) -> bool:
    affinity = pod.pod.spec.affinity
    if affinity is None:
        return False
    return any(one is not None and one.preferred for one in (affinity.pod_affinity, affinity.pod_anti_affinity))


def _any(masks: Iterable[Mask]) -> Mask:
    first, *rest = masks
    for mask in rest:
        first = first | mask
    return first


def _queue_if(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def _joined(errors: Sequence[str]) -> str:
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
