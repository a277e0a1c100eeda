"""Looking for the seeds that find the mutants.

`python -m tests.fuzz.hunt BM-03 BM-18` says which seed, from 1 on, is the first to find each of them; with `--median`,
how many seeds that takes on the median, from five places that are far apart.  Without names it is about all of them.
"""

from __future__ import annotations

from argparse import ArgumentParser

import pytest
from tests.fuzz.mutants import MUTANTS, Mutant

from kubesched.fuzz.drawing import draw
from kubesched.fuzz.judge import Broken
from kubesched.fuzz.play import play

STARTS = (1, 1_000_001, 2_000_001, 3_000_001, 4_000_001)


def broken_by(mutant: Mutant, seed: int) -> Broken | None:
    """The law a mutant breaks when a seed is played."""
    plan = draw(seed, mutant.mode)
    if not mutant.needs(plan):
        return None
    with pytest.MonkeyPatch.context() as patch:
        mutant.bring_back(patch)
        return play(plan).broken


def shown_by(mutant: Mutant, seed: int) -> Broken | None:
    """The law it breaks, if nothing is broken without it."""
    broken = broken_by(mutant, seed)
    return broken if broken is not None and play(draw(seed, mutant.mode)).broken is None else None


def hunt(mutant: Mutant, first: int, upto: int) -> tuple[int, Broken] | None:
    """The first seed that finds it."""
    for seed in range(first, first + upto):
        broken = shown_by(mutant, seed)
        if broken is not None:
            return seed, broken
    return None


def median(mutant: Mutant, upto: int) -> int | None:
    """How many seeds it takes on the median: side by side from every start, until more than half have found it."""
    left = set(STARTS)
    for seeds in range(1, upto + 1):
        left -= {start for start in left if shown_by(mutant, start + seeds - 1)}
        if len(left) < len(STARTS) / 2:
            return seeds
    return None


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(MUTANTS))
    parser.add_argument("--from", dest="first", type=int, default=1)
    parser.add_argument("--upto", type=int, default=1_000)
    parser.add_argument("--median", action="store_true")
    given = parser.parse_args()
    for name in given.names:
        if given.median:
            print(name, median(MUTANTS[name], given.upto) or f"more than {given.upto}", flush=True)
        else:
            found = hunt(MUTANTS[name], given.first, given.upto)
            print(name, found[0] - given.first + 1 if found else f"not within {given.upto}", found or "", flush=True)


if __name__ == "__main__":
    main()
