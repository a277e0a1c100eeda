"""A rollout: carefully forward, back again, and never with more or fewer pods than promised."""

from __future__ import annotations

from typing import Any

import pytest
from tests.actors.conftest import Json, Stage, chosen, template

from kubesched.actors.conditions import find_condition
from kubesched.actors.pods import is_active, is_ready


def deployment(stage: Stage, replicas: int = 4, **spec: Any) -> Json:
    spec = {"replicas": replicas, "selector": chosen(), "template": template(), **spec}
    return stage.create("Deployment", "web", api="apps/v1", spec=spec)


def update(stage: Stage, image: str) -> None:
    containers = [{"name": "c", "image": image}]
    stage.patch("Deployment", "web", {"spec": {"template": {"spec": {"containers": containers}}}})


def sizes(stage: Stage) -> dict[str, int]:
    """image → replicas wanted of it."""
    sets = stage.api.list("ReplicaSet")
    return {one["spec"]["template"]["spec"]["containers"][0]["image"]: one["spec"]["replicas"] for one in sets}


def rolled(stage: Stage) -> bool:
    """What `kubectl rollout status` waits for."""
    found = stage.get("Deployment", "web")
    spec, status = found["spec"], found["status"]
    counts = [status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")]
    return status["observedGeneration"] >= found["metadata"]["generation"] and counts == [spec["replicas"]] * 3


@pytest.mark.parametrize(
    ("replicas", "strategy", "least", "most"),
    [
        (4, {}, 3, 5),
        (4, {"maxSurge": 0, "maxUnavailable": 1}, 3, 4),
        (4, {"maxSurge": 1, "maxUnavailable": 0}, 4, 5),
        (10, {"maxSurge": "30%", "maxUnavailable": "20%"}, 8, 13),
        (1, {}, 1, 2),
    ],
)
def test_a_rollout_keeps_its_promises_at_every_moment(
    stage: Stage, replicas: int, strategy: Json, least: int, most: int
) -> None:
    stage.node()
    deployment(stage, replicas, strategy={"type": "RollingUpdate", "rollingUpdate": strategy})
    stage.bind()
    assert rolled(stage)
    seen: list[tuple[int, int]] = []
    watch = stage.store.watch("pods", on_ready=lambda: None)
    pods = {event.obj["metadata"]["name"]: event.obj for event in watch.take()}

    update(stage, "a:2")
    stage.bind()

    for event in watch.take():
        pods[event.obj["metadata"]["name"]] = event.obj
        if event.type == "DELETED":
            del pods[event.obj["metadata"]["name"]]
        active = [pod for pod in pods.values() if is_active(pod)]
        seen.append((sum(map(is_ready, active)), len(active)))
    assert rolled(stage)
    assert sizes(stage) == {"a:1": 0, "a:2": replicas}
    assert min(ready for ready, _ in seen) >= least
    assert max(active for _, active in seen) <= most


def test_going_back_takes_the_old_set_again_as_the_newest_version(stage: Stage) -> None:
    stage.node()
    deployment(stage, 2)
    stage.bind()
    [first] = stage.names("ReplicaSet")
    update(stage, "a:2")
    stage.bind()

    update(stage, "a:1")
    stage.bind()

    assert len(stage.names("ReplicaSet")) == 2
    assert sizes(stage) == {"a:1": 2, "a:2": 0}
    revision = "deployment.kubernetes.io/revision"
    assert stage.get("ReplicaSet", first)["metadata"]["annotations"][revision] == "3"
    assert stage.get("Deployment", "web")["metadata"]["annotations"][revision] == "3"


def test_a_version_that_never_gets_ready_stops_the_rollout_and_is_reported(stage: Stage) -> None:
    stage.node()
    deployment(stage, 4, progressDeadlineSeconds=60)
    stage.bind()
    update(stage, "broken:1")  # nobody binds its pods
    stage.wait(59)
    running = [pod for pod in stage.pods() if is_ready(pod)]
    assert len(running) == 3
    progressing = find_condition(stage.get("Deployment", "web"), "Progressing")
    assert progressing is not None
    assert progressing["reason"] == "ReplicaSetUpdated"

    stage.wait(2)

    progressing = find_condition(stage.get("Deployment", "web"), "Progressing")
    assert progressing is not None
    assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")


def test_recreate_waits_until_the_old_pods_are_gone(stage: Stage) -> None:
    stage.node()
    notes = {"annotations": {"kubesched/stop-after": "8s"}, "labels": {"app": "web"}}
    deployment(stage, 2, strategy={"type": "Recreate"}, template={**template(), "metadata": notes})
    stage.bind()
    update(stage, "a:2")
    stage.wait(6)
    assert {pod["spec"]["containers"][0]["image"] for pod in stage.pods()} == {"a:1"}
    stage.wait(4)
    stage.bind()
    assert {pod["spec"]["containers"][0]["image"] for pod in stage.pods()} == {"a:2"}
    assert rolled(stage)


def test_a_paused_rollout_is_scaled_and_not_rolled(stage: Stage) -> None:
    stage.node()
    deployment(stage, 2)
    stage.bind()
    stage.patch("Deployment", "web", {"spec": {"paused": True}})
    update(stage, "a:2")
    stage.patch("Deployment", "web", {"spec": {"replicas": 3}})
    stage.bind()
    assert sizes(stage) == {"a:1": 3}
    stage.patch("Deployment", "web", {"spec": {"paused": None}})
    stage.bind()
    assert sizes(stage) == {"a:1": 0, "a:2": 3}


def test_old_versions_are_forgotten_beyond_the_limit(stage: Stage) -> None:
    stage.node()
    deployment(stage, 1, revisionHistoryLimit=2)
    stage.bind()
    for number in range(2, 7):
        update(stage, f"a:{number}")
        stage.bind()
    stage.settle()
    assert sorted(sizes(stage)) == ["a:4", "a:5", "a:6"]


def test_scaling_alone_makes_no_version(stage: Stage) -> None:
    deployment(stage, 1)
    stage.settle()
    stage.patch("Deployment", "web", {"spec": {"replicas": 5}})
    stage.settle()
    stage.patch("Deployment", "web", {"spec": {"replicas": 2}})
    stage.settle()
    assert len(stage.names("ReplicaSet")) == 1
    assert len(stage.pods()) == 2


def test_deleting_it_takes_everything_along(stage: Stage) -> None:
    stage.node()
    deployment(stage, 2)
    stage.bind()
    stage.delete("Deployment", "web", propagation="Background")
    stage.wait(1)
    assert stage.names("ReplicaSet") == []
    assert stage.pods() == []
