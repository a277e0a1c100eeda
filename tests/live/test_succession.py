"""How long a cluster is without a scheduler when its leader goes: every wait and every round trip, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.conftest import PODS, node, pod
from tests.live.virtual import Candidate, Stage

from kubesched.api.time import Duration, Instant, milliseconds, seconds
from kubesched.wire.client import LAST_WORDS_WITHIN
from kubesched.wire.elector import LeaseOptions

EVERY = milliseconds(25)  # comes a pod: forty a second
CRASH: Duration = seconds(17)
STOP: Duration = seconds(2)
NEAR, FAR = milliseconds(1), milliseconds(100)  # one way to a server in the same room, and to one that is far too busy


class Changing:
    """A leader at work, a standby that has seen everything, and pods that keep coming."""

    def __init__(self, one_way: Duration, **how: Any) -> None:
        self.stage = stage = Stage(one_way)
        for i in range(20):
            stage.create("/api/v1/nodes", node(f"n{i}"))
        self.first: Candidate = stage.candidate("first", **how)
        stage.run(lambda: self.first.world.client.leading)
        self.second: Candidate = stage.candidate("second", **how)
        self.created = 0
        self._come()
        stage.run(lambda: len(stage.bindings("first")) >= 100)

    def _come(self) -> None:
        self.created += 1
        self.stage.create(PODS, pod(f"web-{self.created}"))
        self.stage.later(EVERY, self._come)

    def until_bound(self, ended: Instant) -> Duration:
        """How long after that moment the successor's first binding reaches the server."""
        stage = self.stage
        stage.run(lambda: bool(stage.bindings("second")))
        return Duration(stage.bindings("second")[0] - ended)

    def waiting(self) -> list[str]:
        listed = self.stage.get(PODS)["items"]
        return [one["metadata"]["name"] for one in listed if not one["spec"].get("nodeName")]


@pytest.mark.parametrize("one_way", [NEAR, FAR])
@pytest.mark.parametrize("phase", [0, 0.7, 1.4, 1.999])
def test_a_leader_that_dies_is_succeeded_when_its_lease_is_over_and_a_few_round_trips_later(
    one_way: Duration, phase: float
) -> None:
    it = Changing(one_way)
    ended = it.stage.run_for(seconds(phase)).now  # it renews every two seconds
    it.first.kill()
    taken = it.until_bound(ended)
    renewed = it.stage.renewed("first")
    assert taken <= CRASH
    # The news of the last renewal; then a read and a write of the Lease, a look where the server is, a view of the
    # nodes made anew, and the binding: whoever waited any longer has waited for a clock.
    seen = renewed + one_way
    assert ended + taken - (seen + LeaseOptions().duration) <= 9 * one_way


@pytest.mark.parametrize("qps", [50.0, -1.0])
@pytest.mark.parametrize("one_way", [NEAR, milliseconds(20), FAR])
def test_a_leader_that_is_stopped_is_succeeded_at_once_however_much_it_still_had_to_say(
    one_way: Duration, qps: float
) -> None:
    it = Changing(one_way, qps=qps)
    ended = it.stage.now
    it.first.stop()
    taken = it.until_bound(ended)
    assert taken <= STOP
    assert taken <= LAST_WORDS_WITHIN + 12 * one_way
    assert not it.first.alive
    assert not it.first.world.lost
    released = next(at for at, who, _ in it.stage.asked if who == "second" and at > ended)
    assert [one.path for at, who, one in it.stage.asked if who == "first" and at > released] == []
    it.stage.run_for(seconds(5))
    assert len(it.waiting()) * EVERY <= 3 * one_way + EVERY, "but for those that came just now, all are bound"
    bound = [one.path for _, _, one in it.stage.asked if one.path.endswith("/binding")]
    assert len(bound) == len(set(bound)), "nobody was bound twice"


def test_nor_does_it_wait_for_bindings_that_the_rate_holds_back() -> None:
    it = Changing(NEAR, qps=50.0, burst=100)
    for i in range(500):
        it.stage.create(PODS, pod(f"burst-{i}"))
    ended = it.stage.run_for(milliseconds(100)).now
    assert len(it.first.core.flights) > 300, "decided, and not on their way yet"
    it.first.stop()
    assert it.until_bound(ended) <= LAST_WORDS_WITHIN + 12 * NEAR
    it.stage.run_for(seconds(30))
    assert [name for name in it.waiting() if name.startswith("burst")] == []
    bound = [one.path for _, _, one in it.stage.asked if one.path.endswith("/binding")]
    assert len(bound) == len(set(bound)), "nobody was bound twice"


def test_events_are_written_where_there_is_time() -> None:
    it = Changing(NEAR)
    it.first.stop()
    it.stage.run(lambda: not it.first.alive)
    said = [one for _, who, one in it.stage.asked if who == "first" and one.path.endswith("/events")]
    assert len(said) == len(it.stage.bindings("first"))
