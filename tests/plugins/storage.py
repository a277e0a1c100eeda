"""Claims, volumes, classes and whatever else storage is made of, in Kubernetes' words with the dull parts filled in."""

from collections.abc import Mapping, Sequence
from typing import Any

from kubesched.api.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    VolumeAttachment,
    read,
)

DRIVER = "csi.example.com"
ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
BIND_COMPLETED = {"pv.kubernetes.io/bind-completed": "yes"}
SELECTED_NODE = "volume.kubernetes.io/selected-node"

Data = Mapping[str, Any]


def pod(
    name: str = "p",
    *claims: str,
    volumes: Sequence[Data] = (),
    on: str = "",
    uid: str = "",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    status: Data | None = None,
    **spec: Any,
) -> Pod:
    """A pod with these claims, and then these volumes."""
    named = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}} for i, claim in enumerate(claims)]
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-of-{name}", "labels": dict(labels or {})}
    written = {"containers": [{"name": "c"}], **spec, "nodeName": on, "volumes": [*named, *volumes]}
    return read({"metadata": metadata, "spec": written, "status": dict(status or {})}, Pod)


def ephemeral(name: str = "scratch") -> Data:
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


def owned_by(owner: str) -> list[Data]:
    return [{"kind": "Pod", "name": owner, "uid": f"uid-of-{owner}", "controller": True}]


def claim(
    name: str = "data",
    volume: str = "",
    *,
    storage_class: str | None = "wait",
    size: str | None = "1Gi",
    modes: Sequence[str] = ("ReadWriteOnce",),
    bound: bool | None = None,
    phase: str = "",
    annotations: Mapping[str, str] | None = None,
    version: str = "",
    **more: Any,
) -> PersistentVolumeClaim:
    """A claim; one that names a volume is bound to it, unless said otherwise."""
    done = BIND_COMPLETED if (bool(volume) if bound is None else bound) else {}
    metadata = {
        "name": name,
        "namespace": more.pop("namespace", "default"),
        "uid": f"uid-of-{name}",
        "resourceVersion": version,
        "annotations": {**done, **(annotations or {})},
        "ownerReferences": more.pop("owners", []),
        "deletionTimestamp": more.pop("deleted", None),
    }
    spec = {
        "volumeName": volume,
        "storageClassName": storage_class,
        "accessModes": list(modes),
        "resources": {"requests": {} if size is None else {"storage": size}},
        **more,
    }
    return read({"metadata": metadata, "spec": spec, "status": {"phase": phase}}, PersistentVolumeClaim)


def volume(
    name: str = "vol",
    *,
    size: str = "1Gi",
    storage_class: str = "wait",
    modes: Sequence[str] = ("ReadWriteOnce",),
    of: PersistentVolumeClaim | None = None,
    labels: Mapping[str, str] | None = None,
    zone: str = "",
    zone_key: str = ZONE,
    handle: str = "",
    driver: str = DRIVER,
    phase: str = "Available",
    version: str = "",
    **more: Any,
) -> PersistentVolume:
    """A volume; `of` makes it the claim's, `zone` reachable from there only, `handle` a CSI volume."""
    spec: dict[str, Any] = {
        "capacity": {"storage": size},
        "accessModes": list(modes),
        "storageClassName": storage_class,
        **({"csi": {"driver": driver, "volumeHandle": handle}} if handle else {}),
    }
    if of is not None:
        spec["claimRef"] = {"namespace": of.namespace, "name": of.name, "uid": of.uid}
    if zone:
        spec["nodeAffinity"] = affinity({"key": zone_key, "operator": "In", "values": zone.split(",")})
    metadata = {
        "name": name,
        "uid": f"uid-of-{name}",
        "resourceVersion": version,
        "labels": dict(labels or {}),
        "annotations": more.pop("annotations", {}),
        "deletionTimestamp": more.pop("deleted", None),
    }
    return read({"metadata": metadata, "spec": {**spec, **more}, "status": {"phase": phase}}, PersistentVolume)


def affinity(*requirements: Data) -> Data:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": list(requirements)}]}}


def storage_class(
    name: str = "wait",
    provisioner: str = DRIVER,
    mode: str | None = "WaitForFirstConsumer",
    allowed: Sequence[Mapping[str, Sequence[str]]] = (),
) -> StorageClass:
    """A class; `allowed` holds topologies as label → values."""
    topologies = [
        {"matchLabelExpressions": [{"key": key, "values": list(values)} for key, values in term.items()]}
        for term in allowed
    ]
    raw = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
    return read({**raw, "allowedTopologies": topologies}, StorageClass)


LOCAL = storage_class("wait", "kubernetes.io/no-provisioner")  # volumes that are there, and no way to make more


def csi_node(name: str = "n1", *, migrated: str = "", **limits: int | None) -> CSINode:
    """A CSINode; `limits` holds what a driver allows, `_` for dots."""
    drivers = [
        {"name": driver.replace("_", "."), "allocatable": None if count is None else {"count": count}}
        for driver, count in limits.items()
    ]
    annotations = {MIGRATED: migrated} if migrated else {}
    return read({"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}, CSINode)


def csi_driver(name: str = DRIVER, capacity: bool | None = True) -> CSIDriver:
    return read({"metadata": {"name": name}, "spec": {"storageCapacity": capacity}}, CSIDriver)


def capacity(
    name: str = "c",
    size: str | None = None,
    at_most: str | None = None,
    where: Mapping[str, str] | None = None,
    **more: Any,
) -> CSIStorageCapacity:
    """How much a class can make, and where; nowhere if it does not say."""
    raw = {
        "metadata": {"name": name, "namespace": "kube-system"},
        "storageClassName": more.get("storage_class", "wait"),
        "capacity": size,
        "maximumVolumeSize": at_most,
        "nodeTopology": None if where is None else {"matchLabels": dict(where)},
    }
    return read(raw, CSIStorageCapacity)


def attachment(name: str, volume: str, node: str = "n1", attacher: str = DRIVER) -> VolumeAttachment:
    spec = {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": volume}}
    return read({"metadata": {"name": name}, "spec": spec}, VolumeAttachment)
