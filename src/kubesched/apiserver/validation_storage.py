"""The rules of storage: claims, volumes, classes, and what CSI drivers say of nodes and room."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api import quantity
from kubesched.api.names import check_qualified_name
from kubesched.apiserver import validation_placement, validation_pod, validation_pod_change
from kubesched.apiserver.status import (
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from kubesched.apiserver.validation import (
    Check,
    CheckChange,
    Errors,
    Json,
    faults,
    immutable,
    keeps_spec,
    label_selector,
    one_of,
    subdomain,
)

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")


def _claim(obj: Json) -> Errors:
    return _claim_spec(obj["spec"], "spec")


def _claim_spec(spec: Json, at: str) -> Errors:
    errors = label_selector(spec.get("selector"), f"{at}.selector")
    modes = spec.get("accessModes") or ()
    if not modes:
        errors.append(field_required(f"{at}.accessModes", "at least 1 access mode is required"))
    errors += [field_not_supported(f"{at}.accessModes", m, _ACCESS_MODES) for m in modes if m not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        why = "may not use ReadWriteOncePod with other access modes"
        errors.append(field_forbidden(f"{at}.accessModes", why))
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if asked is None:
        errors.append(field_required(f"{at}.resources[storage]"))
    elif quantity.compare(asked, "0") <= 0:
        errors.append(field_invalid(f"{at}.resources[storage]", asked, "must be greater than zero"))
    if spec.get("storageClassName"):
        errors += subdomain(spec["storageClassName"], f"{at}.storageClassName")
    return errors + one_of(spec, at, "volumeMode", _VOLUME_MODES)


def _claim_update(obj: Json, old: Json) -> Errors:
    errors = _claim(obj)
    new, was = dict(obj["spec"]), dict(old["spec"])
    bound = (old.get("status") or {}).get("phase") == "Bound"
    if not was.get("volumeName") and new.get("volumeName"):
        was["volumeName"] = new["volumeName"]
    if "storageClassName" not in was and "storageClassName" in new:
        was["storageClassName"] = new["storageClassName"]
    asked = ((new.get("resources") or {}).get("requests") or {}).get("storage")
    had = ((was.get("resources") or {}).get("requests") or {}).get("storage")
    if bound:
        new["resources"], was["resources"] = {}, {}
        new["volumeAttributesClassName"] = was["volumeAttributesClassName"] = ""
    if new != was:
        why = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
            "claims\n" + validation_pod_change.diff(was, new)
        )
        errors.append(field_forbidden("spec", why))
    if bound and asked and had and quantity.compare(asked, had) < 0:
        granted = ((old.get("status") or {}).get("capacity") or {}).get("storage", had)
        if quantity.compare(asked, granted) <= 0:
            why = "field can not be less than status.capacity"
            errors.append(field_forbidden("spec.resources.requests.storage", why))
    return errors


def _volume(obj: Json) -> Errors:
    spec = obj["spec"]
    errors: Errors = []
    modes = spec.get("accessModes") or ()
    if not modes:
        errors.append(field_required("spec.accessModes"))
    errors += [field_not_supported("spec.accessModes", m, _ACCESS_MODES) for m in modes if m not in _ACCESS_MODES]
    capacity = spec.get("capacity")
    if not capacity:
        errors.append(field_required("spec.capacity"))
    if set(capacity or ()) != {"storage"}:
        errors.append(field_not_supported("spec.capacity", capacity, ("storage",)))
    elif quantity.compare(capacity["storage"], "0") <= 0:
        if capacity["storage"].startswith("-"):
            units = quantity.parse_units(capacity["storage"])
            errors.append(field_invalid("spec.capacity[storage]", units, "must be a valid resource quantity"))
        errors.append(field_invalid("spec.capacity[storage]", capacity["storage"], "must be greater than zero"))
    errors += one_of(spec, "spec", "persistentVolumeReclaimPolicy", ("Delete", "Recycle", "Retain"))
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        if affinity.get("required") is None:
            errors.append(field_required("spec.nodeAffinity.required", "must specify required node constraints"))
        else:
            errors += validation_placement.node_selector(affinity["required"], "spec.nodeAffinity.required")
    elif "local" in spec:
        errors.append(field_required("spec.nodeAffinity", "Local volume requires node affinity"))
    sources = [key for key in spec if key in _VOLUME_SOURCES]
    if not sources:
        errors.append(field_required("spec", "must specify a volume type"))
    for source in sources[1:]:
        errors.append(field_forbidden(f"spec.{source}", "may not specify more than 1 volume type"))
    errors += validation_pod.source_path(spec, "spec")
    if "local" in spec and not spec["local"].get("path"):
        errors.append(field_required("spec.local.path"))
    if spec.get("storageClassName"):
        errors += subdomain(spec["storageClassName"], "spec.storageClassName")
    return errors + one_of(spec, "spec", "volumeMode", _VOLUME_MODES)


_VOLUME_SOURCES = frozenset(
    (
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "csi",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "glusterfs",
        "hostPath",
        "iscsi",
        "local",
        "nfs",
        "photonPersistentDisk",
        "portworxVolume",
        "quobyte",
        "rbd",
        "scaleIO",
        "storageos",
        "vsphereVolume",
    )
)


def _volume_update(obj: Json, old: Json) -> Errors:
    errors = _volume(obj)
    new, was = obj["spec"], old["spec"]
    if {k: v for k, v in new.items() if k in _VOLUME_SOURCES} != {k: v for k, v in was.items() if k in _VOLUME_SOURCES}:
        why = "spec.persistentvolumesource is immutable after creation\n" + validation_pod_change.diff(was, new)
        errors.append(field_forbidden("spec.persistentvolumesource", why))
    errors += immutable(obj, old, "spec.volumeMode")
    if was.get("nodeAffinity") is not None:
        errors += immutable(obj, old, "spec.nodeAffinity")
    return errors


def _storage_class(obj: Json) -> Errors:
    errors: Errors = []
    provisioner = obj.get("provisioner", "")
    if not provisioner:
        errors.append(field_required("provisioner"))
    else:
        bad = faults(check_qualified_name(provisioner.lower()))
        errors += [field_invalid("provisioner", provisioner.lower(), fault) for fault in bad]
    if "" in (obj.get("parameters") or {}):
        errors.append(field_invalid("parameters", "", "field can not be empty."))
    errors += one_of(obj, "", "reclaimPolicy", ("Delete", "Retain"))
    errors += _topologies(obj.get("allowedTopologies") or ())
    return errors + one_of(obj, "", "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"))


def _topologies(terms: Sequence[Json]) -> Errors:
    """Faults of the places where volumes of a class may be."""
    errors: Errors = []
    for number, term in enumerate(terms):
        at = f"allowedTopologies[{number}].matchLabelExpressions"
        wanted = term.get("matchLabelExpressions") or []
        if term in terms[:number] or not wanted:
            errors.append(field_duplicate(at, ""))
        for index, one in enumerate(wanted):
            values, key = one.get("values") or [], one.get("key", "")
            if not values:
                errors.append(field_required(f"{at}[{index}].values"))
            errors += [
                field_duplicate(f"{at}[{index}].values[{place}]", value)
                for place, value in enumerate(values)
                if value in values[:place]
            ]
            errors += [field_invalid(f"{at}[{index}].key", key, fault) for fault in faults(check_qualified_name(key))]
            if key in [other.get("key", "") for other in wanted[:index]]:
                errors.append(field_duplicate(f"{at}[{index}].key", key))
    return errors


def _storage_class_update(obj: Json, old: Json) -> Errors:
    errors: Errors = []
    if obj.get("parameters") != old.get("parameters"):
        errors.append(field_forbidden("parameters", "updates to parameters are forbidden."))
    for field in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
        errors += immutable(obj, old, field)
    return errors


def _csi_node(obj: Json) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for index, driver in enumerate(obj["spec"].get("drivers") or ()):
        at = f"spec.drivers[{index}]"
        name = driver.get("name", "")
        if not name:
            errors.append(field_required(f"{at}.name"))
        if not driver.get("nodeID"):
            errors.append(field_required(f"{at}.nodeID"))
        count = (driver.get("allocatable") or {}).get("count") or 0
        if count < 0:
            errors.append(
                field_invalid(f"{at}.allocatable.count", count, "must be greater than or equal to 0")
            )
        if name in names:
            errors.append(field_duplicate(f"{at}.name", name))
        names.add(name)
    return errors


def _csi_driver(obj: Json) -> Errors:
    spec = obj["spec"]
    errors = one_of(spec, "spec", "fsGroupPolicy", ("File", "None", "ReadWriteOnceWithFSType"))
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in ("Persistent", "Ephemeral"):
            errors.append(field_not_supported("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral")))
    return errors


def _capacity(obj: Json) -> Errors:
    errors = subdomain(obj.get("storageClassName", ""), "storageClassName")
    for field in ("capacity", "maximumVolumeSize"):
        if obj.get(field, "").startswith("-"):
            errors.append(field_invalid(field, obj[field], "must be greater than or equal to 0"))
    return errors + label_selector(obj.get("nodeTopology"), "nodeTopology")


def _capacity_update(obj: Json, old: Json) -> Errors:
    return [*_capacity(obj), *immutable(obj, old, "nodeTopology"), *immutable(obj, old, "storageClassName")]


def _attachment(obj: Json) -> Errors:
    spec = obj["spec"]
    errors: Errors = []
    if not spec.get("attacher"):
        errors.append(field_required("spec.attacher"))
    source = spec.get("source") or {}
    if not source.get("persistentVolumeName") and source.get("inlineVolumeSpec") is None:
        why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        errors.append(field_required("spec.source", why))
    return errors + subdomain(spec.get("nodeName", ""), "spec.nodeName")


# ── who checks what ──────────────────────────────────────────────────────────────────────────────────────────

CREATE: dict[str, Check] = {
    "core.PersistentVolume": _volume,
    "core.PersistentVolumeClaim": _claim,
    "storage.StorageClass": _storage_class,
    "storage.CSINode": _csi_node,
    "storage.CSIDriver": _csi_driver,
    "storage.CSIStorageCapacity": _capacity,
    "storage.VolumeAttachment": _attachment,
}

UPDATE: dict[str, CheckChange] = {
    "core.PersistentVolume": _volume_update,
    "core.PersistentVolumeClaim": _claim_update,
    "storage.StorageClass": _storage_class_update,
    "storage.CSIStorageCapacity": _capacity_update,
    "storage.VolumeAttachment": keeps_spec(_attachment),
}
