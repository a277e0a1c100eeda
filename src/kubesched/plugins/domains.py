"""Pods counted by topology domain: how many per value of a node label.

Spreading and pod affinity both ask how many pods a zone, a rack or a host holds.  Pods are counted by row first,
one group of look-alikes at a time, and the rows are then added up by the number their label value has in the
table's vocabulary.  No loop here visits single pods, and what is kept is an array per label: a pod that comes or
goes changes one cell of it, which is what makes the counts cheap to keep up to date.  `Following` and `Tally` do so
for a board, which asks after every pod what has moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from kubesched.api.selectors import Selector
from kubesched.cluster.neighbours import MANY, AffinityHolders, PodClass, by_row
from kubesched.cluster.table import NodeTable
from kubesched.cluster.types import NO_ROWS, Amounts, Codes, Mask, Rows, joined
from kubesched.cluster.vocab import ABSENT

Meaning: TypeAlias = Callable[[PodClass], bool]  # whether a group of pods is meant


def counted_pods(table: NodeTable, namespace: str, selector: Selector) -> Iterator[PodClass]:
    """The pods of a namespace that spreading counts.  Kept from kube-scheduler: an empty selector counts nothing."""
    if selector.empty:
        return
    for pods in table.neighbours.classes(namespace):
        if is_counted(namespace, selector, pods):
            yield pods


def is_counted(namespace: str, selector: Selector, pods: PodClass) -> bool:
    """Whether spreading counts a group of pods."""
    means = pods.namespace == namespace and not pods.terminating and not selector.empty
    return means and selector.matches(pods.labels)


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
        code = self._table.label(key).codes.item(row)
        return 0 if counts is None or code == ABSENT else counts.item(code)

    def at_rows(self, key: str, rows: Rows) -> Amounts:
        """The counts of the domains some rows are in."""
        counts = self._by_key.get(key)
        if counts is None:
            return np.zeros(len(rows), dtype=np.int64)
        return counts[self._table.label(key).codes[rows]]  # ABSENT is -1: the last one

    def lacking(self, key: str, rows: Rows) -> Mask:
        """Which rows do not have the label at all."""
        lacking: Mask = self._table.label(key).codes[rows] == ABSENT
        return lacking

    def add(self, key: str, row: int, amount: int) -> None:
        """Count something on a row, if the row is in a domain of this key."""
        code = int(self._table.label(key).codes[row])
        if code != ABSENT:
            self._counts(key)[code] += amount

    def shift(self, key: str, code: int, amount: int) -> tuple[int, int]:
        """Count something in a domain, by the number of its value; what was counted there before, and now."""
        counts = self._counts(key)
        before = counts.item(code)
        counts[code] = before + amount
        return before, before + amount

    def add_rows(self, key: str, rows: Amounts, amounts: Amounts) -> None:
        """Count something on many rows."""
        codes = self._table.label(key).codes[rows]
        inside = codes != ABSENT
        if inside.any():
            counts = self._counts(key)
            counts += added_up(codes[inside], amounts[inside], len(counts))

    def compared(self, later: DomainCounts, key: str) -> Iterator[Moved]:
        """The domains of a topology key that have another count in a later one of these."""
        before, now = self._counts(key), later._counts(key)  # of one table, between two changes of nodes
        for code in np.flatnonzero(before != now).tolist():
            yield Moved(key, code, int(before[code]), int(now[code]))

    def clone(self) -> DomainCounts:
        twin = DomainCounts(self._table)
        twin._by_key = {key: counts.copy() for key, counts in self._by_key.items()}
        return twin

    def _counts(self, key: str) -> Amounts:
        counts = self._by_key.get(key)
        if counts is None:
            # One place more than there are values, for rows without the label: nothing is ever counted there.
            counts = self._by_key[key] = np.zeros(len(self._table.label(key).vocab) + 1, dtype=np.int64)
        return counts


class Gathering:
    """Groups of pods by topology key and weight, collected before they are added up per domain."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], list[PodClass | AffinityHolders]] = {}
        self._wanted: list[tuple[str, int, Meaning]] = []

    def __bool__(self) -> bool:
        """Whether there is anything to count, now or when a group that is meant appears."""
        return bool(self._found or self._wanted)

    def add(self, key: str, group: PodClass | AffinityHolders, weight: int = 1) -> None:
        """Count each pod of a group, `weight` apiece, under a topology key."""
        self._found.setdefault((key, weight), []).append(group)

    def want(self, key: str, weight: int, meaning: Meaning) -> None:
        """For whoever follows: what later groups must be like to be counted, too."""
        self._wanted.append((key, weight, meaning))

    def welcome(self, newcomers: Iterable[PodClass]) -> None:
        """Groups have appeared; those that are meant are counted from now on."""
        for group in newcomers:
            for key, weight, meaning in self._wanted:
                if meaning(group):
                    self.add(key, group, weight)

    def keys(self) -> set[str]:
        return {key for key, _ in self._found}

    def by_group(self) -> dict[PodClass | AffinityHolders, list[tuple[str, int]]]:
        """Under which topology keys the pods of a group are counted, and with what weights."""
        found: dict[PodClass | AffinityHolders, list[tuple[str, int]]] = {}
        for counted, groups in self._found.items():
            for group in groups:
                found.setdefault(group, []).append(counted)
        return found

    def by_row(self, table: NodeTable) -> dict[str, Amounts]:
        """How many pods every row holds, by topology key."""
        found: dict[str, Amounts] = {}
        for (key, _), groups in self._found.items():
            pods = pods_by_row(table, groups)
            found[key] = found[key] + pods if key in found else pods
        return found

    def total(self, table: NodeTable) -> DomainCounts:
        domains = DomainCounts(table)
        for (key, weight), groups in self._found.items():
            pods = pods_by_row(table, groups)
            rows = np.flatnonzero(pods)
            domains.add_rows(key, rows, pods[rows] * weight)
        return domains


# ── counts that are kept ─────────────────────────────────────────────────────────────────────────────────────


class Moved(NamedTuple):
    """A domain whose count has changed: which label, the number of its value, and the counts."""

    key: str
    code: int
    before: int
    now: int


class Following:
    """A gathering's counts, brought up to date pod by pod as they come and go."""

    def __init__(self, gathering: Gathering, table: NodeTable) -> None:
        self.domains = gathering.total(table)
        self._gathering = gathering
        self._clock = table.clock
        self._mark = table.neighbours.appeared
        self._moved = table.neighbours.moved
        self._begun = False
        self._counted: dict[PodClass | AffinityHolders, list[tuple[str, int]]] = {}
        self._inside: dict[str, int] = {}  # pods in some domain, by topology key
        self._lost = False

    @property
    def somebody(self) -> bool:
        """Whether any domain has a count other than 0; for gatherings without negative weights."""
        return any(self._inside.values()) if self._begun else bool(self.domains)

    def follow(self, table: NodeTable) -> list[Moved] | None:
        """The domains that changed since the last time; None where they cannot be told, or other keys count now."""
        if table.clock == self._clock or not self._gathering:
            return []
        neighbours = table.neighbours
        newcomers, shifts = neighbours.appeared_since(self._mark), neighbours.moved_since(self._moved)
        if table.node_clock > self._clock or newcomers is None or shifts is None:
            return None
        self._clock, self._mark, self._moved = table.clock, neighbours.appeared, neighbours.moved
        if newcomers:
            self._gathering.welcome(newcomers)
            self._counted = self._gathering.by_group()
        if not self._begun:
            return self._begin(table)
        if newcomers and self._gathering.keys() != self._inside.keys():
            return None
        moved: list[Moved] = []
        for group, row, more in shifts:
            for key, weight in self._counted.get(group, ()):
                self._move(table, key, row, more, more * weight, moved)
        return None if self._lost else moved

    def _begin(self, table: NodeTable) -> list[Moved] | None:
        """Count everything once, by row."""
        self._begun = True
        before, self.domains = self.domains, self._gathering.total(table)
        self._counted = self._gathering.by_group()
        for key, pods in self._gathering.by_row(table).items():
            self._inside[key] = int(pods[table.label(key).codes != ABSENT].sum())
        if before.keys != self.domains.keys:
            return None
        return [moved for key in before.keys for moved in before.compared(self.domains, key)]

    def _move(self, table: NodeTable, key: str, row: int, more: int, heavier: int, moved: list[Moved]) -> None:
        """So many more pods, weighing so much more, are on a row."""
        code = table.label(key).codes.item(row)
        if code == ABSENT:
            return
        inside = self._inside[key]
        self._inside[key] = inside + more
        self._lost |= (inside > 0) is not (inside + more > 0)  # the key counts from now on, or no longer
        before, now = self.domains.shift(key, code, heavier)
        if heavier:
            moved.append(Moved(key, code, before, now))


class Tally:
    """How many pods some groups have on each row, brought up to date row by row as pods come and go."""

    def __init__(self, table: NodeTable, groups: Iterable[PodClass], meaning: Meaning) -> None:
        self._table = table
        self._groups: dict[PodClass | AffinityHolders, None] = dict.fromkeys(groups)
        self._meaning = meaning
        self._mark, self._moved = table.neighbours.appeared, table.neighbours.moved
        self._since = self.clock = table.clock
        self._moves: list[tuple[int, int]] = []
        self.pods = pods_by_row(table, self._groups)

    def moves_since(self, clock: int) -> list[tuple[int, int]] | None:
        """Rows that hold more, or fewer, than they did at a clock, and by how many; None if that cannot be told."""
        table = self._table
        if clock == table.clock:
            return []
        if clock == self._since and self.clock == table.clock:
            return self._moves
        neighbours = table.neighbours
        newcomers, shifts = neighbours.appeared_since(self._mark), neighbours.moved_since(self._moved)
        if clock != self.clock or newcomers is None or shifts is None or table.node_clock > clock:
            return None
        self._since, self.clock = clock, table.clock
        self._mark, self._moved = neighbours.appeared, neighbours.moved
        self._groups.update((group, None) for group in newcomers if self._meaning(group))
        moves: dict[int, int] = {}
        for group, row, more in shifts:
            if group in self._groups:
                self.pods[row] += more
                moves[row] = moves.get(row, 0) + more
        if newcomers:
            self._groups = {group: None for group in self._groups if group.rows}
        self._moves = [(row, more) for row, more in moves.items() if more]
        return self._moves


def rows_in(table: NodeTable, key: str, codes: Sequence[int]) -> Rows:
    """The rows in some domains of a topology key, by the numbers of their values."""
    if not len(codes):
        return NO_ROWS
    column = table.label(key)
    return joined(*[column.rows_of(code) for code in codes])


def _array(numbers: list[int]) -> Amounts:
    return np.array(numbers, dtype=np.int64)
