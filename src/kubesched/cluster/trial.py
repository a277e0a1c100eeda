"""What if this pod were there, and that one gone?  A transaction on the table, with a way back.

Preemption, nominated pods and pod groups all ask about a cluster that is slightly different.  A Trial changes
the table in place and writes down what it did; `rollback()` undoes it, to the order of pods on each node.
The log is append-only — a rollback appends the opposite moves — so that whoever follows a Trial (the cycle
tells plugins about every move) reads on from where it stopped.
"""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple

from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.table import NodeTable


class Move(NamedTuple):
    """A pod put on a node, or taken off it."""

    placed: bool
    pod: PodInfo
    node: str


class Trial:
    """Changes to a table that will be undone.  Use as a context manager: leaving it rolls everything back."""

    def __init__(self, table: NodeTable) -> None:
        self.table = table
        self.log: list[Move] = []
        self._undo: list[Move] = []
        self._before: dict[int, tuple[list[PodInfo], int]] = {}
        self._clock = table.clock

    def place(self, pod: PodInfo, node: str) -> None:
        self._remember(node)
        self.table.place(pod, node)
        self._note(Move(True, pod, node))

    def evict(self, pod: PodInfo, node: str) -> None:
        self._remember(node)
        self.table.remove(pod, node)
        self._note(Move(False, pod, node))

    def checkpoint(self) -> int:
        """A mark to roll back to."""
        return len(self._undo)

    def rollback(self, mark: int = 0) -> None:
        """Undo, latest first, whatever was done since the mark."""
        while len(self._undo) > mark:
            move = self._undo.pop()
            if move.placed:
                self.table.remove(move.pod, move.node)
            else:
                self.table.place(move.pod, move.node)
            self.log.append(Move(not move.placed, move.pod, move.node))
        if not self._undo:
            self._restore()

    def __enter__(self) -> Trial:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.rollback()

    def _note(self, move: Move) -> None:
        self.log.append(move)
        self._undo.append(move)

    def _remember(self, node: str) -> None:
        row = self.table.row_of.get(node)
        if row is not None and row not in self._before:
            if not self._before:
                self._clock = self.table.clock
                self.table.trials += 1
            self._before[row] = (list(self.table.pods[row]), int(self.table.generation[row]))

    def _restore(self) -> None:
        """Everything is back but the order of pods and the generations; a Trial must leave no trace."""
        if not self._before:
            return
        for row, (pods, generation) in self._before.items():
            self.table.pods[row][:] = pods
            self.table.generation[row] = generation
        self.table.rewind(self._clock)
        self.table.trials -= 1
        self._before.clear()
