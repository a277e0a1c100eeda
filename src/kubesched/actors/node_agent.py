"""What a kubelet says of its node: here I am, this is what I have, and I am still alive.

A node that was created bare gets what a kubelet registers with: its capacity, its addresses, the labels of its
machine.  From then on its Lease in kube-node-lease is renewed every ten seconds, each node at its own moment, so that
a thousand nodes do not all write at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar
from zlib import crc32

from kubesched.actors.conditions import condition, is_true, with_conditions
from kubesched.actors.controller import Controller
from kubesched.actors.kubelet import dotted, is_stopped
from kubesched.actors.messages import Change, Create, Effect, Seen, change
from kubesched.actors.view import Key, View
from kubesched.api.time import Duration, Instant, format_micro, format_rfc3339, seconds

Json = dict[str, Any]

LEASES = "coordination.k8s.io/leases"
LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
HEARTBEAT: Duration = seconds(10)
CAPACITY = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
NODE_NETWORK = 172 << 24 | 18 << 16
VERSION = "v1.36.4"
_PRESSURES = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


class NodeAgents(Controller):
    """Every node's kubelet, as far as the node itself is concerned.

    Args:
        heartbeat: how often a Lease is renewed; None: there are no Leases, as in long runs of virtual time.
    """

    watches: ClassVar[tuple[str, ...]] = ("nodes",)

    def __init__(self, view: View | None = None, *, heartbeat: Duration | None = HEARTBEAT) -> None:
        super().__init__(view)
        self.heartbeat = heartbeat
        self._renewed: dict[str, Instant] = {}  # uid of the node → when its Lease was last renewed
        self._leased: dict[str, None] = {}
        self._addresses = 1 << 15  # the first half is for nodes that were there from the beginning

    def concerned(self, seen: Seen) -> Iterable[Key]:
        meta = seen.last["metadata"]
        if seen.new is None:
            self._renewed.pop(meta["uid"], None)
            self._leased.pop(meta["name"], None)
            return []
        return [Key("nodes", "", meta["name"])]

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        node = self.view.at(key)
        if node is None or is_stopped(node):
            return
        meta = node["metadata"]
        labels = {"kubernetes.io/hostname": meta["name"], "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        missing = {name: value for name, value in labels.items() if name not in (meta.get("labels") or {})}
        if missing:
            yield change("nodes", node, {"metadata": {"labels": missing}})
        if not is_true(node, "Ready"):
            self._addresses += 1
            yield change("nodes", node, {"status": ready_status(node, self._addresses, now)}, subresource="status")
        if self.heartbeat is not None:
            yield from self._beat(key, node, now)

    def _beat(self, key: Key, node: Json, now: Instant) -> Iterator[Effect]:
        assert self.heartbeat is not None
        meta = node["metadata"]
        uid, name = meta["uid"], meta["name"]
        latest = self._renewed.get(uid)
        if latest is not None and now < latest + self.heartbeat:
            self.wake(key, Instant(latest + self.heartbeat))
            return
        if latest is None:
            # Spread over the interval: the first renewal comes at this node's own moment of it.
            latest = Instant(now - crc32(name.encode()) % self.heartbeat)
        else:
            latest = now
        self._renewed[uid] = latest
        self.wake(key, Instant(latest + self.heartbeat))
        spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": format_micro(now)}
        if name in self._leased:
            yield Change(LEASES, LEASE_NAMESPACE, name, {"spec": spec})
            return
        self._leased[name] = None
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        meta = {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]}
        yield Create(LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec})


def ready_status(node: Json, number: int, now: Instant) -> Json:
    """The status a kubelet registers its node with; `number` makes its address."""
    told = node.get("status") or {}
    capacity = told.get("capacity") or told.get("allocatable") or CAPACITY
    name = node["metadata"]["name"]
    beat = {"lastHeartbeatTime": format_rfc3339(now)}
    made = [condition(kind, "False", now, *why, **beat) for kind, why in _PRESSURES.items()]
    made.append(condition("Ready", "True", now, "KubeletReady", "kubelet is posting ready status", **beat))
    address = {"type": "InternalIP", "address": dotted(NODE_NETWORK + 2 + number)}
    return {
        "capacity": capacity,
        "allocatable": told.get("allocatable") or capacity,
        "conditions": with_conditions(node, made),
        "addresses": told.get("addresses") or [address, {"type": "Hostname", "address": name}],
        "nodeInfo": told.get("nodeInfo") or node_info(name),
    }


def node_info(name: str) -> Json:
    return {
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
        "kernelVersion": "played",
        "osImage": "kubesched",
        "containerRuntimeVersion": "played://1",
        "kubeletVersion": VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
