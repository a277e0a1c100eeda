"""What a pod's topology spread constraints say: parsed, completed with defaults, and which nodes they count.

A constraint comes from the pod, or, for a pod without any, from the plugin's defaults; those have no selector of
their own and take the one of the Services and of the controller that the pod belongs to.  Either way the result
is a Constraint, and Spreading — filtering and scoring alike — works on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from kubesched.api.labels import IN
from kubesched.api.objects import (
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
    TopologySpreadConstraint,
)
from kubesched.api.selectors import (
    Requirement,
    Selector,
    SelectorError,
    compile_label_selector,
    selector_from_map,
    untolerated,
)
from kubesched.cluster.columns import Nodes
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Mask
from kubesched.plugins.node_affinity import wanted_nodes

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=SOFT, max_skew=5),
)


class Constraint(Struct, frozen=True):
    """One constraint, ready to ask."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int = 1
    honor_affinity: bool = True  # count only nodes the pod's node selector and required affinity allow
    honor_taints: bool = False  # count only nodes whose taints it tolerates


def compile_constraints(
    constraints: Iterable[TopologySpreadConstraint], labels: Mapping[str, str], action: str, *, label_keys: bool = True
) -> tuple[Constraint, ...]:
    """The constraints with one `whenUnsatisfiable`, for a pod with these labels.  Raises SelectorError.

    Args:
        label_keys: whether matchLabelKeys count (feature gate MatchLabelKeysInPodTopologySpread).
    """
    return tuple(
        _compile(one, labels, one.match_label_keys if label_keys else ())
        for one in constraints
        if one.when_unsatisfiable == action
    )


def _compile(one: TopologySpreadConstraint, labels: Mapping[str, str], keys: Iterable[str]) -> Constraint:
    same = (Requirement(key, IN, (labels[key],), "=") for key in sorted(set(keys)) if key in labels)
    return Constraint(
        one.max_skew,
        one.topology_key,
        compile_label_selector(one.label_selector).with_requirements(*same),
        1 if one.min_domains is None else one.min_domains,
        one.node_affinity_policy in (None, "Honor"),
        one.node_taints_policy == "Honor",
    )


# ── the selector of a pod that has no constraints of its own ─────────────────────────────────────────────────


def deduced_selector(pod: PodInfo, objects: Objects) -> Selector:
    """What all pods have in common that the same Services and the same controller mean; empty where nobody does."""
    labels: dict[str, str] = {}
    for service in objects.in_namespace(Service, pod.namespace):
        wanted = service.spec.selector
        if wanted is not None and all(pod.labels.get(key) == value for key, value in wanted.items()):
            labels |= wanted
    owner = pod.pod.controller
    if owner is None:
        return selector_from_map(labels)
    key = f"{pod.namespace}/{owner.name}"
    match owner.api_version, owner.kind:
        case "v1", "ReplicationController":
            controller = objects.get(ReplicationController, key)
            if controller is not None:
                labels |= controller.spec.selector or {}
        case "apps/v1", "ReplicaSet":
            return selector_from_map(labels).with_requirements(*_requirements(objects.get(ReplicaSet, key)))
        case "apps/v1", "StatefulSet":
            return selector_from_map(labels).with_requirements(*_requirements(objects.get(StatefulSet, key)))
    return selector_from_map(labels)


def _requirements(owner: ReplicaSet | StatefulSet | None) -> tuple[Requirement, ...]:
    if owner is None:
        return ()
    try:
        return compile_label_selector(owner.spec.selector).requirements
    except SelectorError:
        return ()  # a controller that selects nothing sensible adds nothing


def with_selector(constraints: Sequence[Constraint], selector: Selector) -> tuple[Constraint, ...]:
    """Default constraints for the pods a selector means; an empty one means that nobody is there to spread."""
    if selector.empty:
        return ()
    return tuple(
        Constraint(one.max_skew, one.topology_key, selector, one.min_domains, one.honor_affinity, one.honor_taints)
        for one in constraints
    )


# ── which nodes count ────────────────────────────────────────────────────────────────────────────────────────


def has_all_keys(labels: Mapping[str, str], constraints: Iterable[Constraint]) -> bool:
    """Whether a node is in some domain of every constraint."""
    return all(one.topology_key in labels for one in constraints)


def with_all_keys(nodes: Nodes, constraints: Iterable[Constraint]) -> Mask:
    """Which nodes are in some domain of every constraint."""
    mask = np.ones(len(nodes), dtype=np.bool_)
    for key in {one.topology_key: None for one in constraints}:
        mask &= nodes.label(key) >= 0
    return mask


class Inclusion:
    """Which nodes a pod's constraints count, by their two policies; each is worked out once for all constraints."""

    def __init__(self, pod: PodInfo, nodes: Nodes, whole: Mask, *, comparisons: bool = False) -> None:
        """`whole` are the nodes that may count at all."""
        self._pod, self._nodes, self._whole, self._comparisons = pod, nodes, whole, comparisons
        self._known: dict[tuple[bool, bool], Nodes] = {}

    def of(self, constraint: Constraint) -> Nodes:
        """The nodes one constraint counts."""
        policies = (constraint.honor_affinity, constraint.honor_taints)
        nodes = self._known.get(policies)
        if nodes is None:
            mask = self._whole.copy()
            if constraint.honor_affinity:
                mask &= wanted_nodes(self._pod, self._nodes)
            if constraint.honor_taints:
                mask &= self._tolerated()
            nodes = self._known[policies] = self._nodes.where(mask)
        return nodes

    def _tolerated(self) -> Mask:
        tolerations, comparisons = self._pod.pod.spec.tolerations, self._comparisons
        refused: Mask = self._nodes.by_taints(
            lambda taints: untolerated(taints, tolerations, comparisons=comparisons) is not None
        ).astype(np.bool_)
        return ~refused
