"""NodeAffinity: which nodes a pod may go to, and which it would rather."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct

from kubesched.api.labels import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, aggregate
from kubesched.api.objects import KubeObject, Node, NodeSelector, PreferredSchedulingTerm
from kubesched.api.objects import NodeAffinity as Affinity
from kubesched.api.selectors import NodeMatcher, NodeTerm, Requirement, compile_node_selector, compile_node_term
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Mask, Scores
from kubesched.cluster.vocab import ABSENT
from kubesched.framework.cycle import Cycle
from kubesched.framework.errors import ConfigError
from kubesched.framework.events import NODE, Action, Hint, QueueingHint
from kubesched.framework.hooks import NodeSubset, Signature
from kubesched.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from kubesched.framework.tools import Tools
from kubesched.framework.vector import Verdict
from kubesched.plugins.normalize import default_normalize

REASON = "node(s) didn't match Pod's node affinity/selector"
ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
CONFLICT = "pod affinity terms conflict"
_MISMATCH, _NOT_ALLOWED, _CONFLICT = unresolvable(REASON), unresolvable(ENFORCED), unresolvable(CONFLICT)

_NAME = "metadata.name"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NodeAffinityArgs(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of NodeAffinity.

    Args:
        added_affinity: node affinity that every pod of the profile gets on top of its own.
    """

    added_affinity: Affinity | None = None


def validate_node_affinity(args: NodeAffinityArgs) -> Iterator[tuple[str, str]]:
    """What is wrong with the arguments, as (path, message)."""
    added = args.added_affinity
    if added is None:
        return
    problems: list[str] = []
    if added.required is not None:
        problems += compile_node_selector(added.required, f"addedAffinity.{_REQUIRED}").errors
    problems += _preferred(added.preferred or (), f"addedAffinity.{_PREFERRED}").errors
    for problem in problems:
        path, _, message = problem.partition(": ")
        yield path, message


class _Preferred(NamedTuple):
    """Preferred terms, compiled; what is wrong with those that could not be."""

    terms: tuple[tuple[NodeTerm, int], ...] = ()
    errors: tuple[str, ...] = ()


class _Preferences(Struct, frozen=True):
    """The preferred terms a pod is scored by, the profile's and its own."""

    terms: tuple[tuple[NodeTerm, int], ...]


class NodeAffinity:
    """Keep a pod to the nodes its nodeSelector and node affinity allow, and near those it prefers.

    What it does:  rejects nodes that the profile's added affinity, the pod's nodeSelector or its required node
                   affinity do not match; scores a node with the weights of the preferred terms that match.
                   A pod whose every term names its nodes is not even shown to others.
    Answers:       UnschedulableAndUnresolvable — evicting pods changes no label.
    Wakes on:      Node added or its labels changed, if the node matches now and did not before.
    Tiers:         filter, filter_all, score, score_all.
    Same as:       kube-scheduler NodeAffinity, v1.36.
    """

    name = "NodeAffinity"
    board: Literal["node", "row"] = "node"

    def __init__(self, args: NodeAffinityArgs | None = None, tools: Tools | None = None) -> None:
        self.tools = tools
        self.args = args or NodeAffinityArgs()
        added = self.args.added_affinity or Affinity()
        self._added = _compiled(added.required) if added.required is not None else None
        preferred = _preferred(added.preferred or ())
        if preferred.errors:
            raise ConfigError("", f"parsing addedAffinity.{_PREFERRED}: {aggregate(preferred.errors)}")
        self._added_preferred = preferred.terms if added.preferred else None

    # ── filter ───────────────────────────────────────────────────────────────────────────────────────────────

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> NodeSubset | Status:
        affinity = pod.pod.spec.affinity
        required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
        if required is None:
            # Kept from kube-scheduler: an empty nodeSelector is one, a missing one is not.
            return SKIP if self._added is None and pod.pod.spec.node_selector is None else SUCCESS
        names = _named_nodes(required)
        if names is None:
            return SUCCESS
        return NodeSubset(names) if names else _CONFLICT

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        if self._added is not None and not self._added.matches(node.labels, node.name):
            return _NOT_ALLOWED
        return SUCCESS if pod.wants_node(node.labels, node.name) else _MISMATCH

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        if self._added is not None:
            verdict.reject(~match_nodes(self._added, nodes), ENFORCED, unresolvable=True)
        verdict.reject(verdict.ok & ~wanted_nodes(pod, nodes), REASON, unresolvable=True)
        return verdict

    # ── score ────────────────────────────────────────────────────────────────────────────────────────────────

    def pre_score(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        preferred = _pods_preferred(pod)
        if preferred is None and self._added_preferred is None:
            return SKIP
        if preferred is not None and preferred.errors:
            return error(aggregate(preferred.errors))
        cycle.put(self._preferences(pod))
        return SUCCESS

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        preferences = cycle.find(_Preferences) or self._preferences(pod)
        return sum(weight for term, weight in preferences.terms if term.matches(node.labels, node.name))

    def score_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Scores:
        preferences = cycle.find(_Preferences) or self._preferences(pod)
        scores: Scores = np.zeros(len(nodes), dtype=np.int64)
        for term, weight in preferences.terms:
            scores[match_term(term, nodes)] += weight
        return scores

    def normalize_score(self, cycle: Cycle, pod: PodInfo, scores: Scores) -> Scores:
        return default_normalize(scores)

    def by_value(self, cycle: Cycle, pod: PodInfo) -> bool:
        return True

    def _preferences(self, pod: PodInfo) -> _Preferences:
        own = _pods_preferred(pod)
        return _Preferences((self._added_preferred or ()) + (() if own is None else own.terms))

    # ── hints ────────────────────────────────────────────────────────────────────────────────────────────────

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._after_node_change),)

    def _after_node_change(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        if not isinstance(new, Node) or not self._allows(new):
            return QueueingHint.SKIP
        if not pod.wants_node(new.labels, new.name):
            # A term that cannot be read might have meant this node; trying the pod will say what is wrong.
            broken = pod.node_matcher is not None and pod.node_matcher.errors
            return QueueingHint.QUEUE if broken else QueueingHint.SKIP
        # kube-scheduler compares the pod's own wish alone, and sleeps when it is the profile's that came true.
        matched_before = isinstance(old, Node) and self._allows(old) and pod.wants_node(old.labels, old.name)
        return QueueingHint.SKIP if matched_before else QueueingHint.QUEUE

    def _allows(self, node: Node) -> bool:
        return self._added is None or self._added.matches(node.labels, node.name)

    def sign_pod(self, pod: PodInfo) -> Signature:
        affinity, selector = pod.pod.spec.affinity, pod.pod.spec.node_selector
        return (
            ("v1.Pod.Spec.Affinity.NodeAffinity", affinity.node_affinity if affinity else None),
            ("v1.Pod.Spec.Affinity.NodeSelector", None if selector is None else tuple(sorted(selector.items()))),
        )


# ── the same matching, for all nodes at once ─────────────────────────────────────────────────────────────────


def wanted_nodes(pod: PodInfo, nodes: Nodes) -> Mask:
    """Which nodes the pod's nodeSelector and required node affinity allow: `wants_node` for every row."""
    wanted: Mask = np.ones(len(nodes), dtype=np.bool_)
    for key, value in (pod.pod.spec.node_selector or {}).items():
        wanted &= _has_value(key, value, nodes)
    if pod.node_matcher is not None:
        wanted &= match_nodes(pod.node_matcher, nodes)
    return wanted


def match_nodes(matcher: NodeMatcher, nodes: Nodes) -> Mask:
    """Which nodes one of the terms matches."""
    matched: Mask = np.zeros(len(nodes), dtype=np.bool_)
    for term in matcher.terms:
        matched |= match_term(term, nodes)
    return matched


def match_term(term: NodeTerm, nodes: Nodes) -> Mask:
    """Which nodes a term matches."""
    matched: Mask = np.full(len(nodes), not (term.empty or term.errors))
    if matched.any():
        for requirement in term.requirements:
            matched &= _match_labels(requirement, nodes)
        for field in term.fields:
            matched &= _match_field(field, nodes)
    return matched


def _match_labels(requirement: Requirement, nodes: Nodes) -> Mask:
    """A label may have as many values as there are nodes: values asked for are looked up, not compared."""
    key, operator = requirement.key, requirement.operator
    if operator in (EXISTS, DOES_NOT_EXIST):
        present: Mask = nodes.label(key) != ABSENT
        return present if operator == EXISTS else ~present
    if operator in (IN, NOT_IN):
        found: Mask = np.zeros(len(nodes), dtype=np.bool_)
        for value in requirement.values:
            found |= _has_value(key, value, nodes)
        return found if operator == IN else ~found
    return nodes.by_label(key, lambda value: requirement.matches({key: value}))


def _has_value(key: str, value: str, nodes: Nodes) -> Mask:
    codes = nodes.label(key)
    code = nodes.table.label(key).vocab.find(value)
    same: Mask = codes == code if code != ABSENT else np.zeros(len(nodes), dtype=np.bool_)
    return same


def _match_field(field: Requirement, nodes: Nodes) -> Mask:
    """The name is the only field a node has; any other is empty."""
    value = field.values[0]
    if field.key == _NAME:
        same: Mask = nodes.rows == nodes.table.row_of.get(value, ABSENT)
    else:
        same = np.full(len(nodes), value == "")
    return same if field.operator == IN else ~same


# ── terms ────────────────────────────────────────────────────────────────────────────────────────────────────


def _named_nodes(required: NodeSelector) -> frozenset[str] | None:
    """The only nodes the terms can mean, by name; None where some term leaves it open."""
    if not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        lists = [field.values for field in term.match_fields if field.key == _NAME and field.operator == IN]
        if not lists:
            return None
        names |= set(lists[0]).intersection(*lists[1:])
    return frozenset(names)


def _pods_preferred(pod: PodInfo) -> _Preferred | None:
    affinity = pod.pod.spec.affinity
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.preferred is None:
        return None
    return _preferred(affinity.node_affinity.preferred)


def _preferred(preferred: Sequence[PreferredSchedulingTerm], path: str = "") -> _Preferred:
    """Compile preferred terms; those without weight or conditions count nothing and are not looked at."""
    terms: list[tuple[NodeTerm, int]] = []
    errors: list[str] = []
    for at, one in enumerate(preferred):
        term = compile_node_term(one.preference, f"{path}[{at}]") if one.weight else NodeTerm()
        if term.errors:
            errors += term.errors
        elif not term.empty:
            terms.append((term, one.weight))
    return _Preferred(tuple(terms), tuple(errors))


def _compiled(selector: NodeSelector) -> NodeMatcher:
    matcher = compile_node_selector(selector)
    if matcher.errors:
        raise ConfigError("", f"parsing addedAffinity.{_REQUIRED}: {aggregate(matcher.errors)}")
    return matcher
