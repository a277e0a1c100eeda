"""From raw scores to the range every score plugin ends in, 0 to 100."""

from __future__ import annotations

import numpy as np

from kubesched.cluster.types import Scores
from kubesched.framework.profile import MAX_SCORE


def default_normalize(scores: Scores, *, reverse: bool = False) -> Scores:
    """Stretch scores so that the highest becomes 100; reversed, so that the highest becomes 0.

    Where nobody scored above 0 there is nothing to stretch: all stay as they are, or, reversed, all get 100.
    """
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    # Go's division goes toward zero, NumPy's down: take the sign away first.
    stretched: Scores = np.sign(scores) * (np.abs(scores) * MAX_SCORE // highest)
    return MAX_SCORE - stretched if reverse else stretched
