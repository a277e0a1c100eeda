"""How full a node would be: what NodeResourcesFit and NodeResourcesBalancedAllocation score by.

Both look at a list of resources, and of each only at two numbers per node: its capacity, and what would be
requested of it with the pod there.  A resource the node does not have counts for nothing, and neither does one
of the extended resources (a device, huge pages) that the pod does not ask for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import force_setattr

from kubesched.api.quantity import is_scalar_resource
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import CPU, EPHEMERAL_STORAGE, MEMORY, UNSAID, PodInfo, Requests
from kubesched.cluster.types import Amounts


class ResourceSpec(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A resource to score by, and how much it counts; 0 is taken for 1."""

    name: str = ""
    weight: int = 1

    def __post_init__(self) -> None:
        if self.weight == 0:
            force_setattr(self, "weight", 1)


DEFAULT_RESOURCES = (ResourceSpec(name=CPU), ResourceSpec(name=MEMORY))


# ── what a pod asks, and of which resources that counts ──────────────────────────────────────────────────────


def scoring_requests(pod: PodInfo) -> Requests:
    """What a pod is taken to use for NodeResourcesFit's score.

    Kept from kube-scheduler: containers that do not say count with a guess, and `spec.resources` does not count.
    """
    return pod.guessed_requests


def signed_requests(pod: PodInfo) -> tuple[str, Any]:
    """What pods must have in common to need and be scored the same."""
    requests = tuple(tuple(sorted(amounts.items())) for amounts in (pod.requests, scoring_requests(pod)))
    return "v1.Pod.Spec.ContainerRequestsAndOverheads()", requests


class Demand(Struct, frozen=True):
    """One resource of those scored by, and how much of it the pod asks for."""

    resource: str
    amount: int
    weight: int


def demands(resources: Sequence[ResourceSpec], requests: Mapping[str, int]) -> tuple[Demand, ...]:
    """What is worth looking at: resources nobody counts, and devices the pod does not want, are left out."""
    wanted = ((spec, requests.get(spec.name, 0)) for spec in resources)
    return tuple(Demand(spec.name, amount, spec.weight) for spec, amount in wanted if _counts(spec.name, amount))


def _counts(resource: str, amount: int) -> bool:
    return resource in (CPU, MEMORY, EPHEMERAL_STORAGE) or (amount != 0 and is_scalar_resource(resource))


# ── how full a node would be ─────────────────────────────────────────────────────────────────────────────────


class Load(NamedTuple):
    """What would be requested of a resource, what there is of it, and how much that counts."""

    requested: int
    capacity: int
    weight: int


class LoadAll(NamedTuple):
    """As Load, with a row per node."""

    requested: Amounts
    capacity: Amounts
    weight: int


def load(node: NodeInfo, demand: Demand, guessed: bool) -> Load:
    """How full the pod would make a node.

    Args:
        guessed: containers on the node that do not name cpu or memory count with a guess.
    """
    resource = demand.resource
    taken, capacity = node.room(resource, guessed=guessed and resource in UNSAID)
    return Load(taken + demand.amount, capacity, demand.weight)


def load_all(nodes: Nodes, demand: Demand, guessed: bool) -> LoadAll:
    """As `load`, for every node."""
    guess = guessed and demand.resource in UNSAID
    taken = nodes.taken(demand.resource, guessed=guess)
    return LoadAll(taken + demand.amount, nodes.capacity(demand.resource), demand.weight)
