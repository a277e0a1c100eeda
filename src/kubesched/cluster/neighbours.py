"""Which pods sit where, grouped by what a neighbour can tell of them.

Spreading and pod affinity ask "how many pods like this are on each node?".  Pods of one workload carry the
same labels, so the question is asked once per group of look-alikes and answered with row counts, rather than
once per pod.  Two groupings serve two directions: `classes` by namespace and labels (whom a selector means),
and `holders` by affinity terms (who minds a newcomer).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from kubesched.api.selectors import Selector
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Amounts

MANY = 64  # rows from which on an array is worth keeping beside the dictionary
_NEWS_KEPT = 4096  # classes that appeared lately, for those who follow
_MOVES_KEPT = 1 << 15  # pods that came or went lately, for the same


class PodClass:
    """Pods that no label selector can tell apart, and how many of them each row holds."""

    __slots__ = ("column", "labels", "namespace", "rows", "terminating")

    def __init__(self, namespace: str, labels: Mapping[str, str], terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.rows: dict[int, int] = {}
        self.column: Amounts | None = None  # the same, by row; see by_row()


class AffinityHolders:
    """Pods with the same pod (anti-)affinity, one of them as the example, and how many each row holds."""

    __slots__ = ("column", "example", "rows")

    def __init__(self, example: PodInfo) -> None:
        self.example = example
        self.rows: dict[int, int] = {}
        self.column: Amounts | None = None


def by_row(pods: PodClass | AffinityHolders, size: int) -> Amounts:
    """The row counts as an array of at least `size`.  Read it now: the next pod that comes or goes changes it.

    Where pods sit on many rows the array is kept, and counted on with every pod; a scheduler that asks after each
    placement then need not walk over all rows again.
    """
    if pods.column is not None and len(pods.column) >= size:
        return pods.column
    count = len(pods.rows)
    column: Amounts = np.zeros(size, dtype=np.int64)
    column[np.fromiter(pods.rows, np.int64, count)] = np.fromiter(pods.rows.values(), np.int64, count)
    if count >= MANY:
        pods.column = column
    return column


class Shift(NamedTuple):
    """A pod of a group came to a row, or left it."""

    group: PodClass | AffinityHolders
    row: int
    more: int  # 1 or -1


class Neighbours:
    """Row counts of pods by class, and of pods with affinity by their terms."""

    def __init__(self) -> None:
        self._classes: dict[str, dict[object, PodClass]] = {}
        self._holders: dict[bytes, AffinityHolders] = {}
        self.shape = 0  # grows when a group of holders appears or disappears
        self._news: list[PodClass] = []  # classes in the order they appeared
        self._news_start = 0  # how many are no longer in the list
        self._moves: list[Shift] = []
        self._moves_start = 0

    def classes(self, namespace: str | None = None) -> Iterator[PodClass]:
        """The classes of one namespace, or of all."""
        if namespace is not None:
            yield from self._classes.get(namespace, {}).values()
            return
        for classes in self._classes.values():
            yield from classes.values()

    def holders(self) -> Iterator[AffinityHolders]:
        """Groups of pods whose affinity or anti-affinity object is present, even if empty."""
        yield from self._holders.values()

    @property
    def appeared(self) -> int:
        """How many classes have ever appeared: a mark for `appeared_since`."""
        return self._news_start + len(self._news)

    def appeared_since(self, mark: int) -> list[PodClass] | None:
        """The classes that have appeared after a mark; None if that was too long ago."""
        return self._news[mark - self._news_start :] if mark >= self._news_start else None

    @property
    def moved(self) -> int:
        """How often a pod has ever come or gone: a mark for `moved_since`."""
        return self._moves_start + len(self._moves)

    def moved_since(self, mark: int) -> list[Shift] | None:
        """Who came and went after a mark; None if that was too long ago."""
        return self._moves[mark - self._moves_start :] if mark >= self._moves_start else None

    def count(self, namespace: str, selector: Selector) -> dict[int, int]:
        """How many pods of a namespace, not terminating, a selector means on each row."""
        counts: dict[int, int] = {}
        for pods in self.classes(namespace):
            if not pods.terminating and selector.matches(pods.labels):
                for row, count in pods.rows.items():
                    counts[row] = counts.get(row, 0) + count
        return counts

    def account(self, pod: PodInfo, row: int, sign: int) -> None:
        classes = self._classes.setdefault(pod.namespace, {})
        alike = classes.get(pod.class_key)
        if alike is None:
            alike = classes[pod.class_key] = PodClass(pod.namespace, pod.labels, pod.pod.terminating)
            self._tell_of(alike)
        self._tell_of_move(alike, row, sign)
        if not _count(alike, row, sign):
            del classes[pod.class_key]
            if not classes:
                del self._classes[pod.namespace]
        if pod.has_affinity:
            held = self._holders.get(pod.affinity_key)
            if held is None:
                held = self._holders[pod.affinity_key] = AffinityHolders(pod)
                self.shape += 1
            self._tell_of_move(held, row, sign)
            if not _count(held, row, sign):
                del self._holders[pod.affinity_key]
                self.shape += 1

    def _tell_of(self, pods: PodClass) -> None:
        self._news.append(pods)
        if len(self._news) > _NEWS_KEPT:
            half = len(self._news) // 2
            del self._news[:half]
            self._news_start += half

    def _tell_of_move(self, group: PodClass | AffinityHolders, row: int, more: int) -> None:
        self._moves.append(Shift(group, row, more))
        if len(self._moves) > _MOVES_KEPT:
            half = len(self._moves) // 2
            del self._moves[:half]
            self._moves_start += half

    def fork(self) -> Neighbours:
        twin = Neighbours()
        twin.shape, twin._news_start, twin._moves_start = self.shape, self.appeared, self.moved
        for namespace, classes in self._classes.items():
            twin._classes[namespace] = {key: _forked_class(pods) for key, pods in classes.items()}
        for key, held in self._holders.items():
            twin._holders[key] = AffinityHolders(held.example)
            twin._holders[key].rows = dict(held.rows)
        return twin


def _forked_class(pods: PodClass) -> PodClass:
    twin = PodClass(pods.namespace, pods.labels, pods.terminating)
    twin.rows = dict(pods.rows)
    return twin


def _count(pods: PodClass | AffinityHolders, row: int, sign: int) -> bool:
    """Change a row's count; False when no row is left."""
    rows = pods.rows
    left = rows.get(row, 0) + sign
    if left:
        rows[row] = left
    else:
        del rows[row]
    if pods.column is not None:
        if row < len(pods.column):
            pods.column[row] = left
        else:
            pods.column = None  # the table has grown
    return bool(rows)
