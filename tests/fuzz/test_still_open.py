"""A leader dies a moment after its last bind, and the next one has not heard of it yet (#137308).

The fifth of the stories in `tests/scenarios/still-open.md`: it needs two schedulers, a Lease, and news that are late.
"""

from typing import Any

import pytest
from tests.fuzz.mutants import MUTANTS

from kubesched.fuzz.plan import Crash, Custom, Hush, Make, Plan, Weather
from kubesched.fuzz.play import play


def pod(name: str, **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **more}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def plan(seed: int) -> Plan:
    """Room for one: `first` gets it, its scheduler dies, and `second` is the first that the next scheduler tries."""
    allocatable = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    node = {"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": allocatable}}
    return Plan(
        seed=seed,
        custom=Custom(wire="elected", kubelet=50_000, grace=True),
        weather=Weather(until=60_000),
        patient=120_000,
        cluster=(node,),
        happenings=(
            Make(at=19_000, obj=pod("first")),
            Make(at=19_001, obj=pod("second", priority=1000, preemptionPolicy="Never")),
            Hush(at=19_002, kind="Pod", lasting=30_000),
            Crash(at=18_999, effects=3, down=30_000),  # when it hears that `first` is bound
        ),
    )


SEEDS = range(5, 9)  # it is by luck whom the silence meets: the old leader, or the next


def test_a_new_leader_catches_up_before_it_binds() -> None:
    for seed in SEEDS:
        assert play(plan(seed), thorough=1).broken is None


def test_one_that_does_not_sells_the_room_twice() -> None:
    with pytest.MonkeyPatch.context() as patch:
        MUTANTS["BM-41"].bring_back(patch)
        laws = {broken.law for seed in SEEDS if (broken := play(plan(seed)).broken) is not None}
    assert laws == {"S1b"}
