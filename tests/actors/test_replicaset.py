"""As many pods as are wanted: no more, no fewer, and which of them go first."""

from __future__ import annotations

from typing import Any

from tests.actors.conftest import Json, Stage, chosen, template


def replicaset(stage: Stage, replicas: int, name: str = "web", **spec: Any) -> Json:
    spec = {"replicas": replicas, "selector": chosen(), "template": template(), **spec}
    return stage.create("ReplicaSet", name, api="apps/v1", spec=spec)


def test_pods_appear_and_say_whose_they_are(stage: Stage) -> None:
    owner = replicaset(stage, 3)
    stage.settle()
    assert len(stage.pods()) == 3
    [ref] = stage.pods()[0]["metadata"]["ownerReferences"]
    assert (ref["kind"], ref["name"], ref["uid"], ref["controller"]) == (
        "ReplicaSet",
        "web",
        owner["metadata"]["uid"],
        True,
    )


def test_more_than_a_burst(stage: Stage) -> None:
    replicaset(stage, 130)
    stage.settle()
    assert len(stage.pods()) == 130


def test_scaling_down_takes_those_that_are_missed_least(stage: Stage) -> None:
    stage.node()
    replicaset(stage, 2)
    stage.bind()
    running = {pod["metadata"]["name"] for pod in stage.pods()}
    stage.patch("ReplicaSet", "web", {"spec": {"replicas": 4}})
    stage.settle()

    stage.patch("ReplicaSet", "web", {"spec": {"replicas": 2}})
    stage.settle()

    assert {pod["metadata"]["name"] for pod in stage.pods()} == running


def test_a_cost_of_deletion_decides_among_equals(stage: Stage) -> None:
    stage.node()
    replicaset(stage, 3)
    stage.bind()
    cheap = stage.names("Pod")[1]
    note = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}}
    stage.patch("Pod", cheap, note)
    stage.patch("ReplicaSet", "web", {"spec": {"replicas": 2}})
    stage.wait(1)
    assert cheap not in stage.names("Pod")
    assert len(stage.pods()) == 2


def test_a_pod_that_ended_is_replaced(stage: Stage) -> None:
    stage.node()
    replicaset(stage, 1)
    stage.bind()
    [first] = stage.names("Pod")
    stage.patch("Pod", first, {"status": {"phase": "Failed"}})
    stage.settle()
    assert len(stage.pods()) == 2
    assert stage.get("ReplicaSet", "web")["status"]["replicas"] == 1


def test_status_counts_what_is_ready(stage: Stage) -> None:
    stage.node()
    replicaset(stage, 3, minReadySeconds=10)
    stage.bind()
    status = stage.get("ReplicaSet", "web")["status"]
    assert (status["replicas"], status["readyReplicas"], status.get("availableReplicas", 0)) == (3, 3, 0)
    stage.wait(11)
    status = stage.get("ReplicaSet", "web")["status"]
    assert (status["availableReplicas"], status["fullyLabeledReplicas"], status["observedGeneration"]) == (3, 3, 1)


def test_an_orphan_with_the_right_labels_is_adopted(stage: Stage) -> None:
    labels = {"labels": {"app": "web"}}
    spec = {"containers": [{"name": "c", "image": "a:1"}]}
    stage.create("Pod", "stray", metadata=labels, spec=spec)
    owner = replicaset(stage, 1)
    stage.settle()
    assert stage.names("Pod") == ["stray"]
    assert stage.get("Pod", "stray")["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]


def test_a_pod_whose_label_was_taken_off_is_let_go(stage: Stage) -> None:
    replicaset(stage, 1)
    stage.settle()
    [name] = stage.names("Pod")
    stage.patch("Pod", name, {"metadata": {"labels": {"app": None}}})
    stage.settle()
    assert len(stage.pods()) == 2
    assert not stage.get("Pod", name)["metadata"].get("ownerReferences")


def test_a_replication_controller_is_the_same_with_a_plain_selector(stage: Stage) -> None:
    spec = {"replicas": 2, "selector": {"app": "web"}, "template": template()}
    stage.create("ReplicationController", "web", spec=spec)
    stage.settle()
    assert len(stage.pods()) == 2
