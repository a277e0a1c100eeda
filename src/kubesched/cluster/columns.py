"""A selection of nodes: the way a vector plugin sees the cluster.

`Nodes` is an ordered list of rows.  Its columns are gathered when first asked for, so a plugin pays for what it
reads; iterating gives the same nodes one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import numpy as np

from kubesched.api.objects import Taint
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import CPU, MEMORY, PODS
from kubesched.cluster.table import NodeTable
from kubesched.cluster.types import Amounts, Codes, Mask, Rows
from kubesched.cluster.vocab import ABSENT

_GUESSED = (CPU, MEMORY)  # the columns of nonzero_requested


class Nodes:
    """Some rows of the table, in a given order.  Valid for one cycle."""

    def __init__(self, table: NodeTable, rows: Rows) -> None:
        self.table = table
        self.rows = rows
        self._kept: dict[tuple[int, int], Amounts] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[NodeInfo]:
        table = self.table
        return (NodeInfo(table, row) for row in self.rows.tolist())

    def __getitem__(self, index: int) -> NodeInfo:
        return NodeInfo(self.table, int(self.rows[index]))

    @cached_property
    def names(self) -> list[str]:
        names = self.table.names
        return [names[row] for row in self.rows.tolist()]

    def where(self, mask: Mask) -> Nodes:
        """The rows a mask keeps, in the same order."""
        return Nodes(self.table, self.rows[mask])

    def named(self, name: str) -> NodeInfo | None:
        """The node of a name, whether selected or not."""
        row = self.table.row_of.get(name)
        return None if row is None else NodeInfo(self.table, row)

    # ── columns ──────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def allocatable(self) -> Amounts:
        """[nodes, resources]; which column is which resource: `column(name)`.  For one resource, `capacity(name)`."""
        return self.table.allocatable[self.rows]

    @cached_property
    def requested(self) -> Amounts:
        """[nodes, resources]: what the pods there request together.  For one resource, `taken(name)`."""
        return self.table.requested[self.rows]

    @cached_property
    def nonzero_requested(self) -> Amounts:
        """[nodes, 2]: cpu and memory, with a guess for containers that do not say."""
        return self.table.nonzero_requested[self.rows]

    @cached_property
    def free(self) -> Amounts:
        return self.allocatable - self.requested

    def capacity(self, resource: str) -> Amounts:
        """What every node can give of a resource."""
        return self._gathered(self.table.allocatable, self.column(resource))

    def taken(self, resource: str, *, guessed: bool = False) -> Amounts:
        """What the pods on every node request of it; `guessed` counts those that do not say, for cpu and memory."""
        if guessed:
            return self._gathered(self.table.nonzero_requested, _GUESSED.index(resource))
        return self._gathered(self.table.requested, self.column(resource))

    def _gathered(self, columns: Amounts, column: int) -> Amounts:
        key = (id(columns), column)
        found = self._kept.get(key)
        if found is None:
            nothing: Amounts = np.zeros(len(self.rows), dtype=np.int64)
            found = self._kept[key] = nothing if column == ABSENT else columns[:, column].take(self.rows)
        return found

    @cached_property
    def pod_count(self) -> Amounts:
        return self.taken(PODS)

    @cached_property
    def pods_allowed(self) -> Amounts:
        return self.capacity(PODS)

    @cached_property
    def unschedulable(self) -> Mask:
        return self.table.unschedulable[self.rows]

    def column(self, resource: str) -> int:
        """The column of a resource, or ABSENT where no node and no pod ever named it."""
        return self.table.resources.find(resource)

    def label(self, key: str) -> Codes:
        """Numbers of the values of a label, ABSENT where a node lacks it; `label_values(key)` decodes."""
        return self.table.label(key).codes[self.rows]

    def label_values(self, key: str) -> list[str]:
        return self.table.label(key).vocab.values

    # ── decide per distinct value, answer per row ────────────────────────────────────────────────────────────

    def by_label(self, key: str, answer: Callable[[str], bool], absent: bool = False) -> Mask:
        """Ask about each distinct value of a label once; rows without the label get `absent`."""
        column = self.table.label(key)
        answers = np.array([*(answer(value) for value in column.vocab.values), absent], dtype=np.bool_)
        return answers[column.codes[self.rows]]  # ABSENT is -1: the last answer

    def by_taints(self, answer: Callable[[tuple[Taint, ...]], int]) -> Amounts:
        """Ask about each distinct set of taints once."""
        sets = self.table.taint_sets.values
        if len(sets) == 1:
            return np.full(len(self.rows), answer(sets[0]), dtype=np.int64)
        return np.array([answer(taints) for taints in sets], dtype=np.int64)[self.table.taint_set[self.rows]]

    def by_row(self, counts: Mapping[int, int]) -> Amounts:
        """Spread counts kept by row over the selection; rows not mentioned get 0."""
        scratch = np.zeros(len(self.table.generation), dtype=np.int64)
        if counts:
            rows = np.fromiter(counts.keys(), dtype=np.int64, count=len(counts))
            scratch[rows] = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
        return scratch[self.rows]
