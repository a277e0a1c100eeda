"""Small clusters, exhaustively: every single fault of a small run, every pair of them, and every place to die.

A run on one or two nodes with up to three pods makes a dozen requests.  Each is made to go wrong in every way, alone
and together with each other one; and the scheduler dies before each of its effects and begins anew.  Most bugs need
no more than that, and what is found here is small already.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, islice

from msgspec import structs

from kubesched.fuzz.plan import Crash, Mishap, Outcome, Plan, Weather
from kubesched.fuzz.play import Played, play
from kubesched.fuzz.tape import Tape

WAYS: tuple[Outcome, ...] = ("lost", "timeout-after-apply", "late", "refused", "failed", "slow", "twice")
_AFTER = {"late": 12_000, "slow": 8_000}
_LAGS = (1, 3_000)  # of news about pods: at once, and late
_PAIRS_AT_MOST = 400


def variations(plan: Plan, every: int = 1) -> Iterator[Plan]:
    """The plan without faults, and then with every one and two of them.

    Args:
        every: of those with faults only one in so many, beginning with one that luck chooses.
    """
    begin = Tape(plan.seed).below(every, "variations")
    for lag in _LAGS:
        weather = Weather(until=plan.weather.until, lag={"": 1, "Pod": lag}, patience=1_000)
        calm = structs.replace(plan, weather=weather, mishaps=())
        yield calm
        first = play(calm)
        if first.broken is not None:
            return  # nothing needs to go wrong
        singles = [mishap for place in first.requests if place[0] != "Publish" for mishap in _mishaps(place)]
        alone = (structs.replace(calm, mishaps=(mishap,)) for mishap in singles)
        yield from islice(chain(_deaths(calm, first.effects), alone, _pairs(calm, singles)), begin, None, every)


def _mishaps(place: tuple[str, str, int]) -> Iterator[Mishap]:
    effect, key, number = place
    for way in WAYS:
        yield Mishap(effect=effect, key=key, number=number, outcome=way, after=_AFTER.get(way, 1_000))


def _deaths(plan: Plan, effects: int) -> Iterator[Plan]:
    """Before every effect, and begun anew at once or when everything has settled."""
    for before in range(effects + 1):
        for down in (1, 16_000):
            crash = Crash(at=0, effects=before, down=down)
            yield structs.replace(plan, happenings=(crash, *plan.happenings))


def _pairs(plan: Plan, singles: list[Mishap]) -> Iterator[Plan]:
    """Two at a time, of different requests; thinned out evenly where there are too many."""
    pairs = [pair for pair in combinations(singles, 2) if pair[0].place != pair[1].place]
    step = max(1, len(pairs) // _PAIRS_AT_MOST)
    for pair in pairs[::step]:
        yield structs.replace(plan, mishaps=pair)


def explore(plan: Plan, every: int = 1) -> Iterator[Played]:
    """Play its variations."""
    for variation in variations(plan, every):
        yield play(variation, tracing=True)
