"""Every bug of the list is found by the seed that is on record, and would not be without the bug."""

import pytest
from tests.fuzz.found import FOUND, LISTED, NOT_APPLYING
from tests.fuzz.hunt import broken_by
from tests.fuzz.mutants import MUTANTS
from tests.fuzz.plans import WRITTEN

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


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_a_mutant_is_found_by_the_run_that_was_written_for_it(name: str) -> None:
    assert play(WRITTEN[name], thorough=1).broken is None
    with pytest.MonkeyPatch.context() as patch:
        MUTANTS[name].bring_back(patch)
        assert play(WRITTEN[name]).broken is not None


def test_every_mutant_has_its_seed_or_its_run() -> None:
    assert MUTANTS.keys() == FOUND.keys() | WRITTEN.keys()


def test_every_bug_of_the_list_is_found_or_named() -> None:
    assert sorted(LISTED) == sorted({name for name in MUTANTS if name in LISTED} | set(NOT_APPLYING))
    assert not MUTANTS.keys() & NOT_APPLYING.keys()
    assert all(seed <= WITHIN for seed in FOUND.values())
