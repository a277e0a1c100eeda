"""Randomness as a function of (seed, cycle): asking a question never changes the run.

A stream of random numbers makes every draw depend on how many were drawn before; one "what if?" in the middle
of a run would change everything after it.  Here each draw is computed from what it is for.
"""

from __future__ import annotations

from zlib import crc32

_MASK = (1 << 64) - 1


class SeededLuck:
    """The luck of one cycle."""

    __slots__ = ("_cycle", "_seed")

    def __init__(self, seed: int, cycle: int) -> None:
        self._seed = seed
        self._cycle = cycle

    def below(self, count: int, purpose: str = "") -> int:
        """A number from 0 up to, not including, `count`; each purpose draws its own."""
        return mixed(self._seed, self._cycle, crc32(purpose.encode())) % count


def mixed(*numbers: int) -> int:
    """64 well-shuffled bits of some numbers: a small change of any of them changes about half of the bits.

    The shuffling is the finaliser of SplitMix64, which is quick, needs no state and is the same everywhere.
    """
    bits = 0
    for number in numbers:
        bits = (bits + number + 0x9E3779B97F4A7C15) & _MASK
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _MASK
        bits ^= bits >> 31
    return bits
