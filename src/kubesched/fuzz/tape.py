"""Where a run's luck comes from: one seed, and a name for every draw.

Draws with different names know nothing of each other, so a draw more or less in one place leaves the others as they
were.  That is what makes a failing run small: an object is taken away, and the rest of the run keeps its luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import TypeVar

T = TypeVar("T")

_PARTS = 1 << 64


class Tape:
    """Everything that is drawn for one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def stream(self, name: str) -> Random:
        """A generator of its own, for whoever draws many things in a row."""
        return Random(f"{self.seed}/{name}")

    def part(self, *name: object) -> float:
        """A number from 0 up to, and not, 1."""
        return self._number(name) / _PARTS

    def below(self, bound: int, *name: object) -> int:
        """A number from 0 up to, and not, the bound."""
        return self._number(name) % bound if bound > 0 else 0

    def choice(self, values: Sequence[T], *name: object) -> T:
        return values[self.below(len(values), *name)]

    def _number(self, name: tuple[object, ...]) -> int:
        text = "/".join(map(str, (self.seed, *name)))
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
