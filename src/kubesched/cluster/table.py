"""The nodes as columns: one row per node, one array per fact, and the pods that sit on each row.

A scheduler asks the same question of every node.  With one array per fact the question is asked once, for all
rows; what a scalar plugin sees of a node (NodeInfo) is a view of its row, so nothing is kept twice.

Only the mirror and a Trial write here.  Nobody else runs while a cycle runs, so the table is its own snapshot:
readers need no copy, and `fork()` exists for those who must look at a moment that has passed.

A row's generation grows with every change to it; the table's `clock` is the latest.  Rows of departed nodes
are used again for later ones.  Pods on a node nobody has told us about wait in `stray`.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

import numpy as np

from kubesched.api.objects import Node, Taint
from kubesched.api.quantity import resource_amount
from kubesched.cluster.neighbours import Neighbours
from kubesched.cluster.order import ZoneOrder
from kubesched.cluster.podinfo import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, HostPort, PodInfo
from kubesched.cluster.types import Amounts, Codes, Mask, Rows
from kubesched.cluster.vocab import ABSENT, V, Vocab

_ROWS_AT_FIRST = 64
_RESOURCES_AT_FIRST = 8
_CHANGES_KEPT = 1 << 17
_NONE: list[int] = []


class LabelColumn:
    """The values of one label, per row."""

    __slots__ = ("_sorted", "_starts", "codes", "vocab")

    def __init__(self, capacity: int) -> None:
        self.vocab: Vocab[str] = Vocab()
        self.codes: Codes = np.full(capacity, ABSENT, dtype=np.int32)
        self._sorted: Rows | None = None  # all rows, those of one value together
        self._starts: list[int] = []  # where in it the rows of each value begin

    def rows_of(self, code: int) -> Rows:
        """The rows that have a value, by its number; in order.  Not to be written to."""
        if self._sorted is None:
            order = np.argsort(self.codes, kind="stable")
            values = np.arange(len(self.vocab) + 1, dtype=np.int32)
            self._starts = np.searchsorted(self.codes[order], values).tolist()
            self._sorted = order.astype(np.int32)
        return self._sorted[self._starts[code] : self._starts[code + 1]]

    def write(self, row: int, value: str | None) -> None:
        """For the table: a node has this value, or does not have the label."""
        code = ABSENT if value is None else self.vocab.add(value)
        if self.codes.item(row) != code:
            self.codes[row], self._sorted = code, None

    def grow(self) -> None:
        """For the table: there are twice as many rows."""
        self.codes = np.concatenate([self.codes, np.full_like(self.codes, ABSENT)])
        self._sorted = None


class NodeTable:
    """All nodes, by row.  See the module for who may write."""

    def __init__(self) -> None:
        self.resources: Vocab[str] = Vocab(CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
        self.row_of: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self.names: list[str] = []
        self.pods: list[list[PodInfo]] = []
        self.place_of: dict[str, int] = {}  # uid of a pod → its row
        self.stray: dict[str, dict[str, PodInfo]] = {}  # name of an unknown node → its pods by uid
        self.order = ZoneOrder()
        self.clock = 0
        self.node_clock = 0  # the clock at the latest change of a node itself
        self.members = 0  # grows when a node comes or goes
        self.trials = 0  # trials that have moves to take back: nothing derived from the table may be kept meanwhile
        self._log: list[int] = []  # rows in the order they changed; ~row where the node itself did
        self._log_start = 0  # the clock before the first of them
        self._last_asked, self._last_answer = (-1, -1), (_NONE, _NONE)  # whoever follows the table asks the same
        self.neighbours = Neighbours()
        self.claims: dict[str, dict[int, int]] = {}  # "namespace/claim" → row → pods using it there
        self.ports: list[dict[HostPort, int]] = []
        self.images: dict[str, dict[int, int]] = {}  # name of an image → row → its size as that node says
        self.image_names: list[tuple[str, ...]] = []
        self.features: list[frozenset[str]] = []
        self.taint_sets: Vocab[tuple[Taint, ...]] = Vocab(())
        self.labels: dict[str, LabelColumn] = {}
        self._names_shared = False
        self._free_rows: list[int] = []

        # A column lies in one piece: questions are about one resource of many nodes.
        self.allocatable: Amounts = np.zeros((_ROWS_AT_FIRST, _RESOURCES_AT_FIRST), dtype=np.int64, order="F")
        self.requested: Amounts = np.zeros_like(self.allocatable)
        self.nonzero_requested: Amounts = np.zeros((_ROWS_AT_FIRST, 2), dtype=np.int64, order="F")
        self.generation: Amounts = np.zeros(_ROWS_AT_FIRST, dtype=np.int64)
        self.taint_set: Codes = np.zeros(_ROWS_AT_FIRST, dtype=np.int32)
        self.unschedulable: Mask = np.zeros(_ROWS_AT_FIRST, dtype=np.bool_)
        self.alive: Mask = np.zeros(_ROWS_AT_FIRST, dtype=np.bool_)

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self.row_of)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def rows(self) -> Rows:
        """All nodes, in the order they are tried."""
        return self.order.rows

    def label(self, key: str) -> LabelColumn:
        """The column of a label, made when first asked for and kept up to date from then on."""
        column = self.labels.get(key)
        if column is None:
            column = self.labels[key] = LabelColumn(len(self.generation))
            for row, node in enumerate(self.nodes):
                if node is not None:
                    column.write(row, node.metadata.labels.get(key))
        return column

    def share_names(self) -> list[str]:
        """Names by row, safe to keep: the next node that comes or goes gets a new list."""
        self._names_shared = True
        return self.names

    def remembers(self, clock: int) -> bool:
        """Whether changes_since() can still tell what happened after a moment."""
        return self._log_start <= clock <= self.clock

    def changes_since(self, clock: int) -> tuple[list[int], list[int]]:
        """Rows whose node changed since a moment, and rows of which anything did; in order.  Not to be written to."""
        if self._last_asked == (clock, self.clock):
            return self._last_answer
        entries = self._log[clock - self._log_start :]
        changed: list[int] = []
        if self.node_clock > clock:
            changed = list(dict.fromkeys([~entry for entry in entries if entry < 0]))
            entries = [entry if entry >= 0 else ~entry for entry in entries]
        touched = list(dict.fromkeys(entries)) if len(entries) > 1 else entries
        self._last_asked, self._last_answer = (clock, self.clock), (changed, touched)
        return self._last_answer

    def rewind(self, clock: int) -> None:
        """For a Trial that has taken everything back: it was never there."""
        del self._log[max(0, clock - self._log_start) :]
        self.clock = clock
        self._last_asked = (-1, -1)

    # ── nodes come and go ────────────────────────────────────────────────────────────────────────────────────

    def add_node(self, node: Node) -> int:
        """Give a new node a row; pods that were waiting for it are on it."""
        row = self._new_row(node.name)
        self._write_node(row, node)
        self.order.add(row, node.metadata.labels)
        for pod in self.stray.pop(node.name, {}).values():
            self._put(pod, row)
        return row

    def update_node(self, node: Node) -> int:
        row = self.row_of[node.name]
        self._forget_images(row)
        self._write_node(row, node)
        self.order.update(row, node.metadata.labels)
        return row

    def remove_node(self, name: str) -> None:
        """Take a node out; pods still on it become stray until their own end is told."""
        row = self.row_of[name]
        for pod in list(self.pods[row]):
            self._take(pod, row)
            self.stray.setdefault(name, {})[pod.uid] = pod
        del self.row_of[name]
        self._forget_images(row)
        self.members += 1
        self.order.remove(row)
        self._own_names()
        self.nodes[row], self.names[row] = None, ""
        self.alive[row] = False
        for column in self.labels.values():
            column.write(row, None)
        self.allocatable[row] = 0
        self._touch(row, node=True)
        self._free_rows.append(row)

    # ── pods come and go ─────────────────────────────────────────────────────────────────────────────────────

    def place(self, pod: PodInfo, node_name: str) -> None:
        """Put a pod on a node, known or not."""
        row = self.row_of.get(node_name)
        if row is None:
            self.stray.setdefault(node_name, {})[pod.uid] = pod
        else:
            self._put(pod, row)

    def remove(self, pod: PodInfo, node_name: str) -> None:
        """Take a pod off; it must be there."""
        row = self.place_of.get(pod.uid)
        if row is None:
            pods = self.stray[node_name]
            del pods[pod.uid]
            if not pods:
                del self.stray[node_name]
        else:
            self._take(pod, row)

    def _put(self, pod: PodInfo, row: int) -> None:
        self.pods[row].append(pod)
        self.place_of[pod.uid] = row
        self._account(pod, row, 1)

    def _take(self, pod: PodInfo, row: int) -> None:
        """Kept from kube-scheduler: the last pod of the list moves into the hole."""
        pods = self.pods[row]
        index = next(i for i, other in enumerate(pods) if other.uid == pod.uid)
        gone = pods[index]
        pods[index] = pods[-1]
        pods.pop()
        del self.place_of[pod.uid]
        self._account(gone, row, -1)

    def _account(self, pod: PodInfo, row: int, sign: int) -> None:
        requested = self.requested
        for name, amount in pod.usage.items():
            column = self.resources.find(name)
            if column == ABSENT or column >= requested.shape[1]:
                column = self.resource_column(name)
                requested = self.requested
            requested[row, column] = requested.item(row, column) + sign * amount
        requested[row, 3] = requested.item(row, 3) + sign
        cpu, memory = pod.nonzero_usage
        guessed = self.nonzero_requested
        guessed[row, 0] = guessed.item(row, 0) + sign * cpu
        guessed[row, 1] = guessed.item(row, 1) + sign * memory
        if pod.host_ports:
            _count_all(self.ports[row], pod.host_ports, sign)
        for claim in pod.claims:
            _count_row(self.claims, f"{pod.namespace}/{claim}", row, sign)
        self.neighbours.account(pod, row, sign)
        self._touch(row)

    # ── rows and columns ─────────────────────────────────────────────────────────────────────────────────────

    def resource_column(self, name: str) -> int:
        """The column of a resource; a resource never heard of gets one."""
        column = self.resources.add(name)
        if column >= self.allocatable.shape[1]:
            self.allocatable = np.asfortranarray(np.hstack([self.allocatable, np.zeros_like(self.allocatable)]))
            self.requested = np.asfortranarray(np.hstack([self.requested, np.zeros_like(self.requested)]))
        return column

    def _write_node(self, row: int, node: Node) -> None:
        self.nodes[row] = node
        amounts = [
            (self.resource_column(name), resource_amount(name, q)) for name, q in node.status.allocatable.items()
        ]
        self.allocatable[row] = 0
        for column, amount in amounts:
            self.allocatable[row, column] = amount
        self.unschedulable[row] = node.spec.unschedulable
        self.taint_set[row] = self.taint_sets.add(node.spec.taints)
        self.features[row] = frozenset(node.status.declared_features)
        labels = node.metadata.labels
        for key, label in self.labels.items():
            label.write(row, labels.get(key))
        self._learn_images(row, node)
        self._touch(row, node=True)

    def _learn_images(self, row: int, node: Node) -> None:
        names = []
        for image in node.status.images:
            for name in image.names:
                self.images.setdefault(name, {})[row] = image.size_bytes
                names.append(name)
        self.image_names[row] = tuple(names)

    def _forget_images(self, row: int) -> None:
        for name in self.image_names[row]:
            sizes = self.images.get(name)
            if sizes is not None:
                sizes.pop(row, None)
                if not sizes:
                    del self.images[name]
        self.image_names[row] = ()

    def _new_row(self, name: str) -> int:
        self._own_names()
        if self._free_rows:
            row = self._free_rows.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            if row == len(self.generation):
                self._grow()
            self.names.append(name)
            self.nodes.append(None)
            self.pods.append([])
            self.ports.append({})
            self.image_names.append(())
            self.features.append(frozenset())
        self.row_of[name] = row
        self.alive[row] = True
        self.members += 1
        return row

    def _grow(self) -> None:
        def doubled(column: Amounts) -> Amounts:
            return np.asfortranarray(np.concatenate([column, np.zeros_like(column)]))

        self.allocatable = doubled(self.allocatable)
        self.requested = doubled(self.requested)
        self.nonzero_requested = doubled(self.nonzero_requested)
        self.generation = doubled(self.generation)
        self.taint_set = np.concatenate([self.taint_set, np.zeros_like(self.taint_set)])
        self.unschedulable = np.concatenate([self.unschedulable, np.zeros_like(self.unschedulable)])
        self.alive = np.concatenate([self.alive, np.zeros_like(self.alive)])
        for column in self.labels.values():
            column.grow()

    def _own_names(self) -> None:
        if self._names_shared:
            self.names = list(self.names)
            self._names_shared = False

    def _touch(self, row: int, node: bool = False) -> None:
        self.clock += 1
        self.generation[row] = self.clock
        if node:
            self.node_clock = self.clock
        self._log.append(~row if node else row)
        if len(self._log) > _CHANGES_KEPT:
            half = len(self._log) // 2
            del self._log[:half]
            self._log_start += half

    # ── another time's view ──────────────────────────────────────────────────────────────────────────────────

    def fork(self) -> NodeTable:
        """A copy that later changes do not reach.  Pods and nodes are shared; they never change."""
        twin = copy(self)
        for name in (
            "allocatable",
            "requested",
            "nonzero_requested",
            "generation",
            "taint_set",
            "unschedulable",
            "alive",
        ):
            setattr(twin, name, getattr(self, name).copy())
        twin.resources, twin.taint_sets = _copied(self.resources), _copied(self.taint_sets)
        twin.row_of, twin.place_of = dict(self.row_of), dict(self.place_of)
        twin.nodes, twin.names = list(self.nodes), list(self.names)
        twin.pods = [list(pods) for pods in self.pods]
        twin.ports = [dict(ports) for ports in self.ports]
        twin.stray = {name: dict(pods) for name, pods in self.stray.items()}
        twin.claims = {claim: dict(rows) for claim, rows in self.claims.items()}
        twin.images = {name: dict(sizes) for name, sizes in self.images.items()}
        twin.image_names, twin.features = list(self.image_names), list(self.features)
        twin.labels, twin.neighbours, twin.order = {}, self.neighbours.fork(), self.order.fork()
        twin._free_rows, twin._log = list(self._free_rows), []
        twin._log_start, twin._last_asked = self.clock, (-1, -1)
        return twin


def _count_all(counts: dict[HostPort, int], items: Iterable[HostPort], sign: int) -> None:
    for item in items:
        left = counts.get(item, 0) + sign
        if left:
            counts[item] = left
        else:
            del counts[item]


def _count_row(index: dict[str, dict[int, int]], key: str, row: int, sign: int) -> None:
    rows = index.setdefault(key, {})
    left = rows.get(row, 0) + sign
    if left:
        rows[row] = left
        return
    del rows[row]
    if not rows:
        del index[key]


def _copied(vocab: Vocab[V]) -> Vocab[V]:
    return Vocab(*vocab.values)
