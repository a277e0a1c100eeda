"""Looking for the seeds that find the mutants: `python -m tests.fuzz.hunt [--from N] [--upto M] BM-03 BM-18`."""

from __future__ import annotations

import sys

import pytest
from tests.fuzz.mutants import MUTANTS, Mutant

from kubesched.fuzz.drawing import draw
from kubesched.fuzz.judge import Broken
from kubesched.fuzz.play import play


def broken_by(mutant: Mutant, seed: int) -> Broken | None:
    """The law a mutant breaks when a seed is played."""
    plan = draw(seed, mutant.mode)
    if not mutant.needs(plan):
        return None
    with pytest.MonkeyPatch.context() as patch:
        mutant.bring_back(patch)
        return play(plan).broken


def hunt(mutant: Mutant, first: int, upto: int) -> tuple[int, Broken] | None:
    """The first seed that finds it."""
    for seed in range(first, first + upto):
        broken = broken_by(mutant, seed)
        if broken is not None and play(draw(seed, mutant.mode)).broken is None:
            return seed, broken
    return None


if __name__ == "__main__":
    arguments = sys.argv[1:]
    start, most = 1, 1000
    if "--from" in arguments:
        at = arguments.index("--from")
        start = int(arguments[at + 1])
        del arguments[at : at + 2]
    if "--upto" in arguments:
        at = arguments.index("--upto")
        most = int(arguments[at + 1])
        del arguments[at : at + 2]
    for name in arguments or MUTANTS:
        found = hunt(MUTANTS[name], start, most)
        print(name, found[0] - start + 1 if found else f"not within {most}", found or "", flush=True)
