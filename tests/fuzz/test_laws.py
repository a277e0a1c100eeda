"""Every law of the judge is noticed when it is broken on purpose."""

from collections.abc import Callable, Iterable

import pytest
from tests.fuzz.breakers import BREAKERS
from tests.fuzz.found import LAW_FOUND
from tests.fuzz.plans import SEEDS, a_lease_out_of_reach, a_port_unheard_of, room_unheard_of

from kubesched.fuzz.drawing import draw
from kubesched.fuzz.judge import LAWS
from kubesched.fuzz.plan import Plan
from kubesched.fuzz.play import play

WRITTEN: dict[str, Callable[[int], Plan]] = {
    "S1a": room_unheard_of,
    "S10": a_port_unheard_of,
    "S12": a_lease_out_of_reach,
}


def plans(law: str) -> Iterable[Plan]:
    return map(WRITTEN[law], SEEDS) if law in WRITTEN else [draw(LAW_FOUND[law])]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_a_broken_law_is_noticed(law: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        BREAKERS[law](patch)
        broken = [played.broken for played in map(play, plans(law)) if played.broken is not None]
    assert {one.law for one in broken} == {law}


@pytest.mark.slow
@pytest.mark.parametrize("law", WRITTEN)
def test_and_nothing_is_noticed_where_nothing_is_broken(law: str) -> None:
    assert all(play(plan, thorough=1).broken is None for plan in plans(law))
