"""A small cluster for plugins that look at who sits where; every answer is asked of both tiers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kubesched.api.objects import KubeObject, Namespace, Node, Pod, read
from kubesched.api.time import Instant
from kubesched.cluster.columns import Nodes
from kubesched.cluster.mirror import Mirror
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Hint, QueueingHint
from kubesched.framework.status import Code, Status

Labels = Mapping[str, str]


def node(name: str, *, taints: Any = (), uid: str = "", **labels: str) -> Node:
    """A node with labels; `zone="a", node="n1"`."""
    metadata = {"name": name, "uid": uid or f"node-{name}", "labels": labels}
    return read({"metadata": metadata, "spec": {"taints": list(taints)}}, Node)


def pod(
    name: str,
    labels: Labels | None = None,
    *,
    on: str = "",
    namespace: str = "default",
    dying: bool = False,
    **spec: Any,
) -> Pod:
    """A pod with labels, placed where `on` says; the rest is its spec."""
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "labels": dict(labels or {})}
    if dying:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return read({"metadata": metadata, "spec": {**spec, **({"nodeName": on} if on else {})}}, Pod)


def namespace(name: str, **labels: str) -> Namespace:
    return read({"metadata": {"name": name, "uid": f"ns-{name}", "labels": labels}}, Namespace)


class World:
    """A mirror of some objects, and one pod's attempt at a time."""

    def __init__(self, *objects: KubeObject) -> None:
        self.mirror = Mirror()
        for obj in objects:
            self.mirror.observe(obj)

    @property
    def nodes(self) -> Nodes:
        table = self.mirror.table
        return Nodes(table, table.rows)

    def named(self, name: str) -> NodeInfo:
        found = self.nodes.named(name)
        assert found is not None
        return found

    def select(self, *names: str) -> Nodes:
        rows = [row for row in self.nodes.rows.tolist() if self.mirror.table.names[row] in names]
        return Nodes(self.mirror.table, np.array(rows, dtype=np.int32))

    def cycle(self, pod: Pod) -> Cycle:
        return Cycle(PodInfo(pod), self.nodes, self.mirror.objects, now=Instant(0), luck=NoLuck())

    def filter(self, plugin: Any, pod: Pod) -> dict[str, Status] | Status:
        """The answer per node, or pre_filter's where it is the last word."""
        cycle = self.cycle(pod)
        before = plugin.pre_filter(cycle, cycle.pod, self.nodes)
        return answers(plugin, cycle) if before.ok else before

    def rejected(self, plugin: Any, pod: Pod) -> dict[str, Code]:
        """The nodes that are turned down; none where the plugin has nothing to say."""
        found = self.filter(plugin, pod)
        if isinstance(found, Status):
            assert found.code is Code.SKIP, found
            return {}
        return {name: status.code for name, status in found.items() if not status.ok}

    def scores(self, plugin: Any, pod: Pod, *feasible: str) -> dict[str, int] | Status:
        """Normalised scores per feasible node (all, where none is named), or pre_score's last word."""
        cycle = self.cycle(pod)
        nodes = self.select(*feasible) if feasible else self.nodes
        before = plugin.pre_score(cycle, cycle.pod, nodes)
        if not before.ok:
            assert isinstance(before, Status)
            return before
        raw = raw_scores(plugin, cycle, nodes)
        return dict(zip(nodes.names, plugin.normalize_score(cycle, cycle.pod, raw).tolist(), strict=True))


class NoLuck:
    def below(self, count: int, purpose: str = "") -> int:
        raise AssertionError("these plugins have no use for luck")


def answers(plugin: Any, cycle: Cycle) -> dict[str, Status]:
    """What a filter says of every node, both tiers having said the same."""
    verdict = plugin.filter_all(cycle, cycle.pod, cycle.nodes)
    together = {name: verdict.status(i) for i, name in enumerate(cycle.nodes.names)}
    one_by_one = {info.name: plugin.filter(cycle, cycle.pod, info) for info in cycle.nodes}
    assert together == one_by_one
    return one_by_one


def raw_scores(plugin: Any, cycle: Cycle, nodes: Nodes) -> Any:
    together = plugin.score_all(cycle, cycle.pod, nodes)
    assert together.tolist() == [plugin.score(cycle, cycle.pod, info) for info in nodes]
    assert together.dtype == np.int64
    return together


def hint(plugin: Any, resource: str, pod: Pod, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    """What a plugin's hint for a resource says of a change."""
    [registered] = [one for one in plugin.events_to_register() if one.resource == resource]
    assert isinstance(registered, Hint)
    assert registered.look is not None
    return registered.look(PodInfo(pod), old, new)
