"""A few nodes with pods on them, and every question asked of a plugin in both tiers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kubesched.api.objects import KubeObject, Node, Pod, read
from kubesched.api.time import Instant
from kubesched.cluster.columns import Nodes
from kubesched.cluster.mirror import Mirror
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import ClusterEvent, QueueingHint
from kubesched.framework.status import SKIP, SUCCESS, Status

Data = Mapping[str, Any]


# ── builders: Kubernetes' own words, with the dull parts filled in ───────────────────────────────────────────


def node(
    name: str = "n1",
    *,
    allocatable: Data | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Data] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    features: Sequence[str] = (),
    uid: str = "",
) -> Node:
    """A node with room for a hundred pods, unless it says otherwise."""
    status = {
        "allocatable": {"pods": 100, **(allocatable or {})},
        "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
        "declaredFeatures": list(features),
    }
    metadata = {"name": name, "uid": uid or f"uid-of-{name}", "labels": dict(labels or {})}
    return read(
        {"metadata": metadata, "spec": {"unschedulable": unschedulable, "taints": taints}, "status": status}, Node
    )


def pod(
    name: str = "p",
    *,
    requests: Data | None = None,
    on: str = "",
    uid: str = "",
    status: Data | None = None,
    **spec: Any,
) -> Pod:
    """A pod of one container; spec fields in Kubernetes' spelling."""
    spec.setdefault("containers", [container(requests)])
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-of-{name}"}
    return read({"metadata": metadata, "spec": {**spec, "nodeName": on}, "status": dict(status or {})}, Pod)


def container(requests: Data | None = None, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": dict(requests or {})}, **fields}


def port(number: int, ip: str = "", protocol: str = "TCP") -> dict[str, Any]:
    return {"containerPort": 80, "hostPort": number, "hostIP": ip, "protocol": protocol}


def ports(*wanted: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """The containers of a pod with these ports."""
    return [container(ports=list(wanted), **fields)]


# ── a cluster ────────────────────────────────────────────────────────────────────────────────────────────────


class Cluster:
    """A mirror of some objects; one pod's attempt at a time."""

    def __init__(self, *objects: KubeObject) -> None:
        self.mirror = Mirror()
        for obj in objects:
            self.mirror.observe(obj)

    @property
    def nodes(self) -> Nodes:
        return Nodes(self.mirror.table, self.mirror.table.rows)

    def cycle(self, pod: Pod) -> Cycle:
        return Cycle(PodInfo(pod), self.nodes, self.mirror.objects, now=Instant(0), luck=NoLuck())

    def filter(self, plugin: Any, pod: Pod, nodes: Nodes | None = None) -> dict[str, Status]:
        """The answer per node: pre_filter's where it turned the pod down or skips, else the filter's."""
        cycle = self.cycle(pod)
        chosen = self.nodes if nodes is None else nodes
        if hasattr(plugin, "pre_filter"):
            before = plugin.pre_filter(cycle, cycle.pod, cycle.nodes)
            if before is SKIP:
                return dict.fromkeys(chosen.names, SUCCESS)
            if isinstance(before, Status) and not before.ok:
                return dict.fromkeys(chosen.names, before)
        return answers(plugin, cycle, chosen)

    def rejects(self, plugin: Any, pod: Pod) -> dict[str, str]:
        """The nodes turned down, each with the reasons."""
        return {name: status.message for name, status in self.filter(plugin, pod).items() if not status.ok}

    def scores(self, plugin: Any, pod: Pod, *, raw: bool = False) -> dict[str, int]:
        """Scores per node, normalised where the plugin does that; nothing where it skips."""
        cycle = self.cycle(pod)
        if hasattr(plugin, "pre_score"):
            before = plugin.pre_score(cycle, cycle.pod, self.nodes)
            if before is SKIP:
                return {}
            assert before.ok, before
        found = raw_scores(plugin, cycle, self.nodes)
        if hasattr(plugin, "normalize_score") and not raw:
            found = plugin.normalize_score(cycle, cycle.pod, found)
        return dict(zip(self.nodes.names, found.tolist(), strict=True))


class NoLuck:
    def below(self, count: int, purpose: str = "") -> int:
        raise AssertionError("these plugins have no use for luck")


def answers(plugin: Any, cycle: Cycle, nodes: Nodes) -> dict[str, Status]:
    """What a filter says of every node, both tiers having said the same."""
    verdict = plugin.filter_all(cycle, cycle.pod, nodes)
    together = {name: verdict.status(i) for i, name in enumerate(nodes.names)}
    one_by_one = {info.name: plugin.filter(cycle, cycle.pod, info) for info in nodes}
    assert together == one_by_one
    return one_by_one


def raw_scores(plugin: Any, cycle: Cycle, nodes: Nodes) -> Any:
    together = plugin.score_all(cycle, cycle.pod, nodes)
    assert together.dtype == np.int64
    assert together.tolist() == [plugin.score(cycle, cycle.pod, info) for info in nodes]
    return together


# ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────


def wakes(plugin: Any, event: ClusterEvent, pod: Pod, old: KubeObject | None, new: KubeObject | None) -> bool:
    """Whether the plugin would have the pod tried again after this event."""
    info = PodInfo(pod)
    looks = [hint.look for hint in plugin.events_to_register() if hint.matches(event)]
    return any(look is None or look(info, old, new) is QueueingHint.QUEUE for look in looks)


def wakes_on_any(
    plugin: Any, events: Iterable[ClusterEvent], pod: Pod, old: KubeObject | None, new: KubeObject | None
) -> bool:
    return any(wakes(plugin, event, pod, old, new) for event in events)
