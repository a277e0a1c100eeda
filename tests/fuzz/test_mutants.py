"""Every bug of the list is found by the seed that is on record, and would not be without the bug."""

import pytest
from tests.fuzz.found import FOUND, LISTED, MEDIAN, NOT_APPLYING
from tests.fuzz.hunt import broken_by
from tests.fuzz.mutants import MUTANTS

from kubesched.fuzz.drawing import Mode, draw
from kubesched.fuzz.play import play

WITHIN = 1_000


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND)
def test_a_mutant_is_found(name: str) -> None:
    assert broken_by(MUTANTS[name], FOUND[name]) is not None


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "mode"), sorted({(seed, MUTANTS[name].mode) for name, seed in FOUND.items()}))
def test_the_same_seed_breaks_nothing_without_it(seed: int, mode: Mode) -> None:
    assert play(draw(seed, mode)).broken is None


def test_every_mutant_has_its_seed() -> None:
    assert MUTANTS.keys() == FOUND.keys() == MEDIAN.keys()


def test_every_bug_of_the_list_is_found_or_named() -> None:
    assert sorted(LISTED) == sorted({name for name in MUTANTS if name in LISTED} | set(NOT_APPLYING))
    assert not MUTANTS.keys() & NOT_APPLYING.keys()
    assert all(seeds <= WITHIN for found in (FOUND, MEDIAN) for seeds in found.values())
