"""What a board's columns were when an earlier Decision was made.

A Decision does not copy columns.  The board writes down what it overwrites, version by version; whoever asks a
Decision for its columns gets a copy of the board with those changes taken back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kubesched.cluster.types import Rows
from kubesched.framework.decision import Decision

if TYPE_CHECKING:
    from kubesched.core.board.board import Board

REMEMBERED = 256  # versions of a board that decisions may still ask for
CELLS_AT_MOST = 2_000_000  # overwritten values over all of them

Change: TypeAlias = tuple[Any, str, Any, Any]  # whose, which attribute, which rows of it (None: all of it), what it was


class History:
    """The changes of the last versions.

    Args:
        keep: how many versions are remembered.
    """

    def __init__(self, keep: int = REMEMBERED) -> None:
        self.version = 0
        self._keep = keep
        self._steps: deque[tuple[list[Change], int]] = deque()  # the latest last, each with its size
        self._open: list[Change] = []
        self._size = 0
        self._cells = 0

    def begin(self) -> None:
        """What is written from now on makes a new version."""
        steps = self._steps
        steps.append((self._open, self._size))
        self._cells += self._size
        self._open, self._size = [], 0
        self.version += 1
        while len(steps) > self._keep or self._cells > CELLS_AT_MOST:
            self._cells -= steps.popleft()[1]

    def clear(self) -> None:
        """Earlier versions cannot be asked for."""
        self._steps.clear()
        self._open, self._size, self._cells = [], 0, 0

    def note(self, owner: Any, name: str, where: Any, old: Any) -> None:
        """Something is about to be overwritten."""
        self._open.append((owner, name, where, old))
        self._size += len(where) if isinstance(where, np.ndarray) else 8

    def at(self, version: int, owners: Sequence[Any]) -> dict[int, Any] | None:
        """Copies of some columns as they were at a version, by the id of the column; None if that is too long ago."""
        steps = self.version - version
        if steps > len(self._steps):
            return None
        twins = {id(owner): _copy(owner) for owner in owners}
        latest = [self._open, *(changes for changes, _ in reversed(self._steps))]
        for changes in latest[:steps]:
            for owner, name, where, old in reversed(changes):
                twin = twins[id(owner)]
                if where is None:
                    setattr(twin, name, old)
                else:
                    getattr(twin, name)[where] = old
        return twins


class BoardColumns:
    """A board's columns at a version, for the Decision that was made then."""

    __slots__ = ("_board", "_order", "_start", "_version")

    def __init__(self, board: Board, order: Rows, start: int) -> None:
        self._board, self._version, self._order, self._start = board, board.history.version, order, start

    def fill(self, decision: Decision) -> None:
        if not self._board.fill(decision, self._version, np.roll(self._order, -(self._start % len(self._order)))):
            decision.note("the scores and verdicts of this attempt are no longer kept")


def _copy(owner: Any) -> Any:
    """A copy whose arrays can be written without the original noticing; arrays nobody may write are shared."""
    twin = object.__new__(type(owner))
    for name in owner.__slots__:
        value = getattr(owner, name)
        own = isinstance(value, np.ndarray) and value.flags.writeable
        setattr(twin, name, value.copy() if own else value)
    return twin
