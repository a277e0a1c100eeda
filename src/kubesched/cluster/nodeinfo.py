"""One row of the table as an object: the node as a scalar plugin sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesched.api.objects import Node, Taint
from kubesched.cluster.podinfo import CPU, MEMORY, HostPort, PodInfo
from kubesched.cluster.table import NodeTable
from kubesched.cluster.vocab import ABSENT

_GUESSED = {CPU: 0, MEMORY: 1}  # the columns of nonzero_requested: those of all columns, too


class NodeInfo:
    """A view of one node and of what is on it, assumed pods included.  Always current; hold it for one cycle."""

    __slots__ = ("row", "table")

    def __init__(self, table: NodeTable, row: int) -> None:
        self.table = table
        self.row = row

    def __repr__(self) -> str:
        return f"NodeInfo({self.name!r}, {self.pod_count} pods)"

    @property
    def node(self) -> Node:
        node = self.table.nodes[self.row]
        assert node is not None, "a NodeInfo was kept beyond the life of its node"
        return node

    @property
    def name(self) -> str:
        return self.table.names[self.row]

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.node.spec.taints

    @property
    def unschedulable(self) -> bool:
        return self.node.spec.unschedulable

    @property
    def pods(self) -> Sequence[PodInfo]:
        return self.table.pods[self.row]

    @property
    def pod_count(self) -> int:
        return len(self.table.pods[self.row])

    @property
    def pods_allowed(self) -> int:
        return self.table.allocatable.item(self.row, 3)

    def allocatable(self, resource: str) -> int:
        """Milli-CPU or whole units; 0 for a resource the node does not have."""
        column = self.table.resources.find(resource)
        return 0 if column == ABSENT else self.table.allocatable.item(self.row, column)

    def requested(self, resource: str) -> int:
        """What the pods on the node request together."""
        column = self.table.resources.find(resource)
        return 0 if column == ABSENT else self.table.requested.item(self.row, column)

    def room(self, resource: str, *, guessed: bool = False) -> tuple[int, int]:
        """What the pods on the node request of a resource, and what there is of it; `guessed` as for Nodes.taken."""
        table, row = self.table, self.row
        column = table.resources.find(resource)
        if column == ABSENT:
            return 0, 0
        taken = table.nonzero_requested if guessed else table.requested
        return taken.item(row, column), table.allocatable.item(row, column)

    def nonzero_requested(self, resource: str) -> int:
        """As `requested`, with Kubernetes' guess for containers that do not say; cpu and memory only."""
        return self.table.nonzero_requested.item(self.row, _GUESSED[resource])

    @property
    def ports(self) -> Mapping[HostPort, int]:
        """The host ports in use, each with how many pods use it."""
        return self.table.ports[self.row]

    @property
    def declared_features(self) -> frozenset[str]:
        return self.table.features[self.row]
