"""One score plugin's word on every feasible row of a board, raw and normalised."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.types import Mask, Rows, Scores
from kubesched.core import runner
from kubesched.core.board.history import History
from kubesched.core.board.standing import Standing
from kubesched.core.board.verdicts import NoBoard
from kubesched.framework.cycle import Cycle
from kubesched.framework.profile import MAX_SCORE, MIN_SCORE, Tiers

_VALUES_AT_MOST = 256  # different raw scores up to which they are normalised once each
_SPAN_AT_MOST = 1024  # between the lowest and the highest of them, to look them up by number


class ScoreColumn:
    """Raw and normalised scores by row; those of rows that are not feasible mean nothing.

    Where normalising hangs on nothing but which raw scores there are, `values` counts the rows of each: while the
    same ones occur, a row that changes changes nothing for the others.
    """

    __slots__ = (
        "active",
        "follows",
        "history",
        "known",
        "norm",
        "normalizes",
        "raw",
        "reach",
        "standing",
        "tiers",
        "values",
        "weight",
    )

    def __init__(self, tiers: Tiers, weight: int, standing: Standing, history: History) -> None:
        capacity = len(standing.totals)
        self.tiers = tiers
        self.weight = weight
        self.standing = standing
        self.history = history
        self.reach = tiers.plugin.board
        self.follows = hasattr(tiers.plugin, "rescore")
        self.normalizes = hasattr(tiers.plugin, "normalize_score")
        self.active = True
        self.raw: Scores = np.zeros(capacity, dtype=np.int64)
        self.norm: Scores = np.zeros(capacity, dtype=np.int64) if self.normalizes else self.raw
        self.values: dict[int, int] | None = None  # raw score → how many feasible rows have it
        self.known: dict[int, int] = {}  # raw score → what it becomes

    # ── many rows ────────────────────────────────────────────────────────────────────────────────────────────

    def fill(self, cycle: Cycle, feasible: Rows) -> None:
        """Ask about all feasible rows."""
        by_value = getattr(self.tiers.plugin, "by_value", None)
        self.values = {} if by_value is not None and by_value(cycle, cycle.pod) else None
        self.known = {}
        if len(feasible):
            self._ask(cycle, feasible)
            self.normalize(cycle, feasible)

    def ask(self, cycle: Cycle, rows: Rows, came: Rows, left: Rows, new: Mask) -> bool:
        """Ask about some feasible rows again, and take in those that became feasible, or no longer are.

        False where this is not enough, and the scores of all feasible rows must be normalised again.

        Args:
            new: of all rows, those that came.
        """
        if not self.normalizes:
            self._ask(cycle, rows)
            return True
        if self.values is None:
            self._ask(cycle, rows)
            return False
        before = rows[~new[rows]] if len(came) else rows
        for gone in (before, left):
            if len(gone) and self.values is not None:
                self._count(self.raw[gone], -1)
        self._ask(cycle, rows)
        for there in (before, came):
            if len(there) and self.values is not None:
                self._count(self.raw[there], 1)
        values = self._values_if_few()
        if values is None:
            return False
        self._spread_news(cycle, values)
        for some in (before, came):
            if len(some):
                self._write(some, self._become(self.raw[some]))
        return True

    def normalize(self, cycle: Cycle, feasible: Rows) -> None:
        """Normalise the scores of all feasible rows."""
        if not self.normalizes or not len(feasible):
            return
        scores = self.raw[feasible]
        self.values = None if self.values is None else _counted(scores)
        if self.values is None:
            norm = runner.normalized(cycle, self.tiers, scores)
            _check(norm)
        else:
            self._learn(cycle, self.values)
            norm = self._become(scores)
        self._write(feasible, norm)

    def _ask(self, cycle: Cycle, rows: Rows) -> None:
        if not len(rows):
            return
        raw = runner.raw_scores(cycle, self.tiers, Nodes(cycle.table, rows))
        if self.normalizes:
            self.raw[rows] = raw
        else:
            _check(raw)
            self._write(rows, raw)

    def _values_if_few(self) -> dict[int, int] | None:
        return None if self.values is None or len(self.values) > _VALUES_AT_MOST else self.values

    def _count(self, scores: Scores, sign: int) -> None:
        """So many more, or fewer, feasible rows have these raw scores."""
        values, counted = self.values, _counted(scores)
        if values is None or counted is None:
            self.values = None  # too many different ones
            return
        for raw, count in counted.items():
            left = values.get(raw, 0) + sign * count
            if left:
                values[raw] = left
            else:
                del values[raw]

    def _become(self, scores: Scores) -> Scores:
        """What raw scores become, as it is known."""
        if len(self.known) == 1:
            return np.full_like(scores, next(iter(self.known.values())))
        known = sorted(self.known.items())
        low = known[0][0]
        if known[-1][0] - low <= _SPAN_AT_MOST:
            marks = np.zeros(known[-1][0] - low + 1, dtype=np.int64)
            for raw, norm in known:
                marks[raw - low] = norm
            return marks[scores - low]
        places = np.searchsorted(np.array([raw for raw, _ in known], dtype=np.int64), scores)
        become: Scores = np.array([norm for _, norm in known], dtype=np.int64)[places]
        return become

    def _learn(self, cycle: Cycle, values: dict[int, int]) -> None:
        """What each of the raw scores there are becomes."""
        if values.keys() != self.known.keys():
            raw = np.array(sorted(values), dtype=np.int64)
            norm = runner.normalized(cycle, self.tiers, raw)
            _check(norm)
            self.known = dict(zip(raw.tolist(), norm.tolist(), strict=True))

    def _write(self, rows: Rows, norm: Scores) -> None:
        old = self.norm[rows]
        differ = old != norm
        count = np.count_nonzero(differ)
        if not count:
            return
        if count < len(rows):
            rows, old, norm = rows[differ], old[differ], norm[differ]
        self.history.note(self, "norm", rows, old)
        self.norm[rows] = norm
        self.standing.add(rows, (norm - old) * self.weight)

    def _write_one(self, row: int, norm: int) -> None:
        was = self.norm.item(row)
        if norm != was:
            self.history.note(self, "norm", row, was)
            self.norm[row] = norm
            self.standing.add_one(row, (norm - was) * self.weight)

    # ── a few rows ───────────────────────────────────────────────────────────────────────────────────────────

    def ask_few(self, cycle: Cycle, nodes: Iterable[NodeInfo], came: Sequence[int], left: Sequence[int]) -> bool:
        """Ask about a few rows; those that came, that is became feasible, need not be among them.

        False where this is not enough, and the scores of all feasible rows must be normalised again.
        """
        values, moved = self.values, bool(came or left)
        asked = dict.fromkeys(came)
        if values is not None:
            for row in left:
                _less(values, self.raw.item(row))
        for node in nodes:
            row, raw = node.row, runner.raw_score(cycle, self.tiers, node)
            if not self.normalizes:
                if not MIN_SCORE <= raw <= MAX_SCORE:
                    raise NoBoard
                self._write_one(row, raw)
                continue
            was = self.raw.item(row)
            if raw == was:
                continue
            self.raw[row] = raw
            moved = True
            if values is not None and row not in asked:
                _less(values, was)
                values[raw] = values.get(raw, 0) + 1
                asked[row] = None
        if not self.normalizes or not moved:
            return True
        if values is None or len(values) > _VALUES_AT_MOST:
            return False
        for row in came:
            raw = self.raw.item(row)
            values[raw] = values.get(raw, 0) + 1
        self._spread_news(cycle, values)
        for row in asked:
            self._write_one(row, self.known[self.raw.item(row)])
        return True

    def _spread_news(self, cycle: Cycle, values: dict[int, int]) -> None:
        """Normalise again if other raw scores occur than before; rows that keep theirs may get another score by it."""
        before = self.known
        self._learn(cycle, values)
        if self.known is before:
            return
        for raw, norm in self.known.items():
            if before.get(raw, norm) != norm:
                rows = np.flatnonzero(self.standing.ok & (self.raw == raw)).astype(np.int32)
                self._write(rows, np.full(len(rows), norm, dtype=np.int64))


def _check(scores: Scores) -> None:
    if len(scores) and (int(scores.min()) < MIN_SCORE or int(scores.max()) > MAX_SCORE):
        raise NoBoard  # the long way says what is wrong with them


def _less(values: dict[int, int], raw: int) -> None:
    left = values[raw] - 1
    if left:
        values[raw] = left
    else:
        del values[raw]


def _counted(scores: Scores) -> dict[int, int] | None:
    """How often each score occurs; None where there are too many different ones."""
    low, high = int(scores.min()), int(scores.max())
    if low == high:
        return {low: len(scores)}
    if high - low < 4 * len(scores) + 1024:
        counts = np.bincount(scores - low)
        found = np.flatnonzero(counts)
        different, often = found + low, counts[found]
    else:
        different, often = np.unique(scores, return_counts=True)
    if len(different) > _VALUES_AT_MOST:
        return None
    return dict(zip(different.tolist(), often.tolist(), strict=True))
