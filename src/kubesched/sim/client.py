"""A client of the simulated cluster that feels like a Kubernetes client.

It acts at the present moment of the run, as `kubectl` would; to act later, plan it (`Simulation.at`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubesched.api.selectors import EVERYTHING, parse_selector
from kubesched.sim.cluster import Cluster

Json = dict[str, Any]


class Client:
    """create, get, list, watch, patch, delete: any kind a scheduler reads.  Objects are plain dictionaries."""

    def __init__(self, cluster: Cluster, soon: Callable[[Callable[[], None]], None]) -> None:
        self._cluster = cluster
        self._soon = soon

    def create(self, obj: Mapping[str, Any]) -> Json:
        """Create an object; returns it as stored."""
        return self._cluster.create(obj)

    def get(self, kind: str, name: str, namespace: str = "default") -> Json:
        return self._cluster.get(kind, namespace, name)

    def find(self, kind: str, name: str, namespace: str = "default") -> Json | None:
        """The object, or None where there is none."""
        return self._cluster.find(kind, namespace, name)

    def list(self, kind: str, namespace: str | None = None, selector: str = "") -> list[Json]:
        """All objects of a kind, of one namespace or of all, chosen by a label selector as kubectl writes it."""
        chosen = parse_selector(selector) if selector else EVERYTHING
        objects = self._cluster.list(kind, namespace)
        return [obj for obj in objects if chosen.matches(obj["metadata"].get("labels") or {})]

    def patch(self, kind: str, name: str, body: Mapping[str, Any], namespace: str = "default") -> Json:
        """Merge a change into an object."""
        return self._cluster.patch(kind, namespace, name, body)

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        self._cluster.delete(kind, namespace, name)

    def watch(self, kind: str, told: Callable[[str, Json], None]) -> Callable[[], None]:
        """Be told of what is there and of every change, as (`ADDED` | `MODIFIED` | `DELETED`, object).

        Returns how to stop.  Changes are told at the moment they happen, when the run goes on.
        """
        watch = self._cluster.watch(kind, on_ready=lambda: self._soon(tell))

        def tell() -> None:
            while events := watch.take():
                for event in events:
                    told(event.type, event.obj)

        tell()
        return watch.close

    # ── the everyday verbs of kubectl ────────────────────────────────────────────────────────────────────────

    def cordon(self, node: str) -> Json:
        return self.patch("Node", node, {"spec": {"unschedulable": True}})

    def uncordon(self, node: str) -> Json:
        return self.patch("Node", node, {"spec": {"unschedulable": None}})

    def label(self, kind: str, name: str, namespace: str = "default", **labels: str | None) -> Json:
        """Set labels; None takes one off."""
        return self.patch(kind, name, {"metadata": {"labels": labels}}, namespace)

    def node_of(self, pod: str, namespace: str = "default") -> str:
        """The node a pod is on; empty where it is on none."""
        found = self.find("Pod", pod, namespace) or {}
        return str((found.get("spec") or {}).get("nodeName") or "")
