"""Pods with names and volumes of their own, in order."""

from __future__ import annotations

from typing import Any

from tests.actors.conftest import Json, Stage, chosen, template


def statefulset(stage: Stage, replicas: int = 3, **spec: Any) -> Json:
    spec = {"replicas": replicas, "serviceName": "db", "selector": chosen(), "template": template(), **spec}
    return stage.create("StatefulSet", "db", api="apps/v1", spec=spec)


def update(stage: Stage, image: str) -> None:
    containers = [{"name": "c", "image": image}]
    stage.patch("StatefulSet", "db", {"spec": {"template": {"spec": {"containers": containers}}}})


def images(stage: Stage) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in stage.pods()}


def test_each_waits_for_the_one_before(stage: Stage) -> None:
    stage.node()
    statefulset(stage)
    stage.settle()
    assert stage.names("Pod") == ["db-0"]
    stage.api.bind("default", "db-0", "n1")
    stage.wait(1)
    assert stage.names("Pod") == ["db-0", "db-1"]
    stage.bind()
    stage.bind()
    assert stage.names("Pod") == ["db-0", "db-1", "db-2"]
    pod = stage.get("Pod", "db-1")
    assert pod["spec"]["hostname"] == "db-1"
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
    status = stage.get("StatefulSet", "db")["status"]
    assert [status[name] for name in ("replicas", "readyReplicas", "updatedReplicas", "currentReplicas")] == [3] * 4


def test_in_parallel_nobody_waits(stage: Stage) -> None:
    statefulset(stage, podManagementPolicy="Parallel")
    stage.settle()
    assert stage.names("Pod") == ["db-0", "db-1", "db-2"]


def test_the_last_goes_first(stage: Stage) -> None:
    stage.node()
    statefulset(stage)
    stage.bind()
    stage.bind()
    stage.bind()
    stage.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
    stage.settle()
    going = [pod["metadata"]["name"] for pod in stage.pods() if "deletionTimestamp" in pod["metadata"]]
    assert going == ["db-2"], "one at a time"
    stage.wait(3)
    assert stage.names("Pod") == ["db-0"]


def test_an_update_goes_from_the_last_to_the_first_down_to_the_partition(stage: Stage) -> None:
    stage.node()
    statefulset(stage, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}})
    for _ in range(3):
        stage.bind()
    update(stage, "a:2")
    for _ in range(6):
        stage.bind()
    assert images(stage) == {"db-0": "a:1", "db-1": "a:2", "db-2": "a:2"}
    status = stage.get("StatefulSet", "db")["status"]
    assert status["currentRevision"] != status["updateRevision"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (1, 2)

    stage.delete("Pod", "db-0")
    for _ in range(3):
        stage.bind()
    assert images(stage)["db-0"] == "a:1", "below the partition nothing is new"

    stage.patch("StatefulSet", "db", {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    for _ in range(4):
        stage.bind()
    assert set(images(stage).values()) == {"a:2"}
    status = stage.get("StatefulSet", "db")["status"]
    assert status["currentRevision"] == status["updateRevision"]


def test_claims_are_made_once_and_outlive_their_pod(stage: Stage) -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {
        "requests": {"storage": "1Gi"}
    }}}
    stage.node()
    statefulset(stage, 1, volumeClaimTemplates=[claim])
    stage.bind()
    uid = stage.get("PersistentVolumeClaim", "data-db-0")["metadata"]["uid"]
    assert stage.get("Pod", "db-0")["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "data-db-0"
    stage.delete("Pod", "db-0")
    stage.bind()
    assert stage.get("PersistentVolumeClaim", "data-db-0")["metadata"]["uid"] == uid
