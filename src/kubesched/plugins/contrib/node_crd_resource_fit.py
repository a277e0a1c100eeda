"""NodeCRDResourceFit: what a node gives is said by a custom resource of the same name."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kubesched.api.kinds import Column, CustomResource
from kubesched.api.objects import KubeObject
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, Action, Hint, QueueingHint, resource_name
from kubesched.framework.profile import MAX_SCORE
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.framework.tools import Tools


class ClusterScopedResourceSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which resources a node gives, and how much each is worth."""

    resources_filter: dict[str, bool] = {}
    resources_score: dict[str, int] = {}


class ClusterScopedResource(CustomResource, frozen=True):
    """What the node of the same name offers."""

    group = "scheduling.sigs.k8s.io"
    version = "v1alpha1"
    scope = "Cluster"
    columns = (Column("Age", ".metadata.creationTimestamp"),)

    spec: ClusterScopedResourceSpec = ClusterScopedResourceSpec()


class NodeCRDResourceFit:
    """Let pods use of a node what its ClusterScopedResource enables, and prefer nodes by its scores.

    What it does:  filter looks for the ClusterScopedResource named like the node and rejects the node where there is
                   none, or where it does not enable a resource the pod requests; score is the mean of its
                   resourcesScore over the resources the pod requests, rounded up and 100 at most.
    Answers:       UnschedulableAndUnresolvable, `CRD for node not found` or `Node does not enable resource <name>`.
                   A resource without a score, or with a negative one, counts 0; so does a pod that requests nothing.
    Wakes on:      Node added; ClusterScopedResource added or changed so that it enables what the pod requests.
    Tiers:         filter, score.
    """

    name = "NodeCRDResourceFit"
    reads = (ClusterScopedResource,)

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        offer = cycle.objects.get(ClusterScopedResource, node.name)
        if offer is None:
            self.tools.note("CRD for node not found", node=node.name, pod=pod.key)
            return unresolvable("CRD for node not found")
        missing = _missing(pod, offer)
        return unresolvable(*(f"Node does not enable resource {name}" for name in missing)) if missing else SUCCESS

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        offer = cycle.objects.get(ClusterScopedResource, node.name)
        wanted = _wanted(pod)
        if offer is None or not wanted:
            return 0
        total = sum(max(0, offer.spec.resources_score.get(name, 0)) for name in wanted)
        return min(MAX_SCORE, -(-total // len(wanted)))

    def events_to_register(self) -> Sequence[Hint]:
        offered = Action.ADD | Action.UPDATE
        return Hint(NODE, Action.ADD), Hint(resource_name(ClusterScopedResource), offered, self._after_offer)

    def _after_offer(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        fits = isinstance(new, ClusterScopedResource) and not _missing(pod, new)
        fitted = isinstance(old, ClusterScopedResource) and not _missing(pod, old)
        return QueueingHint.QUEUE if fits and not fitted else QueueingHint.SKIP


def _wanted(pod: PodInfo) -> list[str]:
    """The resources a pod requests, by name."""
    return sorted(name for name, amount in pod.requests.items() if amount > 0)


def _missing(pod: PodInfo, offer: ClusterScopedResource) -> list[str]:
    """What a pod requests and a node does not enable."""
    return [name for name in _wanted(pod) if not offer.spec.resources_filter.get(name, False)]
