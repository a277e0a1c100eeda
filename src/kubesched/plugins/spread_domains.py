"""The pods in each domain of a topology spread constraint: what filtering and scoring look up.

Both are arrays over the values of the constraint's label, filled once per attempt from row counts.  For hard
constraints a pod added to or taken from a node changes one cell, and with it the minimum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from kubesched.api.selectors import Selector
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.table import NodeTable
from kubesched.cluster.types import NO_ROWS, Amounts, Codes, Mask, Rows, joined
from kubesched.cluster.vocab import ABSENT
from kubesched.framework.cycle import Cycle
from kubesched.plugins.domains import Tally, added_up, counted_pods, is_counted, rows_in
from kubesched.plugins.spread_constraints import HOSTNAME, Constraint

_MANY = 2**31 - 1  # more pods than a domain can hold


class Tallies:
    """Pods by row for each selector asked in a cycle; filtering and scoring often ask for the same."""

    def __init__(self, table: NodeTable, namespace: str) -> None:
        self.table, self.namespace, self.clock = table, namespace, table.clock
        self._known: dict[Selector, Tally] = {}

    @staticmethod
    def within(cycle: Cycle, namespace: str) -> Tallies:
        """The cycle's, as long as nothing has moved since they were counted."""
        tallies = cycle.find(Tallies)
        if tallies is None or tallies.clock != cycle.table.clock:
            tallies = Tallies(cycle.table, namespace)
            cycle.put(tallies)
        return tallies

    def of(self, selector: Selector) -> Tally:
        tally = self._known.get(selector)
        if tally is None:
            groups = counted_pods(self.table, self.namespace, selector)
            tally = self._known[selector] = Tally(self.table, groups, partial(is_counted, self.namespace, selector))
        return tally


# ── what pre_filter works out ────────────────────────────────────────────────────────────────────────────────


class Minimum:
    """The two emptiest domains of a constraint, kept up to date move by move.

    Kept from kube-scheduler: two entries are too few to be exact for ever.  When both have filled up, the third
    emptiest domain is not known and the least full of the two is taken for the minimum.  Preemption's answers
    depend on it, so the same two entries are kept in the same way.
    """

    __slots__ = ("first", "second")

    def __init__(self) -> None:
        self.first = self.second = (ABSENT, _MANY)

    def update(self, domain: int, count: int) -> None:
        """A domain holds this many pods now."""
        entry = (domain, count)
        if domain == self.first[0]:
            self.first = entry
        elif domain == self.second[0]:
            self.second = entry
        elif count < self.first[1]:
            self.first, self.second = entry, self.first
            return
        elif count < self.second[1]:
            self.second = entry
            return
        if self.first[1] > self.second[1]:
            self.first, self.second = self.second, self.first

    @staticmethod
    def over(domains: Codes, counts: Amounts) -> Minimum:
        """As if every domain had been told once; `domains` may name one several times, earlier ones win ties."""
        minimum = Minimum()
        if len(domains):
            at = int(np.argmin(counts))
            minimum.first = (int(domains[at]), int(counts[at]))
            rest = np.where(domains == domains[at], _MANY, counts)
            at = int(np.argmin(rest))
            if rest[at] < _MANY:
                minimum.second = (int(domains[at]), int(rest[at]))
        return minimum

    def clone(self) -> Minimum:
        twin = Minimum()
        twin.first, twin.second = self.first, self.second
        return twin


class HardDomains:
    """One constraint with DoNotSchedule: the pods in each of its domains.

    `counts` is indexed by the number of the label value, `codes` and `counted` by row.
    """

    __slots__ = ("codes", "constraint", "counted", "counts", "itself", "minimum", "present", "size", "tally")

    def __init__(self, constraint: Constraint, pod: PodInfo, nodes: Nodes, tally: Tally) -> None:
        """Count the pods of some nodes, each of which has the label."""
        column = nodes.table.label(constraint.topology_key)
        codes = column.codes[nodes.rows]
        self.constraint = constraint
        self.itself = int(constraint.selector.matches(pod.labels))  # whether the pod adds to what it is spread with
        self.codes = column.codes
        self.counted: Mask = np.zeros(len(column.codes), dtype=np.bool_)
        self.counted[nodes.rows] = True
        self.tally = tally
        self.counts: Amounts = added_up(codes, tally.pods[nodes.rows], len(column.vocab))
        self.present = _in_order(codes)  # the domains there are
        self.size = len(self.present)
        self.minimum = Minimum.over(self.present, self.counts[self.present])

    @property
    def floor(self) -> int:
        """What the emptiest domain holds; 0 while there are fewer domains than asked for."""
        return 0 if self.size < self.constraint.min_domains else self.minimum.first[1]

    @property
    def limit(self) -> int:
        """The most pods a domain may hold for one more to be fine."""
        return self.constraint.max_skew + self.floor - self.itself

    def follow(self, table: NodeTable, clock: int) -> Rows | None:
        """Count again what has moved since a clock.  The rows that fit now and did not, or the other way round."""
        moves = self.tally.moves_since(clock)
        if moves is None:
            return None
        moved = False
        limit = self.limit
        before: dict[int, int] = {}
        for row, more in moves:
            if self.counted.item(row):
                code, moved = self.codes.item(row), True
                before.setdefault(code, self.counts.item(code))
                self.counts[code] += more
        if not moved:
            return NO_ROWS
        self.minimum = Minimum.over(self.present, self.counts[self.present])
        if self.limit == limit:
            crossed = [code for code, count in before.items() if (count > limit) is not bool(self.counts[code] > limit)]
            return rows_in(table, self.constraint.topology_key, crossed)
        was = self.counts.copy()
        was[list(before)] = list(before.values())
        flipped = np.flatnonzero((was > limit) != (self.counts > self.limit)).tolist()
        return rows_in(table, self.constraint.topology_key, flipped)

    def account(self, other: PodInfo, row: int, sign: int) -> None:
        """A pod of the same namespace comes to a row, or leaves it."""
        if self.counted[row] and self.constraint.selector.matches(other.labels):
            code = int(self.codes[row])
            self.counts[code] += sign
            self.minimum.update(code, int(self.counts[code]))

    def clone(self) -> HardDomains:
        twin = object.__new__(HardDomains)
        twin.constraint, twin.itself, twin.size = self.constraint, self.itself, self.size
        twin.codes, twin.counted, twin.present, twin.tally = self.codes, self.counted, self.present, self.tally
        twin.counts, twin.minimum = self.counts.copy(), self.minimum.clone()
        return twin


class HardSpread:
    """All constraints with DoNotSchedule, in the pod's order."""

    def __init__(self, domains: Sequence[HardDomains], clock: int) -> None:
        self.domains = tuple(domains)
        self.clock = clock  # of the table, when it was counted

    def follow(self, table: NodeTable) -> Rows | None:
        """Count again what has moved since the last time.  The rows with another answer; None: ask anew."""
        clock, self.clock = self.clock, table.clock
        found: list[Rows] = []
        for domains in self.domains:
            rows = domains.follow(table, clock)
            if rows is None:
                return None
            found.append(rows)
        return joined(*found)

    def account(self, pod: PodInfo, other: PodInfo, node: NodeInfo, sign: int) -> None:
        if other.namespace == pod.namespace:
            for domains in self.domains:
                domains.account(other, node.row, sign)

    def clone(self) -> HardSpread:
        return HardSpread([domains.clone() for domains in self.domains], self.clock)


# ── what pre_score works out ─────────────────────────────────────────────────────────────────────────────────


class SoftDomains:
    """One constraint with ScheduleAnyway: what a node is charged for the pods in its domain.

    `counts` has one place per row for host names, where each node counts for itself, else one per label value;
    `places` says which place is a row's, and -1 that the row lacks the label.  `homes` says where the pods of a row
    are counted, -1 where they are not; None where each row counts its own.
    """

    __slots__ = ("counts", "homes", "key", "max_skew", "places", "tally", "weight")

    def __init__(
        self, constraint: Constraint, places: Codes, counts: Amounts, weight: float, tally: Tally, homes: Codes | None
    ) -> None:
        self.key, self.max_skew = constraint.topology_key, constraint.max_skew
        self.places, self.counts, self.weight = places, counts, weight
        self.tally, self.homes = tally, homes

    @staticmethod
    def of(constraint: Constraint, seen: Nodes, counted: Nodes, tally: Tally) -> SoftDomains:
        """Count the pods of the counted nodes, in the domains that some node seen is in."""
        if constraint.topology_key == HOSTNAME:
            return _by_host(constraint, seen, tally)
        return _by_label(constraint, seen, counted, tally)

    def charge(self, row: int) -> float:
        """What a node is charged: the fewer, the better."""
        place = self.places.item(row)
        return 0.0 if place == ABSENT else self.counts.item(place) * self.weight + float(self.max_skew - 1)

    def charges(self, rows: Rows) -> npt.NDArray[np.float64]:
        charges = self.counts * self.weight + float(self.max_skew - 1)
        return np.append(charges, 0.0)[self.places[rows]]  # ABSENT is -1: the last one

    def follow(self, table: NodeTable, clock: int) -> Rows | None:
        """Count again what has moved since a clock.  The rows that are charged something else."""
        moves = self.tally.moves_since(clock)
        if moves is None:
            return None
        if self.homes is None:  # the counts are the tally's own
            return np.array([row for row, _ in moves], dtype=np.int32)
        changed: dict[int, None] = {}
        for row, more in moves:
            home = self.homes.item(row)
            if 0 <= home < len(self.counts):
                self.counts[home] += more
                changed[home] = None
        return rows_in(table, self.key, list(changed))


class SoftSpread:
    """All constraints with ScheduleAnyway, and which of the feasible nodes are left out of the comparison."""

    def __init__(self, domains: Sequence[SoftDomains], nodes: Nodes, ignored: Mask) -> None:
        self.domains = tuple(domains)
        self.clock = nodes.table.clock
        self.ignored = ignored  # as the feasible nodes are ordered
        self.whole = not ignored.any()  # nobody is left out
        self.ignored_rows: Mask = np.zeros(len(nodes.table.generation), dtype=np.bool_)
        self.ignored_rows[nodes.rows[ignored]] = True

    def follow(self, table: NodeTable) -> Rows | None:
        """Count again what has moved since the last time.  The rows with another score; None: ask anew."""
        clock, self.clock = self.clock, table.clock
        found: list[Rows] = []
        for domains in self.domains:
            rows = domains.follow(table, clock)
            if rows is None:
                return None
            found.append(rows)
        return joined(*found)


def _by_host(constraint: Constraint, seen: Nodes, tally: Tally) -> SoftDomains:
    """Every feasible node is a domain of its own, whatever its label says, and counts its own pods."""
    has_label = seen.table.label(HOSTNAME).codes >= 0
    places = np.where(has_label, np.arange(len(has_label), dtype=np.int32), ABSENT).astype(np.int32)
    return SoftDomains(constraint, places, tally.pods, _weight(len(seen)), tally, None)


def _by_label(constraint: Constraint, seen: Nodes, counted: Nodes, tally: Tally) -> SoftDomains:
    column = seen.table.label(constraint.topology_key)
    size = len(column.vocab)
    # Kept from kube-scheduler: a node without the label, where it is let in, is in the domain of the empty value.
    empty = column.vocab.find("")
    nowhere = size if empty == ABSENT else empty

    def domain(nodes: Nodes) -> Codes:
        codes = column.codes[nodes.rows]
        return np.where(codes == ABSENT, nowhere, codes).astype(np.int32)

    wanted = np.bincount(domain(seen), minlength=size + 1) > 0
    homes: Codes = np.full(len(column.codes), ABSENT, dtype=np.int32)
    homes[counted.rows] = domain(counted)
    counts = added_up(homes[counted.rows], tally.pods[counted.rows], size + 1)[:size]
    weight = _weight(int(np.count_nonzero(wanted)))
    return SoftDomains(constraint, column.codes, counts, weight, tally, homes)


def _weight(size: int) -> float:
    """How much a pod counts: the more domains there are, the fewer pods each has, and the more one of them tells."""
    return math.log(float(size + 2))


def _in_order(codes: Codes) -> Codes:
    """Each code once, in the order of first appearance."""
    different, first = np.unique(codes, return_index=True)
    return different[np.argsort(first, kind="stable")]
