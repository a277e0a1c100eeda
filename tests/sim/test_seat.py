"""What may go wrong between a scheduler and its cluster, and what the scheduler makes of it."""

from __future__ import annotations

from random import Random
from typing import Any, get_args

import pytest

from kubesched.api.time import Duration, Instant, milliseconds, seconds
from kubesched.assemble import build
from kubesched.core.messages import Completed
from kubesched.framework.records import State
from kubesched.sim import Simulation
from kubesched.sim.faults import EFFECTS, OUTCOMES, Fault, Faults, Outcome
from kubesched.sim.seat import Latency

ALLOCATABLE = {"status": {"allocatable": {"cpu": "1", "pods": "9"}}}
WANTS_ALL = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}


def simulated(*faults: Fault, latency: Latency | None = None, pods: tuple[str, ...] = ("a",)) -> tuple[Simulation, Any]:
    """One node with room for one pod, and the times at which answers came."""
    simulation = Simulation(build(), latency=latency, seed=3)
    for fault in faults:
        simulation.world.seat.faults.add(fault, simulation.world.now)
    simulation.client.create({"kind": "Node", "metadata": {"name": "n1"}, **ALLOCATABLE})
    for name in pods:
        simulation.client.create({"kind": "Pod", "metadata": {"name": name}, **WANTS_ALL})
    answers: list[tuple[Duration, bool]] = []

    def heard(moment: Any) -> None:
        if isinstance(moment.event, Completed):
            answers.append((Duration(moment.at - simulation.world.start), moment.event.answer.ok))

    simulation.listen(heard)
    return simulation, answers


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_whatever_becomes_of_a_bind_the_pod_is_bound_once_and_room_is_never_sold_twice(outcome: Outcome) -> None:
    simulation, _ = simulated(Fault(effect="Bind", outcome=outcome, after=seconds(5)), pods=("a", "b"))
    simulation.run(until=seconds(400))
    where = {name: simulation.client.node_of(name) for name in "ab"}
    assert sorted(where.values()) == ["", "n1"]
    bound = next(name for name, node in where.items() if node)
    assert simulation.core.state(f"default/{bound}") is State.BOUND


def test_a_request_that_is_lost_is_asked_about_when_its_time_is_up() -> None:
    simulation, answers = simulated(Fault(effect="Bind", outcome="lost", after=seconds(5)))
    simulation.run(until=seconds(4))
    assert simulation.core.state("default/a") is State.BINDING
    simulation.run(until=seconds(5))
    assert simulation.core.state("default/a") is State.AMBIGUOUS
    assert simulation.core.free("n1")["cpu"] == 0, "its room is kept until that is known"
    simulation.run(until=seconds(60))
    assert simulation.client.node_of("a") == "n1"
    assert answers[0] == (seconds(5), False)


def test_a_refusal_comes_at_once_and_gives_the_room_back() -> None:
    simulation, answers = simulated(Fault(effect="Bind", outcome="refused", code=403, reason="Forbidden"))
    simulation.run(until=milliseconds(2))
    assert answers[0] == (milliseconds(2), False)
    assert simulation.core.state("default/a") is State.BACKOFF
    simulation.run(until=seconds(30))
    assert simulation.client.node_of("a") == "n1", "the fault was for one bind"


def test_news_that_are_held_back_come_together_later() -> None:
    simulation, _ = simulated(pods=())
    simulation.world.seat.hold_news("Pod", Instant(simulation.world.start + seconds(8)))
    create = simulation.client.create
    for at in (2, 5):
        simulation.at(seconds(at), lambda at=at: create({"kind": "Pod", "metadata": {"name": f"p{at}"}, "spec": {}}))
    simulation.run(until=seconds(7))
    assert simulation.core.state("default/p2") is None
    simulation.run(until=seconds(20))
    assert {simulation.client.node_of(name) for name in ("p2", "p5")} == {"n1"}
    assert simulation.core.story("default/p2")[0].at == simulation.world.start + seconds(8)


def test_jitter_is_drawn_from_the_seed() -> None:
    def times() -> list[Duration]:
        simulation, answers = simulated(latency=Latency(jitter=milliseconds(50)), pods=("a", "b"))
        simulation.run(until=seconds(60))
        return [at for at, _ in answers]

    assert times() == times()
    assert any(at % milliseconds(1) for at in times())


# ── which effect meets which fault ───────────────────────────────────────────────────────────────────────────


def test_a_fault_meets_its_effect_and_pod_so_many_times_and_for_so_long() -> None:
    faults = Faults(Random(1))
    now, later = Instant(0), Instant(seconds(10))
    faults.add(Fault(effect="Bind", outcome="lost", pod="default/a", times=2), now)
    faults.add(Fault(effect="Evict", outcome="late", times=9, lasting=seconds(10)), now)
    assert faults.meet("Bind", "default/b", now) is None
    assert [faults.meet("Bind", "default/a", now) is not None for _ in range(3)] == [True, True, False]
    assert faults.meet("Evict", "default/x", Instant(later - 1)) is not None
    assert faults.meet("Evict", "default/x", later) is None


def test_chance_is_what_it_says() -> None:
    faults = Faults(Random(1))
    faults.add(Fault(effect="Bind", outcome="lost", times=10_000, chance=0.25), Instant(0))
    met = sum(faults.meet("Bind", "default/a", Instant(0)) is not None for _ in range(2000))
    assert 400 < met < 600


def test_every_word_of_a_scenario_is_known_here() -> None:
    assert set(EFFECTS) == {"Bind", "PatchPod", "ReadPod", "Evict", "Publish", "Call"}
    assert set(OUTCOMES) == {"lost", "timeout-after-apply", "late", "refused"}
