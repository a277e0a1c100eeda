"""One filter's word on every row of a board."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.types import NO_ROWS, Amounts, Rows
from kubesched.core import runner
from kubesched.core.board.history import History
from kubesched.framework.cycle import Cycle
from kubesched.framework.profile import Tiers
from kubesched.framework.status import Status
from kubesched.framework.vector import REASONS_AS_BITS, Verdict

Bytes: TypeAlias = npt.NDArray[np.uint8]


class NoBoard(Exception):
    """This pod, at this moment, is left to the long way."""


class FilterColumn:
    """A code and the reasons per row.  `active` is False where its pre_filter said SKIP.

    Most filters turn nobody down.  Such a column shares an array of zeros until it is first written to.
    """

    __slots__ = ("active", "bits", "codes", "follows", "history", "more", "reach", "rejecting", "texts", "tiers")

    def __init__(self, tiers: Tiers, zeros: tuple[Bytes, Amounts], history: History) -> None:
        self.tiers = tiers
        self.history = history
        self.reach = tiers.plugin.board
        self.follows = hasattr(tiers.plugin, "refilter")
        self.active = True
        self.rejecting = 0  # how many rows it turns down
        self.codes, self.bits = zeros  # nobody may write these
        self.texts: list[str] = []  # only ever grows: a bit keeps its meaning
        self.more: dict[int, tuple[str, ...]] = {}

    # ── asking ───────────────────────────────────────────────────────────────────────────────────────────────

    def ask(self, cycle: Cycle, rows: Rows) -> Rows:
        """Ask about some rows again.  Returns those that were fine and are not any more, or the other way round."""
        if not len(rows):
            return NO_ROWS
        verdict = runner.verdict_of(cycle, self.tiers, Nodes(cycle.table, rows))
        if not self.rejecting and not verdict.codes.any():
            return NO_ROWS
        return self._write(rows, verdict)

    def ask_one(self, cycle: Cycle, node: NodeInfo) -> bool:
        """Ask about one row again; True if it was fine and is not any more, or the other way round."""
        status = runner.filter_one(cycle, self.tiers, node)
        row = node.row
        was_ok = not self.rejecting or not self.codes.item(row)
        if status.ok and was_ok:
            return False
        self._write_one(row, status)
        return was_ok != status.ok

    def sleep(self) -> Rows:
        """It has nothing to say about such pods any more.  Returns the rows it turned down until now."""
        rows = np.flatnonzero(self.codes).astype(np.int32)
        if len(rows):
            self._write(rows, Verdict(len(rows)))
        return rows

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────

    def _write(self, rows: Rows, verdict: Verdict) -> Rows:
        self._own()
        codes, bits = self.codes[rows], self.bits[rows]
        new_bits, more = self._translated(verdict)
        differ = (codes != verdict.codes) | (bits != new_bits)
        if differ.any():
            written = rows[differ]
            self.history.note(self, "codes", written, codes[differ])
            self.history.note(self, "bits", written, bits[differ])
            self.codes[written], self.bits[written] = verdict.codes[differ], new_bits[differ]
        self._write_more(rows.tolist() if self.more or more else (), more)
        flipped: Rows = rows[(codes == 0) != (verdict.codes == 0)]
        turned_down = int(np.count_nonzero(self.codes[flipped]))
        self.rejecting += 2 * turned_down - len(flipped)
        return flipped

    def _write_one(self, row: int, status: Status) -> None:
        self._own()
        verdict = Verdict(1)
        if not status.ok:
            verdict.answer(0, status)
        bits, more = self._translated(verdict)
        was, code = int(self.codes[row]), int(status.code)
        self.history.note(self, "codes", row, was)
        self.history.note(self, "bits", row, int(self.bits[row]))
        self.codes[row], self.bits[row] = code, int(bits[0])
        if self.more or more:
            self._write_more((row,), more)
        self.rejecting += (code != 0) - (was != 0)

    def _translated(self, verdict: Verdict) -> tuple[Amounts, dict[int, tuple[str, ...]]]:
        """A verdict's reasons by this column's numbers."""
        if verdict.texts == self.texts[: len(verdict.texts)]:
            return verdict.bits, verdict.more
        bits, more = np.zeros_like(verdict.bits), dict(verdict.more)
        for k, text in enumerate(verdict.texts):
            said = (verdict.bits >> k & 1).astype(np.bool_)
            if text not in self.texts and len(self.texts) < REASONS_AS_BITS:
                self.texts.append(text)
            if text in self.texts:
                bits[said] |= 1 << self.texts.index(text)
            else:
                for i in np.flatnonzero(said).tolist():
                    more[i] = (text, *more.get(i, ()))
        return bits, more

    def _write_more(self, rows: Sequence[int], more: dict[int, tuple[str, ...]]) -> None:
        """Reasons beyond those that have a number; hardly ever any."""
        if not self.more and not more:
            return
        kept = dict(self.more)
        for row in rows:
            kept.pop(row, None)
        kept.update({rows[i]: reasons for i, reasons in more.items()})
        self.history.note(self, "more", None, self.more)
        self.more = kept

    def _own(self) -> None:
        if not self.codes.flags.writeable:
            # Zeros are what they were at every earlier version, too: nothing to note.
            self.codes, self.bits = np.zeros_like(self.codes), np.zeros_like(self.bits)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────

    def verdict(self, rows: Rows) -> Verdict:
        verdict = Verdict(0)
        verdict.codes, verdict.bits, verdict.texts = self.codes[rows], self.bits[rows], self.texts
        if self.more:
            verdict.more = {i: self.more[row] for i, row in enumerate(rows.tolist()) if row in self.more}
        return verdict
