"""The rules of storage: claims, volumes, classes, and what CSI drivers say of nodes and room."""

from __future__ import annotations

import posixpath
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
    field_too_long,
)
from kubesched.apiserver.validation import (
    Check,
    CheckChange,
    Errors,
    Json,
    driver_name,
    faults,
    immutable,
    keeps_spec,
    label_selector,
    not_negative,
    one_of,
    subdomain,
)

_ALONE = "ReadWriteOncePod"
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", _ALONE)
_VOLUME_MODES = ("Block", "Filesystem")


def _claim(obj: Json) -> Errors:
    return _claim_spec(obj["spec"], "spec")


def _claim_spec(spec: Json, at: str) -> Errors:
    errors = label_selector(spec.get("selector"), f"{at}.selector")
    errors += _access_modes(spec, at, "at least 1 access mode is required")
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
    if asked and had and quantity.compare(asked, had) < 0:
        granted = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
        if quantity.compare(asked, granted) <= 0:
            why = "field can not be less than status.capacity"
            errors.append(field_forbidden("spec.resources.requests.storage", why))
    if obj["spec"].get("volumeMode") != old["spec"].get("volumeMode"):
        errors.append(field_invalid("volumeMode", obj["spec"].get("volumeMode"), "field is immutable"))
    return errors


# Of the ways to have a volume, those kube-apiserver asks for, in its order; the first one counts.
_VOLUME_SOURCES = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte"),
    *("cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk"),
    *("portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi"),
)
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")


def _volume(obj: Json) -> Errors:
    spec = obj["spec"]
    errors = _access_modes(spec, "spec")
    capacity = spec.get("capacity")
    if not capacity:
        errors.append(field_required("spec.capacity"))
    if set(capacity or ()) != {"storage"}:
        shown = dict(sorted((capacity or {}).items())) or None
        errors.append(field_not_supported("spec.capacity", shown, ("storage",)))
    for name, amount in sorted((capacity or {}).items()):
        if quantity.compare(amount, "0") <= 0:
            if amount.startswith("-"):
                units = quantity.parse_units(amount)
                errors.append(field_invalid(f"spec.capacity[{name}]", units, "must be a valid resource quantity"))
            errors.append(field_invalid(f"spec.capacity[{name}]", amount, "must be greater than zero"))
    errors += one_of(spec, "spec", "persistentVolumeReclaimPolicy", _RECLAIM_POLICIES)
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        if affinity.get("required") is None:
            errors.append(field_required("spec.nodeAffinity.required", "must specify required node constraints"))
        else:
            errors += validation_placement.node_selector(affinity["required"], "spec.nodeAffinity.required")
    errors += _volume_source(spec)
    if spec.get("storageClassName"):
        errors += subdomain(spec["storageClassName"], "spec.storageClassName")
    return errors + one_of(spec, "spec", "volumeMode", _VOLUME_MODES)


def _access_modes(spec: Json, at: str, why: str = "") -> Errors:
    modes = spec.get("accessModes") or ()
    errors: Errors = [] if modes else [field_required(f"{at}.accessModes", why)]
    errors += [field_not_supported(f"{at}.accessModes", m, _ACCESS_MODES) for m in modes if m not in _ACCESS_MODES]
    if _ALONE in modes and any(mode in _ACCESS_MODES for mode in modes if mode != _ALONE):
        errors.append(field_forbidden(f"{at}.accessModes", f"may not use {_ALONE} with other access modes"))
    return errors


def _volume_source(spec: Json) -> Errors:
    """Faults of where a volume is: one way to say so, and that one in full."""
    sources = [source for source in _VOLUME_SOURCES if source in spec]
    if not sources:
        return [field_required("spec", "must specify a volume type")]
    errors: Errors = []
    match sources[0]:
        case "hostPath":
            errors += validation_pod.source_path(spec, "spec")
        case "local":
            path = spec["local"].get("path", "")
            if not path:
                errors.append(field_required("spec.local.path"))
            elif ".." in path.split("/"):
                errors.append(field_invalid("spec.local.path", path, "must not contain '..'"))
            if spec.get("nodeAffinity") is None:
                errors.append(field_required("spec.nodeAffinity", "Local volume requires node affinity"))
        case "csi":
            errors += driver_name(spec["csi"].get("driver", ""), "spec.csi.driver")
            if not spec["csi"].get("volumeHandle"):
                errors.append(field_required("spec.csi.volumeHandle"))
        case "nfs":
            errors += [field_required(f"spec.nfs.{name}") for name in ("server", "path") if not spec["nfs"].get(name)]
            path = spec["nfs"].get("path", "")
            if not path.startswith("/"):
                errors.append(field_invalid("spec.nfs.path", path, "must be an absolute path"))
    for source in sources[1:]:
        named = "cephFS" if source == "cephfs" else source
        errors.append(field_forbidden(f"spec.{named}", "may not specify more than 1 volume type"))
    host = (spec.get("hostPath") or {}).get("path", "")
    if host and posixpath.normpath(host) in ("/", "//") and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        why = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(field_forbidden("spec.persistentVolumeReclaimPolicy", why))
    return errors


def _volume_update(obj: Json, old: Json) -> Errors:
    """Kept from kube-apiserver: a changed volume is looked at twice."""
    errors = _volume(obj) * 2
    new, was = obj["spec"], old["spec"]
    if {k: v for k, v in new.items() if k in _VOLUME_SOURCES} != {k: v for k, v in was.items() if k in _VOLUME_SOURCES}:
        why = "spec.persistentvolumesource is immutable after creation\n" + validation_pod_change.diff(was, new)
        errors.append(field_forbidden("spec.persistentvolumesource", why))
    if new.get("volumeMode") != was.get("volumeMode"):
        errors.append(field_invalid("volumeMode", new.get("volumeMode"), "field is immutable"))
    if was.get("nodeAffinity") is not None and new.get("nodeAffinity") != was["nodeAffinity"]:
        errors.append(field_invalid("nodeAffinity", new.get("nodeAffinity"), "field is immutable"))
    return errors


# ── classes ─────────────────────────────────────────────────────────────────────────────────────────────────

_PARAMETERS_MAX, _PARAMETER_BYTES_MAX = 512, 256 * 1024


def _storage_class(obj: Json) -> Errors:
    errors = _provisioner(obj, "provisioner") + _parameters(obj)
    errors += one_of(obj, "", "reclaimPolicy", ("Delete", "Retain"))
    errors += one_of(obj, "", "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"))
    return errors + _topologies(obj.get("allowedTopologies") or ())


def _provisioner(obj: Json, field: str) -> Errors:
    name = obj.get(field, "").lower()
    if not name:
        return [field_required(field)]
    return [field_invalid(field, name, fault) for fault in faults(check_qualified_name(name))]


def _parameters(obj: Json) -> Errors:
    found = obj.get("parameters") or {}
    if len(found) > _PARAMETERS_MAX:
        return [field_too_long("parameters", _PARAMETERS_MAX)]
    errors: Errors = [field_invalid("parameters", "", "field can not be empty.")] if "" in found else []
    if sum(len(key) + len(value) for key, value in found.items()) > _PARAMETER_BYTES_MAX:
        errors.append(field_too_long("parameters", _PARAMETER_BYTES_MAX))
    return errors


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
    errors = _storage_class(obj)
    for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        errors += immutable(obj, old, field)
    return errors


def _attributes_class(obj: Json) -> Errors:
    errors = _provisioner(obj, "driverName") + _parameters(obj)
    if not obj.get("parameters"):
        errors.append(field_required("parameters", "must contain at least one key/value pair"))
    return errors


def _attributes_class_update(obj: Json, old: Json) -> Errors:
    errors: Errors = []
    for field in ("driverName", "parameters"):
        if obj.get(field) != old.get(field):
            errors.append(field_forbidden(field, f"updates to {field} are forbidden."))
    return errors + _attributes_class(obj)


# ── what CSI drivers say ────────────────────────────────────────────────────────────────────────────────────

_NODE_ID_MAX = 256


def _csi_node(obj: Json) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for index, driver in enumerate(obj["spec"].get("drivers") or ()):
        at = f"spec.drivers[{index}]"
        name, node = driver.get("name", ""), driver.get("nodeID", "")
        errors += driver_name(name, f"{at}.name")
        if not node:
            errors.append(field_required(f"{at}.nodeID"))
        if len(node) > _NODE_ID_MAX:
            errors.append(field_invalid(f"{at}.nodeID", node, f"must be {_NODE_ID_MAX} characters or less"))
        errors += not_negative(driver.get("allocatable") or {}, f"{at}.allocatable", "count")
        if name in names:
            errors.append(field_duplicate(f"{at}.name", name))
        names.add(name)
        errors += _topology_keys(driver.get("topologyKeys") or (), at)
    return errors


def _topology_keys(keys: Sequence[str], at: str) -> Errors:
    errors: Errors = []
    for index, key in enumerate(keys):
        if not key:
            errors.append(field_required(at))
        if key in keys[:index]:
            errors.append(field_duplicate(at, key))
        errors += [field_invalid(at, key, fault) for fault in faults(check_qualified_name(key))]
    return errors


def _csi_node_update(obj: Json, old: Json) -> Errors:
    """A driver comes and goes; while it is there only how many volumes it can have may change."""
    errors = _csi_node(obj)
    for was in old["spec"].get("drivers") or ():
        for driver in obj["spec"].get("drivers") or ():
            same = {**driver, "allocatable": None} == {**was, "allocatable": None}
            if driver.get("name") == was.get("name") and not same:
                shown = {key: value for key, value in driver.items() if key != "allocatable"}
                errors.append(field_invalid("spec.drivers", shown, "field is immutable"))
    return errors


_LIFECYCLES = ("Persistent", "Ephemeral")
_TOKEN_SECONDS_MIN, _TOKEN_SECONDS_MAX = 600, 1 << 32
_UPDATE_SECONDS_MIN = 10


def _csi_driver(obj: Json) -> Errors:
    spec = obj["spec"]
    errors = one_of(spec, "spec", "fsGroupPolicy", ("File", "None", "ReadWriteOnceWithFSType"))
    errors += _token_requests(spec.get("tokenRequests") or ())
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in _LIFECYCLES:
            errors.append(field_not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLES))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _UPDATE_SECONDS_MIN:
        why = f"must be greater than or equal to {_UPDATE_SECONDS_MIN} seconds"
        errors.append(field_invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, why))
    in_secrets = spec.get("serviceAccountTokenInSecrets")
    if in_secrets is not None and not spec.get("tokenRequests"):
        why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(field_invalid("spec.serviceAccountTokenInSecrets", in_secrets, why))
    return errors


def _token_requests(requests: Sequence[Json]) -> Errors:
    errors: Errors = []
    audiences: set[str] = set()
    for index, request in enumerate(requests):
        at, audience = f"spec.tokenRequests[{index}]", request.get("audience", "")
        if audience in audiences:
            errors.append(field_duplicate(f"{at}.audience", audience))
            continue
        audiences.add(audience)
        lasts = request.get("expirationSeconds", _TOKEN_SECONDS_MIN)
        if lasts < _TOKEN_SECONDS_MIN:
            why = "may not specify a duration less than 10 minutes"
            errors.append(field_invalid(f"{at}.expirationSeconds", lasts, why))
        if lasts > _TOKEN_SECONDS_MAX:
            why = "may not specify a duration larger than 2^32 seconds"
            errors.append(field_invalid(f"{at}.expirationSeconds", lasts, why))
    return errors


def _csi_driver_update(obj: Json, old: Json) -> Errors:
    errors = _csi_driver(obj)
    new, was = obj["spec"], old["spec"]
    # Kept from kube-apiserver: the field is attachRequired, only the fault calls it so.
    for field, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        if new.get(field) != was.get(field):
            errors.append(field_invalid(f"spec.{shown}", new.get(field), "field is immutable"))
    return errors


def _capacity(obj: Json) -> Errors:
    errors = label_selector(obj.get("nodeTopology"), "nodeTopology")
    errors += subdomain(obj.get("storageClassName", ""), "storageClassName")
    if obj.get("capacity", "").startswith("-"):
        errors.append(field_invalid("capacity", obj["capacity"], "must be greater than or equal to 0"))
    return errors


def _capacity_update(obj: Json, old: Json) -> Errors:
    return [*_capacity(obj), *immutable(obj, old, "nodeTopology"), *immutable(obj, old, "storageClassName")]


def _attachment(obj: Json) -> Errors:
    spec = obj["spec"]
    errors = driver_name(spec.get("attacher", ""), "spec.attacher")
    source = spec.get("source") or {}
    named, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if named is None and inline is None:
        errors.append(field_required("spec.source", why))
    elif named is not None and inline is not None:
        errors.append(field_forbidden("spec.source", why))
    elif named == "":
        at = "spec.source.persistentVolumeName"
        errors.append(field_required(at, "must specify non empty persistentVolumeName"))
    errors += subdomain(spec.get("nodeName", ""), "spec.nodeName")
    return errors + (subdomain(named, "spec.source.persistentVolumeName") if named is not None else [])


# ── who checks what ──────────────────────────────────────────────────────────────────────────────────────────

CREATE: dict[str, Check] = {
    "core.PersistentVolume": _volume,
    "core.PersistentVolumeClaim": _claim,
    "storage.StorageClass": _storage_class,
    "storage.CSINode": _csi_node,
    "storage.CSIDriver": _csi_driver,
    "storage.CSIStorageCapacity": _capacity,
    "storage.VolumeAttachment": _attachment,
    "storage.VolumeAttributesClass": _attributes_class,
}

UPDATE: dict[str, CheckChange] = {
    "core.PersistentVolume": _volume_update,
    "core.PersistentVolumeClaim": _claim_update,
    "storage.StorageClass": _storage_class_update,
    "storage.CSINode": _csi_node_update,
    "storage.CSIDriver": _csi_driver_update,
    "storage.CSIStorageCapacity": _capacity_update,
    "storage.VolumeAttachment": keeps_spec(_attachment),
    "storage.VolumeAttributesClass": _attributes_class_update,
}
