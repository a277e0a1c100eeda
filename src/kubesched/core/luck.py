"""Randomness as a function of (seed, cycle): asking a question never changes the run.

A stream of random numbers makes every draw depend on how many were drawn before; one "what if?" in the middle
of a run would change everything after it.  Here each draw is computed from what it is for.
"""

from __future__ import annotations

import random


class SeededLuck:
    """The luck of one cycle."""

    __slots__ = ("_cycle", "_seed")

    def __init__(self, seed: int, cycle: int) -> None:
        self._seed = seed
        self._cycle = cycle

    def below(self, count: int, purpose: str = "") -> int:
        """A number from 0 up to, not including, `count`; each purpose draws its own."""
        return random.Random(f"{self._seed}/{self._cycle}/{purpose}").randrange(count)
