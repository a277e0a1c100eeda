"""Small clusters with too many pods in them, and one pod that wants in."""

from collections.abc import Mapping, Sequence
from typing import Any

from kubesched.api.objects import KubeObject, Node, Pod, PodDisruptionBudget, read
from kubesched.api.time import parse_rfc3339
from kubesched.cluster.columns import Nodes
from kubesched.cluster.mirror import Mirror
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.schedule import schedule
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision
from kubesched.framework.profile import Profile
from kubesched.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.plugins.node_resources_fit import NodeResourcesFit
from kubesched.plugins.node_unschedulable import NodeUnschedulable
from kubesched.plugins.preemption import DefaultPreemption, DefaultPreemptionArgs
from kubesched.plugins.volume_restrictions import VolumeRestrictions

NOW = parse_rfc3339("2026-01-02T00:00:00Z")


def node(name: str = "n1", cpu: int | str = 4, *, cordoned: bool = False) -> Node:
    raw: dict[str, Any] = {
        "metadata": {"name": name, "uid": f"uid-of-{name}", "labels": {"kubernetes.io/hostname": name}},
        "spec": {"unschedulable": cordoned},
        "status": {"allocatable": {"cpu": cpu, "pods": 100}},
    }
    return read(raw, Node)


def pod(
    name: str,
    priority: int = 0,
    cpu: int | str = 1,
    *,
    on: str = "",
    started: str = "",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    leaving: str = "",
    nominated: str = "",
    **spec: Any,
) -> Pod:
    """A pod; `started` is an hour of the first of January, `leaving` the reason it was told to go for."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-of-{name}",
        "labels": dict(labels or {}),
        "deletionTimestamp": "2026-01-01T23:00:00Z" if leaving else None,
    }
    written = {
        "priority": priority,
        "nodeName": on,
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
        **spec,
    }
    target = {"type": "DisruptionTarget", "status": "True", "reason": leaving}
    status = {
        "startTime": f"2026-01-01T{started}:00Z" if started else None,
        "nominatedNodeName": nominated,
        "conditions": [target] if leaving else [],
    }
    return read({"metadata": metadata, "spec": written, "status": status}, Pod)


def budget(name: str, allowed: int, labels: Mapping[str, str] | None = None, **more: Any) -> PodDisruptionBudget:
    """A budget for pods with these labels; `disrupted` names those that are on their way out already."""
    selector = more.get("selector", {"matchLabels": dict(labels or {})})
    disrupted = dict.fromkeys(more.get("disrupted", ()), "2026-01-01T00:00:00Z")
    raw = {
        "metadata": {"name": name, "namespace": more.get("namespace", "default")},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": allowed, "disruptedPods": disrupted},
    }
    return read(raw, PodDisruptionBudget)


class Offset:
    """Luck that always draws the same number."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def below(self, count: int, purpose: str = "") -> int:
        return self.number % count


class Crowd:
    """Nodes and pods, and whatever else there is."""

    def __init__(self, *objects: KubeObject) -> None:
        self.mirror = Mirror()
        for obj in objects:
            self.mirror.observe(obj)

    def cycle(self, wanted: Pod, *, offset: int = 0, nominated: Mapping[str, list[Pod]] | None = None) -> Cycle:
        table = self.mirror.table
        promised = {name: [PodInfo(one) for one in pods] for name, pods in (nominated or {}).items()}
        luck = Offset(offset)
        return Cycle(
            PodInfo(wanted), Nodes(table, table.rows), self.mirror.objects, now=NOW, luck=luck, nominated=promised
        )

    def decide(
        self, wanted: Pod, args: DefaultPreemptionArgs | None = None, besides: Sequence[object] = (), **more: Any
    ) -> Decision:
        """What becomes of a pod, `besides` being plugins that have a say as well."""
        return schedule(self.cycle(wanted, **more), profile(args, besides))


def profile(args: DefaultPreemptionArgs | None = None, besides: Sequence[object] = ()) -> Profile:
    plugins = NodeUnschedulable(), NodeResourcesFit(), VolumeRestrictions(), InterPodAffinity()
    return Profile(*plugins, *besides, DefaultPreemption(args), tie="name")


def outcome(decision: Decision) -> tuple[str, list[str]]:
    """The node nominated and the victims, in their order."""
    assert decision.post_filter is not None, decision
    return decision.post_filter.node or "", [victim.name for victim in decision.post_filter.victims]


def said(decision: Decision) -> str:
    assert decision.post_filter is not None, decision
    return decision.post_filter.status.message
