"""Claims find a volume or get one made; what is in use stays."""

from __future__ import annotations

from typing import Any

from tests.actors.conftest import Json, Stage


def claim(stage: Stage, name: str = "data", size: str = "5Gi", storage: str = "", **spec: Any) -> Json:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return stage.create("PersistentVolumeClaim", name, spec={**wanted, "storageClassName": storage, **spec})


def volume(stage: Stage, name: str, size: str, **spec: Any) -> Json:
    base = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    return stage.create("PersistentVolume", name, spec={**base, **spec})


def storage_class(stage: Stage, mode: str, **fields: Any) -> None:
    fields |= {"provisioner": "disk.example.com", "volumeBindingMode": mode}
    stage.create("StorageClass", "fast", api="storage.k8s.io/v1", **fields)


def bound(stage: Stage, name: str = "data") -> str:
    """The volume of a claim that says it is bound."""
    found = stage.get("PersistentVolumeClaim", name)
    return found["spec"].get("volumeName", "") if found["status"]["phase"] == "Bound" else ""


def test_the_smallest_volume_that_is_large_enough(stage: Stage) -> None:
    for name, size in (("large", "100Gi"), ("small", "1Gi"), ("right", "10Gi")):
        volume(stage, name, size)
    stage.settle()
    claim(stage)
    stage.settle()
    assert bound(stage) == "right"
    pv = stage.get("PersistentVolume", "right")
    assert pv["status"]["phase"] == "Bound"
    assert pv["spec"]["claimRef"]["uid"] == stage.get("PersistentVolumeClaim", "data")["metadata"]["uid"]
    assert stage.get("PersistentVolumeClaim", "data")["status"]["capacity"] == {"storage": "10Gi"}
    assert stage.get("PersistentVolume", "large")["status"]["phase"] == "Available"


def test_a_claim_waits_for_a_volume_that_will_do(stage: Stage) -> None:
    claim(stage, selector={"matchLabels": {"tier": "gold"}})
    volume(stage, "plain", "10Gi")
    stage.settle()
    assert bound(stage) == ""
    stage.create("PersistentVolume", "gold", metadata={"labels": {"tier": "gold"}}, spec={
        "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}
    })
    stage.settle()
    assert bound(stage) == "gold"


def test_at_once_where_the_class_says_so(stage: Stage) -> None:
    storage_class(stage, "Immediate")
    claim(stage, storage="fast")
    stage.settle()
    pv = stage.get("PersistentVolume", bound(stage))
    assert pv["spec"]["csi"]["driver"] == "disk.example.com"
    assert pv["spec"]["capacity"] == {"storage": "5Gi"}
    assert "nodeAffinity" not in pv["spec"]


def test_where_the_first_consumer_goes(stage: Stage) -> None:
    storage_class(stage, "WaitForFirstConsumer")
    stage.node("n1", **{"topology.kubernetes.io/zone": "za"})
    claim(stage, storage="fast")
    stage.wait(60)
    assert bound(stage) == ""

    stage.patch(
        "PersistentVolumeClaim", "data", {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "n1"}}}
    )
    stage.settle()

    pv = stage.get("PersistentVolume", bound(stage))
    [term] = pv["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    [wanted] = term["matchExpressions"]
    assert (wanted["key"], wanted["values"]) == ("topology.kubernetes.io/zone", ["za"])


def test_a_volume_the_scheduler_chose(stage: Stage) -> None:
    stage.create(
        "StorageClass",
        "local",
        api="storage.k8s.io/v1",
        provisioner="kubernetes.io/no-provisioner",
        volumeBindingMode="WaitForFirstConsumer",
    )
    volume(stage, "a", "10Gi", storageClassName="local")
    volume(stage, "b", "20Gi", storageClassName="local")
    claim(stage, storage="local")
    stage.settle()
    assert bound(stage) == ""
    ref = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    stage.patch("PersistentVolume", "b", {"spec": {"claimRef": ref}})
    stage.settle()
    assert bound(stage) == "b"


def test_reclaiming(stage: Stage) -> None:
    storage_class(stage, "Immediate")
    volume(stage, "kept", "10Gi", persistentVolumeReclaimPolicy="Retain")
    claim(stage, "one")
    claim(stage, "two", storage="fast")
    stage.settle()
    made = bound(stage, "two")
    for name in ("one", "two"):
        stage.delete("PersistentVolumeClaim", name)
    stage.settle()
    assert stage.get("PersistentVolume", "kept")["status"]["phase"] == "Released"
    assert stage.find("PersistentVolume", made) is None


def test_a_claim_in_use_stays_until_its_pod_is_gone(stage: Stage) -> None:
    stage.node()
    claim(stage)
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "a:1"}], "volumes": volumes}
    stage.create("Pod", "web", spec=spec)
    stage.wait(1)
    stage.delete("PersistentVolumeClaim", "data")
    stage.wait(1)
    assert "deletionTimestamp" in stage.get("PersistentVolumeClaim", "data")["metadata"]
    stage.delete("Pod", "web")
    stage.wait(1)
    assert stage.find("PersistentVolumeClaim", "data") is None


def test_a_bound_volume_stays_until_its_claim_is_gone(stage: Stage) -> None:
    volume(stage, "v", "10Gi")
    claim(stage)
    stage.settle()
    stage.delete("PersistentVolume", "v")
    stage.settle()
    assert stage.find("PersistentVolume", "v") is not None
