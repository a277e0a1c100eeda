"""Which rows are feasible, what each has in all, and which are best.

The best rows are kept sorted.  A row that changes is put in or taken out; only when the last of them is gone, or
many rows have changed at once, all totals are looked at.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kubesched.cluster.types import Mask, Rows, Scores

WideRows: TypeAlias = npt.NDArray[np.int64]  # rows, as wide as the numbers they are compared with
FEW = 16  # rows up to which one by one is quicker than all at once

_NOBODY = -1  # the total of a row that is not feasible


class Standing:
    """Totals by row.  `base` is what a feasible row has before anybody has scored it."""

    __slots__ = ("_best", "_count", "_moved", "_top", "base", "ok", "totals")

    def __init__(self, capacity: int, base: int) -> None:
        self.base = base
        self.ok: Mask = np.zeros(capacity, dtype=np.bool_)
        self.totals: Scores = np.full(capacity, _NOBODY, dtype=np.int64)
        self._best: WideRows = np.empty(capacity, dtype=np.int64)
        self._count = 0
        self._top = _NOBODY
        self._moved: dict[int, None] | None = {}  # rows with another total since the best were found; None: many

    @property
    def best(self) -> WideRows:
        """The rows tied for the highest total, in order.  Read it now: the next settle() writes over it."""
        return self._best[: self._count]

    # ── rows move ────────────────────────────────────────────────────────────────────────────────────────────

    def enter(self, rows: Rows) -> None:
        """Rows have become feasible; their columns add to the base."""
        self.ok[rows] = True
        self.totals[rows] = self.base
        self._note(rows)

    def leave(self, rows: Rows) -> None:
        self.ok[rows] = False
        self.totals[rows] = _NOBODY
        self._note(rows)

    def add(self, rows: Rows, change: Scores) -> None:
        """Some feasible rows have so much more."""
        self.totals[rows] += change
        self._note(rows)

    def add_one(self, row: int, change: int) -> None:
        self.totals[row] += change
        if self._moved is not None:
            self._moved[row] = None

    def put(self, rows: Rows, totals: Scores) -> None:
        """Some feasible rows have this in all."""
        self.totals[rows] = totals
        self._note(rows)

    def _note(self, rows: Rows) -> None:
        if len(rows) > FEW:
            self._moved = None
        elif self._moved is not None:
            self._moved.update(dict.fromkeys(rows.tolist()))

    # ── who is best ──────────────────────────────────────────────────────────────────────────────────────────

    def settle(self) -> None:
        """Find the best rows."""
        moved, self._moved = self._moved, {}
        if moved is None:
            self._look_at_all()
        elif moved:
            total_of = self.totals.item
            totals = {row: total_of(row) for row in moved}
            top = max(totals.values())
            if top > self._top:
                best = sorted(row for row, total in totals.items() if total == top)
                self._top, self._count = top, len(best)
                self._best[: len(best)] = best
            else:
                for row, total in totals.items():
                    self._place(row, total == self._top)
                if not self._count:
                    self._look_at_all()

    def _place(self, row: int, is_best: bool) -> None:
        """Put a row among the best, or take it out."""
        count, best = self._count, self._best
        at = int(best[:count].searchsorted(row))
        if (at < count and best.item(at) == row) is is_best:
            return
        if is_best:
            best[at + 1 : count + 1] = best[at:count]
            best[at] = row
            self._count = count + 1
        else:
            best[at : count - 1] = best[at + 1 : count]
            self._count = count - 1

    def _look_at_all(self) -> None:
        self._top = int(self.totals.max(initial=_NOBODY))
        if self._top == _NOBODY:
            self._count = 0
            return
        best = (self.totals == self._top).nonzero()[0]
        self._count = len(best)
        self._best[: len(best)] = best
