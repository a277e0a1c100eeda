"""Choosing: the one thing a generator of situations does, whoever throws the dice.

The kit throws by a seed, Hypothesis by its own search; both get the same situations to choose from.  Options are
listed with the plainest first: that is what a search that makes things smaller ends at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws.

    Args:
        below: a number from 0 up to, not including, the one given.
    """

    def __init__(self, below: Callable[[int], int]) -> None:
        self._below = below

    def pick(self, options: Sequence[T]) -> T:
        """One of these."""
        return options[self._below(len(options))]

    def chance(self, in_: int) -> bool:
        """True one time in so many."""
        return self._below(in_) == in_ - 1

    def count(self, most: int, least: int = 0) -> int:
        return least + self._below(most - least + 1)

    def some(self, options: Sequence[T], most: int | None = None, least: int = 0) -> list[T]:
        """A few of these, each at most once, in any order."""
        left = list(options)
        wanted = self.count(min(len(left), len(left) if most is None else most), least)
        return [left.pop(self._below(len(left))) for _ in range(wanted)]


def seeded(*seed: object) -> Dice:
    """Dice that always fall the same way for the same seed."""
    return Dice(Random(repr(seed)).randrange)
