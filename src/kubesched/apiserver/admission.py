"""The admission a scheduler depends on: rules that need to know other objects, or the server's settings.

Priority classes become numbers, pods tolerate lost nodes for five minutes, runtime classes add their overhead, claims
get the default storage class, nothing is made in a namespace that is missing or going.  Each rule is a function that
changes a new object or raises 403 in the words of the plugin it stands for; the table at the end says which kinds
they look at, in the order of kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from kubesched.api import quantity
from kubesched.apiserver.kinds import Resource
from kubesched.apiserver.status import ApiError, forbidden, not_found
from kubesched.apiserver.store import Store
from kubesched.apiserver.strategy import container_requests

Json = dict[str, Any]

IMMORTAL_NAMESPACES = ("default", "kube-system", "kube-public")
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_TOPOLOGY_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_SERVICE_NETWORK = "10.96"
_TOLERATION_SECONDS = 300
_CLASSES = "scheduling.k8s.io/priorityclasses"
_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

# Stored objects are immutable, so all pods may share these.
TOLERATES_LOST: list[Json] = [
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS} for key in _LOST
]

SYSTEM_PRIORITY_CLASSES = (
    ("system-cluster-critical", 2_000_000_000, "Used for system critical pods that must run in the cluster."),
    ("system-node-critical", 2_000_001_000, "Used for system critical pods that must not be moved from their node."),
)


@dataclass(frozen=True, slots=True)
class Rules:
    """Which of the optional rules are in force.

    taint_new_nodes: a new node is not-ready until a controller says otherwise, as in a real cluster.
    protect_storage: volumes, claims and pod groups in use cannot vanish; a controller must take the finalizers off.
    follow_all: metadata.managedFields of every object are kept, not only of those that somebody applies.
    """

    taint_new_nodes: bool = False
    protect_storage: bool = False
    follow_all: bool = False


def namespace_exists(store: Store, storage: str, namespace: str, name: str) -> None:
    """Refuse to create in a namespace that is not there, or not for long."""
    stored = store.find("namespaces", "", namespace)
    if stored is None:
        raise not_found("namespaces", namespace)
    if stored.obj["metadata"].get("deletionTimestamp") is None:
        return
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    raise forbidden(storage, name, why, [cause])


def check_delete(resource: Resource, name: str) -> None:
    """Some namespaces are never deleted."""
    if resource.shape == "core.Namespace" and name in IMMORTAL_NAMESPACES:
        raise forbidden("namespaces", name, "this namespace may not be deleted")


def admit_create(store: Store, rules: Rules, resource: Resource, obj: Json) -> None:
    """Apply every rule for new objects of this kind."""
    for rule in _CREATE.get(resource.shape, ()):
        rule(store, rules, obj)


def admit_update(store: Store, rules: Rules, resource: Resource, obj: Json, old: Json) -> None:
    """Apply every rule for changed objects of this kind."""
    for rule in _UPDATE.get(resource.shape, ()):
        rule(store, obj, old)


# ── priority ────────────────────────────────────────────────────────────────────────────────────────────────


# Store → (changes it had seen, its default class): every pod asks, and the answer hardly ever changes.
_defaults: WeakKeyDictionary[Store, tuple[int, Json | None]] = WeakKeyDictionary()


def _default_class(store: Store) -> Json | None:
    """The priority class of pods that name none: of several defaults, the lowest."""
    changes = store.changes(_CLASSES)
    known = _defaults.get(store)
    if known is not None and known[0] == changes:
        return known[1]
    best: Json | None = None
    for stored in store.list(_CLASSES).items:
        if stored.obj.get("globalDefault") and (best is None or stored.obj["value"] < best["value"]):
            best = stored.obj
    _defaults[store] = changes, best
    return best


def _resolve_class(store: Store, name: str, refuse: Callable[[str], ApiError]) -> Json | None:
    if not name:
        return _default_class(store)
    stored = store.find(_CLASSES, "", name)
    if stored is None:
        raise refuse(f"no PriorityClass with name {name} was found")
    return stored.obj


def _refusal(resource: str, obj: Json) -> Callable[[str], ApiError]:
    """How a plugin of admission refuses an object, which may not have its name yet."""
    meta = obj["metadata"]
    return lambda why: forbidden(resource, meta.get("name") or meta.get("generateName") or "Unknown", why)


def _pod_priority(store: Store, rules: Rules, obj: Json) -> None:
    spec = obj["spec"]
    refuse = _refusal("pods", obj)
    chosen = _resolve_class(store, spec.get("priorityClassName", ""), refuse)
    value, policy = 0, "PreemptLowerPriority"
    if chosen is not None:
        spec["priorityClassName"] = chosen["metadata"]["name"]
        value, policy = chosen["value"], chosen.get("preemptionPolicy", policy)
    given = spec.get("priority")
    computed = "priority admission controller computed"
    if given is not None and given != value:
        raise refuse(
            f"the integer value of priority ({given}) must not be provided in pod spec; {computed} {value} "
            "from the given PriorityClass name"
        )
    spec["priority"] = value
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        raise refuse(
            f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; {computed} {policy} "
            "from the given PriorityClass name"
        )
    spec["preemptionPolicy"] = policy


def _pod_group_priority(store: Store, rules: Rules, obj: Json) -> None:
    spec = obj["spec"]
    refuse = _refusal("scheduling.k8s.io/podgroups", obj)
    chosen = _resolve_class(store, spec.get("priorityClassName", ""), refuse)
    if chosen is not None:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    value = 0 if chosen is None else chosen["value"]
    given = spec.get("priority")
    if given is not None and given != value:
        raise refuse(
            f"the integer value of priority ({given}) must not be provided in pod group spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
    spec["priority"] = value


def _one_default_class(store: Store, obj: Json) -> None:
    found = _default_class(store) if obj.get("globalDefault") else None
    if found is not None:
        why = f"PriorityClass {found['metadata']['name']} is already marked as default. Only one default can exist"
        raise _refusal("scheduling.k8s.io/priorityclasses", obj)(why)


def _one_default_class_kept(store: Store, obj: Json, old: Json) -> None:
    if not old.get("globalDefault"):
        _one_default_class(store, obj)


# ── pods ────────────────────────────────────────────────────────────────────────────────────────────────────


def _tolerates(toleration: Json, key: str) -> bool:
    """Whether a toleration covers a NoExecute taint with this key, for any time."""
    if toleration.get("effect", "") not in ("", "NoExecute"):
        return False
    return toleration.get("key", "") in ("", key)


def _tolerate_lost_nodes(store: Store, rules: Rules, obj: Json) -> None:
    spec = obj["spec"]
    given = spec.get("tolerations") or []
    if not given:
        spec["tolerations"] = TOLERATES_LOST
        return
    added = [
        one for one in TOLERATES_LOST if not any(_tolerates(toleration, one["key"]) for toleration in given)
    ]
    if added:
        spec["tolerations"] = [*given, *added]


def _runtime_class(store: Store, rules: Rules, obj: Json) -> None:
    spec = obj["spec"]
    name = spec.get("runtimeClassName")
    refuse = _refusal("pods", obj)
    if not name:
        return
    stored = store.find("node.k8s.io/runtimeclasses", "", name)
    if stored is None:
        raise refuse(f'pod rejected: RuntimeClass "{name}" not found')
    overhead = (stored.obj.get("overhead") or {}).get("podFixed")
    if overhead:
        given = spec.get("overhead")
        if given and (
            given.keys() != overhead.keys() or any(quantity.compare(given[n], q) for n, q in overhead.items())
        ):
            raise refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = dict(overhead)
    scheduling = stored.obj.get("scheduling") or {}
    selector = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            raise refuse(
                f"pod rejected: conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
    if scheduling.get("nodeSelector"):
        spec["nodeSelector"] = {**selector, **scheduling["nodeSelector"]}
    if scheduling.get("tolerations"):
        spec["tolerations"] = _merged([*(spec.get("tolerations") or ()), *scheduling["tolerations"]])


def _merged(found: list[Json]) -> list[Json]:
    """Tolerations without those that another one covers; of equal ones the first."""
    kept: list[Json] = []
    for index, one in enumerate(found):
        later = (other for other in found[index + 1 :] if other != one)
        if not any(_covers(other, one) for other in (*kept, *later)):
            kept.append(one)
    return kept


def _covers(wide: Json, one: Json) -> bool:
    """Whether everything that one tolerates is tolerated by the wide one, too."""
    if wide == one:
        return True
    everything = not wide.get("key") and wide.get("operator") == "Exists"
    if one.get("key", "") != wide.get("key", "") and not everything:
        return False
    if wide.get("effect") and one.get("effect") != wide["effect"]:
        return False
    if wide.get("effect") == "NoExecute" and wide.get("tolerationSeconds") is not None:
        seconds = one.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if wide.get("operator") == "Exists":
        return True
    same = bool(one.get("operator", "Equal") == "Equal" and one.get("value", "") == wide.get("value", ""))
    return bool(wide.get("operator", "Equal") == "Equal") and same


def admit_valid(store: Store, resource: Resource, obj: Json) -> None:
    """What is looked at only in an object without other faults."""
    rule = _VALID.get(resource.shape)
    if rule is not None:
        rule(store, obj)


def admit_valid_update(store: Store, resource: Resource, obj: Json, old: Json) -> None:
    """What is looked at only in a change without other faults."""
    rule = _VALID_UPDATE.get(resource.shape)
    if rule is not None:
        rule(store, obj, old)


def _overhead_is_defined(store: Store, obj: Json) -> None:
    if not obj["spec"].get("overhead"):
        return
    stored = store.find("node.k8s.io/runtimeclasses", "", obj["spec"].get("runtimeClassName") or "")
    if stored is None or not (stored.obj.get("overhead") or {}).get("podFixed"):
        why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise _refusal("pods", obj)(why)


def topology_labels(store: Store, node: str) -> Json:
    """The zone and region that a pod takes over from its node."""
    stored = store.find("nodes", "", node)
    labels = stored.obj["metadata"].get("labels") or {} if stored is not None else {}
    return {key: labels[key] for key in _TOPOLOGY_LABELS if key in labels}


def _pod_topology(store: Store, rules: Rules, obj: Json) -> None:
    node = obj["spec"].get("nodeName")
    found = topology_labels(store, node) if node else None
    if found:
        obj["metadata"]["labels"] = {**(obj["metadata"].get("labels") or {}), **found}


def _limit_ranges(store: Store, rules: Rules, obj: Json) -> None:
    """Containers get the namespace's default requests and limits, and must keep within its bounds."""
    namespace = obj["metadata"].get("namespace", "")
    if not store.count("limitranges", namespace):
        return
    spec = obj["spec"]
    problems: list[str] = []
    for stored in store.list("limitranges", namespace).items:
        for item in stored.obj["spec"].get("limits") or ():
            if item.get("type") == "Container":
                for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
                    _limit_container(item, container.setdefault("resources", {}), problems)
            elif item.get("type") == "Pod":
                _limit_pod(item, spec, problems)
    if problems:
        raise _refusal("pods", obj)(_joined(problems))


def _joined(problems: list[str]) -> str:
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _limit_container(item: Json, resources: Json, problems: list[str]) -> None:
    for field, defaults in (("limits", item.get("default")), ("requests", item.get("defaultRequest"))):
        for name, amount in (defaults or {}).items():
            resources.setdefault(field, {}).setdefault(name, amount)
    _check_limits(item, resources.get("requests", {}), resources.get("limits", {}), "Container", problems)


def _limit_pod(item: Json, spec: Json, problems: list[str]) -> None:
    limits: dict[str, str] = {}
    for container in spec.get("containers", ()):
        for name, amount in container.get("resources", {}).get("limits", {}).items():
            limits[name] = quantity.add(limits[name], amount) if name in limits else amount
    _check_limits(item, container_requests(spec), limits, "Pod", problems)


def _check_limits(item: Json, requests: Json, limits: Json, what: str, problems: list[str]) -> None:
    for name, least in (item.get("min") or {}).items():
        asked = requests.get(name)
        if asked is None:
            problems.append(f"minimum {name} usage per {what} is {least}.  No request is specified")
        elif quantity.compare(asked, least) < 0:
            problems.append(f"minimum {name} usage per {what} is {least}, but request is {asked}")
    for name, most in (item.get("max") or {}).items():
        limit = limits.get(name)
        if limit is None:
            problems.append(f"maximum {name} usage per {what} is {most}.  No limit is specified")
        elif quantity.compare(limit, most) > 0:
            problems.append(f"maximum {name} usage per {what} is {most}, but limit is {limit}")
    for name, ratio in (item.get("maxLimitRequestRatio") or {}).items():
        asked, limit = requests.get(name), limits.get(name)
        if asked and limit and quantity.parse_milli(asked):
            if quantity.parse_milli(limit) > quantity.parse_milli(ratio) / 1000 * quantity.parse_milli(asked):
                shown = quantity.parse_milli(limit) / quantity.parse_milli(asked)
                problems.append(
                    f"{name} max limit to request ratio per {what} is {ratio}, but provided ratio is {shown:.6f}"
                )


# ── the rest ────────────────────────────────────────────────────────────────────────────────────────────────


def _node_not_ready(store: Store, rules: Rules, obj: Json) -> None:
    if rules.taint_new_nodes:
        taints = obj["spec"].get("taints") or []
        if not any((t.get("key"), t.get("effect")) == (_LOST[0], "NoSchedule") for t in taints):
            obj["spec"]["taints"] = [*taints, {"key": _LOST[0], "effect": "NoSchedule"}]


def _protect(finalizer: str) -> Callable[[Store, Rules, Json], None]:
    def rule(store: Store, rules: Rules, obj: Json) -> None:
        held = obj["metadata"].get("finalizers") or []
        if rules.protect_storage and finalizer not in held:
            obj["metadata"]["finalizers"] = [*held, finalizer]

    return rule


def _default_storage_class(store: Store, rules: Rules, obj: Json) -> None:
    spec = obj["spec"]
    legacy = (obj["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    if spec.get("storageClassName") is not None or legacy is not None:
        return
    defaults = [
        stored.obj
        for stored in store.list("storage.k8s.io/storageclasses").items
        if (stored.obj["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    ]
    if defaults:
        newest = max(o["metadata"]["creationTimestamp"] for o in defaults)
        chosen = min(o["metadata"]["name"] for o in defaults if o["metadata"]["creationTimestamp"] == newest)
        spec["storageClassName"] = chosen


def _claim_resize(store: Store, obj: Json, old: Json) -> None:
    asked = _storage(obj)
    had = _storage(old)
    if asked is None or had is None or quantity.compare(asked, had) <= 0:
        return
    name = obj["metadata"]["name"]
    if (old.get("status") or {}).get("phase") != "Bound":
        raise forbidden("persistentvolumeclaims", name, "Only bound persistent volume claims can be expanded")
    found = store.find("storage.k8s.io/storageclasses", "", obj["spec"].get("storageClassName") or "")
    if found is None or not found.obj.get("allowVolumeExpansion"):
        why = (
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
            "support resize"
        )
        raise forbidden("persistentvolumeclaims", name, why)


def _storage(claim: Json) -> str | None:
    found: str | None = (claim["spec"].get("resources") or {}).get("requests", {}).get("storage")
    return found


def _workload_of_group(store: Store, rules: Rules, obj: Json) -> None:
    reference = (obj["spec"].get("podGroupTemplateRef") or {}).get("workload")
    if not reference:
        return
    name = reference.get("workloadName", "")
    if store.find("scheduling.k8s.io/workloads", obj["metadata"].get("namespace", ""), name) is None:
        why = f'PodGroup rejected: Workload "{name}" not found'
        raise _refusal("scheduling.k8s.io/podgroups", obj)(why)


def _service_address(store: Store, rules: Rules, obj: Json) -> None:
    """Give a service an address of its own, as far as it wants one."""
    spec = obj["spec"]
    if spec.get("type") == "ExternalName":
        return
    address = spec.get("clusterIP")
    if not address:
        taken = {stored.obj["spec"].get("clusterIP") for stored in store.list("services").items}
        candidates = (f"{_SERVICE_NETWORK}.{number >> 8}.{number & 255}" for number in range(1, 65535))
        address = next((one for one in candidates if one not in taken), "")
    spec["clusterIP"] = address
    spec.setdefault("clusterIPs", [address])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _tolerate_lost_nodes_still(store: Store, obj: Json, old: Json) -> None:
    _tolerate_lost_nodes(store, Rules(), obj)


_CREATE: dict[str, tuple[Callable[[Store, Rules, Json], None], ...]] = {
    "core.Service": (_service_address,),
    "core.Pod": (_limit_ranges, _pod_priority, _tolerate_lost_nodes, _runtime_class, _pod_topology),
    "core.Node": (_node_not_ready,),
    "core.PersistentVolumeClaim": (_protect("kubernetes.io/pvc-protection"), _default_storage_class),
    "core.PersistentVolume": (_protect("kubernetes.io/pv-protection"),),
    "storage.VolumeAttributesClass": (_protect("kubernetes.io/vac-protection"),),
    "schedulingalpha.PodGroup": (
        _pod_group_priority,
        _workload_of_group,
        _protect("scheduling.k8s.io/podgroup-protection"),
    ),
}
_VALID: dict[str, Callable[[Store, Json], None]] = {
    "core.Pod": _overhead_is_defined,
    "scheduling.PriorityClass": _one_default_class,
}
_VALID_UPDATE: dict[str, Callable[[Store, Json, Json], None]] = {
    "core.PersistentVolumeClaim": _claim_resize,
    "scheduling.PriorityClass": _one_default_class_kept,
}
_UPDATE: dict[str, tuple[Callable[[Store, Json, Json], None], ...]] = {
    "core.Pod": (_tolerate_lost_nodes_still,),
}
