"""Pods counted by topology domain: how many per value of a node label.

Spreading and pod affinity both ask how many pods a zone, a rack or a host holds.  Pods are counted by row first,
one group of look-alikes at a time, and the rows are then added up by the number their label value has in the
table's vocabulary.  No loop here visits single pods, and what is kept is an array per label: a pod that comes or
goes changes one cell of it, which is what makes the counts cheap to keep up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from kubesched.api.selectors import Selector
from kubesched.cluster.neighbours import MANY, AffinityHolders, PodClass, by_row
from kubesched.cluster.table import NodeTable
from kubesched.cluster.types import Amounts, Codes, Mask, Rows
from kubesched.cluster.vocab import ABSENT


def counted_pods(table: NodeTable, namespace: str, selector: Selector) -> Iterator[PodClass]:
    """The pods of a namespace that spreading counts.  Kept from kube-scheduler: an empty selector counts nothing."""
    if selector.empty:
        return
    for pods in table.neighbours.classes(namespace):
        if not pods.terminating and selector.matches(pods.labels):
            yield pods


def pods_by_row(table: NodeTable, groups: Iterable[PodClass | AffinityHolders]) -> Amounts:
    """How many pods of some groups each row of the table holds."""
    size = len(table.generation)
    total: Amounts = np.zeros(size, dtype=np.int64)
    rows: list[int] = []
    counts: list[int] = []
    for group in groups:
        if len(group.rows) < MANY:
            rows.extend(group.rows)
            counts.extend(group.rows.values())
        else:
            total += by_row(group, size)
    return total + added_up(_array(rows), _array(counts), size) if rows else total


def added_up(places: Codes | Amounts, amounts: Amounts, size: int) -> Amounts:
    """An array of `size` with each amount added at its place."""
    # bincount adds in floating point, exact below 2^53: far beyond any number of pods times any weight.
    return np.bincount(places, weights=amounts, minlength=size).astype(np.int64)


class DomainCounts:
    """Counts by topology key and value.  A value that was never counted is 0; so is a node without the label."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._by_key: dict[str, Amounts] = {}

    def __bool__(self) -> bool:
        """Whether any domain has a count other than 0."""
        return any(counts.any() for counts in self._by_key.values())

    @property
    def keys(self) -> tuple[str, ...]:
        """The topology keys under which something was counted, if only to come out as 0."""
        return tuple(self._by_key)

    def of(self, key: str) -> Mapping[str, int]:
        """The counts of one key by label value, zeros left out."""
        values = self._table.label(key).vocab.values
        counts = self._by_key.get(key)
        return {} if counts is None else {values[code]: int(counts[code]) for code in np.flatnonzero(counts).tolist()}

    def at(self, key: str, row: int) -> int:
        """The count of the domain a row is in."""
        counts = self._by_key.get(key)
        code = int(self._table.label(key).codes[row])
        return 0 if counts is None or code == ABSENT else int(counts[code])

    def at_rows(self, key: str, rows: Rows) -> Amounts:
        """The counts of the domains some rows are in."""
        counts = self._by_key.get(key)
        if counts is None:
            return np.zeros(len(rows), dtype=np.int64)
        return np.append(counts, 0)[self._table.label(key).codes[rows]]  # ABSENT is -1: the last answer

    def lacking(self, key: str, rows: Rows) -> Mask:
        """Which rows do not have the label at all."""
        lacking: Mask = self._table.label(key).codes[rows] == ABSENT
        return lacking

    def add(self, key: str, row: int, amount: int) -> None:
        """Count something on a row, if the row is in a domain of this key."""
        code = int(self._table.label(key).codes[row])
        if code != ABSENT:
            self._counts(key)[code] += amount

    def add_rows(self, key: str, rows: Amounts, amounts: Amounts) -> None:
        """Count something on many rows."""
        codes = self._table.label(key).codes[rows]
        inside = codes != ABSENT
        if inside.any():
            counts = self._counts(key)
            counts += added_up(codes[inside], amounts[inside], len(counts))

    def clone(self) -> DomainCounts:
        twin = DomainCounts(self._table)
        twin._by_key = {key: counts.copy() for key, counts in self._by_key.items()}
        return twin

    def _counts(self, key: str) -> Amounts:
        counts = self._by_key.get(key)
        if counts is None:
            counts = self._by_key[key] = np.zeros(len(self._table.label(key).vocab), dtype=np.int64)
        return counts


class Gathering:
    """Groups of pods by topology key and weight, collected before they are added up per domain."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], list[PodClass | AffinityHolders]] = {}

    def add(self, key: str, group: PodClass | AffinityHolders, weight: int = 1) -> None:
        """Count each pod of a group, `weight` apiece, under a topology key."""
        self._found.setdefault((key, weight), []).append(group)

    def total(self, table: NodeTable) -> DomainCounts:
        domains = DomainCounts(table)
        for (key, weight), groups in self._found.items():
            pods = pods_by_row(table, groups)
            rows = np.flatnonzero(pods)
            domains.add_rows(key, rows, pods[rows] * weight)
        return domains


def _array(numbers: list[int]) -> Amounts:
    return np.array(numbers, dtype=np.int64)
