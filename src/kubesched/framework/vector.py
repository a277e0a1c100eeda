"""The all-nodes hooks, and Verdict: what a vector filter answers.

A vector hook says about all rows what its scalar hook says about one.  It is optional; where both exist they
must agree, and `kubesched.testing` proves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from kubesched.cluster.types import Mask, Scores
from kubesched.framework.status import SUCCESS, Code, Status

if TYPE_CHECKING:
    from kubesched.cluster.columns import Nodes
    from kubesched.cluster.podinfo import PodInfo
    from kubesched.framework.cycle import Cycle

_ANSWERS = np.zeros(256, dtype=np.bool_)  # by code: the answers a filter may give
_ANSWERS[[Code.SUCCESS, Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING]] = True
REASONS_AS_BITS = 63  # a filter with more distinct reasons keeps the rest row by row


class Verdict:
    """One answer per row: a code, and the reasons behind it.

    Reasons repeat — three thousand nodes say `Insufficient cpu` — so a reason is a bit, and a row's reasons are
    one integer.  Nothing is lost: `status(i)` gives back what a scalar filter would have answered for row i.
    """

    __slots__ = ("bits", "codes", "more", "texts")

    def __init__(self, count: int) -> None:
        self.codes: npt.NDArray[np.uint8] = np.zeros(count, dtype=np.uint8)
        self.bits: npt.NDArray[np.int64] = np.zeros(count, dtype=np.int64)
        self.texts: list[str] = []
        self.more: dict[int, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def fault(self) -> str:
        """What makes it no answer: a row that could not be judged, and says so, or is neither a yes nor a no."""
        if not self.codes.any():
            return ""
        odd = ~_ANSWERS[self.codes]
        if not odd.any():
            return "" if all(isinstance(text, str) for text in self.texts) else "a reason is a text"
        row = int(np.flatnonzero(odd)[0])
        code = int(self.codes[row])
        return ", ".join(self.reasons(row)) or f"a filter does not answer with code {code}"

    @property
    def ok(self) -> Mask:
        ok: Mask = self.codes == 0
        return ok

    def reject(self, where: Mask, reason: str, unresolvable: bool | Mask = False) -> None:
        """Turn rows down.  Rows turned down already get one more reason; unresolvable wins over resolvable."""
        if not where.any():
            return
        bit = self._bit(reason)
        if bit is not None:
            self.bits[where] |= bit
        else:
            for row in np.flatnonzero(where).tolist():
                self.more[row] = (*self.more.get(row, ()), reason)
        if isinstance(unresolvable, bool):
            code = np.uint8(Code.UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE)
            self.codes[where] = np.maximum(self.codes[where], code)
        else:
            codes = np.where(unresolvable, np.uint8(Code.UNRESOLVABLE), np.uint8(Code.UNSCHEDULABLE))
            self.codes[where] = np.maximum(self.codes[where], codes[where])

    def answer(self, row: int, status: Status) -> None:
        """Write one row's answer as a scalar filter gave it."""
        self.codes[row] = status.code
        for reason in status.reasons:
            bit = self._bit(reason)
            if bit is not None and not self.bits[row] & bit:
                self.bits[row] |= bit
            else:
                self.more[row] = (*self.more.get(row, ()), reason)

    def status(self, row: int) -> Status:
        code = Code(int(self.codes[row]))
        return SUCCESS if code is Code.SUCCESS else Status(code, self.reasons(row))

    def reasons(self, row: int) -> tuple[str, ...]:
        bits = int(self.bits[row])
        known = tuple(text for k, text in enumerate(self.texts) if bits >> k & 1)
        return known + self.more.get(row, ())

    def counts(self, rows: Mask | None = None) -> Mapping[str, int]:
        """How many rows gave each reason."""
        bits = self.bits if rows is None else self.bits[rows]
        counts = {text: int(np.count_nonzero(bits >> k & 1)) for k, text in enumerate(self.texts)}
        for row, reasons in self.more.items():
            if rows is None or rows[row]:
                for reason in reasons:
                    counts[reason] = counts.get(reason, 0) + 1
        return {text: count for text, count in counts.items() if count}

    def take(self, where: Mask) -> Verdict:
        """The answers of some rows, as a verdict of their own."""
        part = Verdict(0)
        part.codes, part.bits, part.texts = self.codes[where], self.bits[where], self.texts
        if self.more:
            kept = enumerate(np.flatnonzero(where).tolist())
            part.more = {new: self.more[old] for new, old in kept if old in self.more}
        return part

    def _bit(self, reason: str) -> int | None:
        try:
            return 1 << self.texts.index(reason)
        except ValueError:
            if len(self.texts) == REASONS_AS_BITS:
                return None
            self.texts.append(reason)
            return 1 << (len(self.texts) - 1)


class VectorFilter(Protocol):
    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        """Answer for every node of the selection."""
        ...


class VectorScore(Protocol):
    def score_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Scores:
        """Score every node of the selection, before normalising."""
        ...
