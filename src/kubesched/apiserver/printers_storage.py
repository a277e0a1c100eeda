"""The rows of storage and of dynamic resources."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.apiserver.cells import (
    NONE,
    UNSET,
    Cells,
    Json,
    age,
    or_none,
)

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _access(modes: Iterable[str] | None) -> str:
    found = set(modes or ())
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def volume(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    claim = spec.get("claimRef")
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase", "")
    return [
        obj["metadata"]["name"],
        (spec.get("capacity") or {}).get("storage", ""),
        _access(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        spec.get("storageClassName", ""),
        or_none(spec.get("volumeAttributesClassName"), UNSET),
        status.get("reason", ""),
        age(obj, now),
        or_none(spec.get("volumeMode"), UNSET),
    ]


def claim(obj: Json, now: int) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    bound = bool(spec.get("volumeName"))
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase", "")
    return [
        obj["metadata"]["name"],
        phase,
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "") if bound else "",
        _access(status.get("accessModes")) if bound else "",
        spec.get("storageClassName") or "",
        or_none(spec.get("volumeAttributesClassName"), UNSET),
        age(obj, now),
        or_none(spec.get("volumeMode"), UNSET),
    ]


def storage_class(obj: Json, now: int) -> Cells:
    meta = obj["metadata"]
    default = (meta.get("annotations") or {}).get("storageclass.kubernetes.io/is-default-class") == "true"
    return [
        f"{meta['name']} (default)" if default else meta["name"],
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


def csi_driver(obj: Json, now: int) -> Cells:
    spec = obj["spec"]
    audiences = [token.get("audience", "") for token in spec.get("tokenRequests") or ()]
    return [
        obj["metadata"]["name"],
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        ",".join(audiences) or UNSET,
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        age(obj, now),
    ]


def attachment(obj: Json, now: int) -> Cells:
    spec = obj["spec"]
    volume = (spec.get("source") or {}).get("persistentVolumeName", "")
    attached = (obj.get("status") or {}).get("attached", False)
    return [
        obj["metadata"]["name"],
        spec.get("attacher", ""),
        volume,
        spec.get("nodeName", ""),
        attached,
        age(obj, now),
    ]


def resource_claim(obj: Json, now: int) -> Cells:
    status = obj.get("status") or {}
    states = []
    if "deletionTimestamp" in obj["metadata"]:
        states.append("deleted")
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif "deletionTimestamp" not in obj["metadata"]:
        states.append("pending")
    return [obj["metadata"]["name"], ",".join(states), age(obj, now)]


def resource_slice(obj: Json, now: int) -> Cells:
    spec = obj["spec"]
    node = NONE if spec.get("nodeName") is None else spec["nodeName"]
    if spec.get("allNodes"):
        node = "<all>"
    pool = (spec.get("pool") or {}).get("name", "")
    return [obj["metadata"]["name"], node, spec.get("driver", ""), pool, age(obj, now)]


def csi_node(obj: Json, now: int) -> Cells:
    return [obj["metadata"]["name"], len(obj["spec"].get("drivers") or ()), age(obj, now)]
