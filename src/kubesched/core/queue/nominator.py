"""Promises: which waiting pods have been told that there will be room for them on a node.

Preemption makes room by evicting pods, and that takes time.  Until the pod it was made for is placed, the room
must not look free to pods of lower priority; filters therefore count the pods nominated to a node as if they
were there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesched.api.objects import Pod
from kubesched.cluster.podinfo import PodInfo


class Nominator:
    """Node name → the pods that were promised room there, in the order of the promises."""

    def __init__(self) -> None:
        self._by_node: dict[str, list[PodInfo]] = {}
        self._node_of: dict[str, str] = {}  # uid → node

    @property
    def by_node(self) -> Mapping[str, Sequence[PodInfo]]:
        return self._by_node

    def node_of(self, uid: str) -> str:
        return self._node_of.get(uid, "")

    def nominate(self, info: PodInfo, node: str | None) -> None:
        """Promise room on a node; "" takes a promise back, and None leaves it as it is.

        Where there is none, None is the node in the pod's status.  Not kept from kube-scheduler: there it always is,
        and a promise that has not reached the status yet is forgotten by the next attempt.
        """
        if node is None:
            node = self.node_of(info.uid) or info.pod.status.nominated_node_name
        self.discard(info.uid)
        if node and not info.pod.spec.node_name:
            self._node_of[info.uid] = node
            self._by_node.setdefault(node, []).append(info)

    def update(self, old: Pod, info: PodInfo) -> None:
        """A waiting pod has changed.

        A promise that has not reached its status yet is kept; otherwise what the status now says is what holds.
        """
        promised = self.node_of(info.uid)
        unsaid = not old.status.nominated_node_name and not info.pod.status.nominated_node_name
        self.nominate(info, promised if promised and unsaid else info.pod.status.nominated_node_name)

    def discard(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        left = [info for info in self._by_node[node] if info.uid != uid]
        if left:
            self._by_node[node] = left
        else:
            del self._by_node[node]
