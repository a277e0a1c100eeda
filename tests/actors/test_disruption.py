"""The numbers of a disruption budget, and Events that do not stay for ever."""

from __future__ import annotations

from typing import Any

import pytest
from tests.actors.conftest import Json, Stage, chosen, template

from kubesched.apiserver.status import ApiError


def budget(stage: Stage, **spec: Any) -> None:
    stage.create("PodDisruptionBudget", "web", api="policy/v1", spec={"selector": chosen(), **spec})
    stage.settle()


def status(stage: Stage) -> tuple[int, int, int, int]:
    """expected, desired, healthy, allowed."""
    told = stage.get("PodDisruptionBudget", "web")["status"]
    assert told["observedGeneration"] == 1
    names = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    expected, desired, healthy, allowed = (told.get(name, 0) for name in names)
    return expected, desired, healthy, allowed


def running(stage: Stage, replicas: int = 4) -> None:
    stage.node()
    spec = {"replicas": replicas, "selector": chosen(), "template": template()}
    stage.create("ReplicaSet", "web", api="apps/v1", spec=spec)
    stage.bind()


def evict(stage: Stage, name: str) -> Json:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
    return stage.api.request("POST", f"/api/v1/namespaces/default/pods/{name}/eviction", body)


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"minAvailable": 3}, (4, 3, 4, 1)),
        ({"minAvailable": "50%"}, (4, 2, 4, 2)),
        ({"maxUnavailable": 1}, (4, 3, 4, 1)),
        ({"maxUnavailable": "30%"}, (4, 2, 4, 2)),
        ({"maxUnavailable": 0}, (4, 4, 4, 0)),
    ],
)
def test_what_may_be_missed(stage: Stage, spec: Json, counts: tuple[int, int, int, int]) -> None:
    running(stage)
    budget(stage, **spec)
    assert status(stage) == counts


def test_evictions_spend_the_budget_and_new_pods_refill_it(stage: Stage) -> None:
    running(stage)
    budget(stage, maxUnavailable=1)
    first, second, *_ = stage.names("Pod")
    evict(stage, first)
    with pytest.raises(ApiError) as refused:
        evict(stage, second)
    assert refused.value.code == 429
    stage.bind()
    assert status(stage) == (4, 3, 4, 1)
    evict(stage, second)


def test_a_pod_that_is_not_ready_is_not_healthy(stage: Stage) -> None:
    running(stage)
    budget(stage, minAvailable=3)
    stage.patch("ReplicaSet", "web", {"spec": {"replicas": 6}})
    stage.settle()
    assert status(stage) == (6, 3, 4, 1)


def test_events_go_after_an_hour(stage: Stage) -> None:
    reference = {"kind": "Pod", "namespace": "default", "name": "web"}
    stage.create("Event", "e", involvedObject=reference, reason="Scheduled", message="…")
    stage.wait(3500)
    assert stage.names("Event") == ["e"]
    stage.wait(200)
    assert stage.names("Event") == []
