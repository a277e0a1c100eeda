"""A leader dies a moment after its last bind, and the next one has not heard of it yet (#137308).

The fifth of the stories in `tests/scenarios/still-open.md`: it needs two schedulers, a Lease, and news that are late.
"""

import pytest
from tests.fuzz.mutants import MUTANTS
from tests.fuzz.plans import SEEDS, room_for_one

from kubesched.fuzz.play import play


def test_a_new_leader_catches_up_before_it_binds() -> None:
    for seed in SEEDS:
        assert play(room_for_one(seed), thorough=1).broken is None


def test_one_that_does_not_sells_the_room_twice() -> None:
    with pytest.MonkeyPatch.context() as patch:
        MUTANTS["BM-41"].bring_back(patch)
        laws = {broken.law for seed in SEEDS if (broken := play(room_for_one(seed)).broken) is not None}
    assert laws == {"S1b"}
