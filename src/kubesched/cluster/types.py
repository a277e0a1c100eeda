"""What the arrays mean: aliases to annotate with, so that an index is not a count and a mask is not a score."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Rows: TypeAlias = npt.NDArray[np.int32]  # which rows of the NodeTable
Mask: TypeAlias = npt.NDArray[np.bool_]  # one yes or no per selected row
Codes: TypeAlias = npt.NDArray[np.int32]  # numbers of a Vocab, ABSENT where there is no value
Amounts: TypeAlias = npt.NDArray[np.int64]  # resources: milli-CPU, bytes, pieces
Scores: TypeAlias = npt.NDArray[np.int64]  # one score per selected row

NO_ROWS: Rows = np.empty(0, dtype=np.int32)


def joined(*lists: Rows) -> Rows:
    """Rows of several lists, each once and in order; a lone list as it is."""
    some = [rows for rows in lists if len(rows)]
    if len(some) < 2:
        return some[0] if some else NO_ROWS
    # Marking them is a quarter of what sorting them costs.
    mask: Mask = np.zeros(max(int(rows.max()) for rows in some) + 1, dtype=np.bool_)
    for rows in some:
        mask[rows] = True
    return mask.nonzero()[0].astype(np.int32)
