"""Runs that broke a law once, cut down to what mattered, break none any more.

`kubesched fuzz` leaves them here; each is picked up by itself.
"""

from pathlib import Path

import pytest

from kubesched.fuzz.plan import read_plan
from kubesched.fuzz.play import play

PLANS = sorted((Path(__file__).parent / "regressions").glob("*.yaml"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_a_run_that_broke_a_law_breaks_none_any_more(path: Path) -> None:
    plan = read_plan(path)
    assert plan.broke, f"{path.name} does not say which law it broke"
    assert play(plan, thorough=1).broken is None


def test_there_are_some() -> None:
    assert PLANS
