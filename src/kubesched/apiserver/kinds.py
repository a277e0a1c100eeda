"""The table of resources: what is served, under which names, and which rules of storage each kind follows.

Clients learn this table through discovery; routing, selectors, Tables and OpenAPI all read the same rows.  Rows for
custom resources are added while the server runs (kubesched.apiserver.crd), so the Registry counts its generations and
whoever derives a document from it can tell when to derive it anew.

What differs from kind to kind beyond names is here as flags rather than as code elsewhere: whether metadata.generation
is kept, whether status can be written at creation, whether PUT needs a resourceVersion or may create.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Json = dict[str, Any]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")
CREATE = ("create",)


@dataclass(frozen=True, slots=True)
class Subresource:
    """One subresource of a kind, as discovery tells it; kind None is the parent's own kind."""

    name: str
    verbs: tuple[str, ...] = STATUS_VERBS
    group_version_kind: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True)
class Conversion:
    """How a version that is not the stored one is read and written."""

    storage: str
    to_stored: Callable[[Json], Json]
    from_stored: Callable[[Json], Json]


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the scale subresource finds its numbers, as paths into the object."""

    spec: tuple[str, ...] = ("spec", "replicas")
    status: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")


@dataclass(frozen=True, slots=True)
class Resource:
    """One row: a kind in one version.

    shape:          its struct in schema.txt; "" for custom resources.
    field_labels:   selectable fields beside metadata.name and metadata.namespace: label → (path, value when absent).
    generation:     metadata.generation is kept.
    status_on_create: POST may carry status (nodes register with theirs).
    unconditional:  PUT needs no resourceVersion.
    create_on_update: PUT creates what is missing.
    returned:       DELETE answers with the object that is gone, not with a Status.
    definition:     what a CustomResourceDefinition said of this kind (a kubesched.apiserver.crd.Definition).
    """

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    shape: str = ""
    field_labels: Mapping[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    generation: bool = False
    status_on_create: bool = False
    unconditional: bool = True
    create_on_update: bool = False
    returned: bool = False
    conversion: Conversion | None = None
    scale: ScalePaths | None = None
    definition: Any = None

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage(self) -> str:
        """The store's address of this resource."""
        if self.conversion is not None:
            return self.conversion.storage
        return f"{self.group}/{self.plural}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        """The name in error messages: "pods", "deployments.apps"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def is_custom(self) -> bool:
        return self.definition is not None


class Registry:
    """All rows, found by group, version and plural."""

    def __init__(self, rows: Iterable[Resource] = ()) -> None:
        self._rows: dict[tuple[str, str, str], Resource] = {}
        self.generation = 0
        for row in rows:
            self.add(row)

    def add(self, row: Resource) -> None:
        """Serve a row, in place of one of the same group, version and plural."""
        self._rows[row.group, row.version, row.plural] = row
        self.generation += 1

    def remove(self, group: str, plural: str) -> None:
        """Stop serving a resource in all its versions."""
        for key in [k for k in self._rows if k[0] == group and k[2] == plural]:
            del self._rows[key]
            self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._rows.get((group, version, plural))

    def find_kind(self, group: str, version: str, kind: str) -> Resource | None:
        return next((r for r in self if (r.group, r.version, r.kind) == (group, version, kind)), None)

    def by_storage(self, storage: str) -> Resource | None:
        """The row in which objects of a store address are kept."""
        return next((r for r in self if r.storage == storage and r.conversion is None), None)

    def serves(self, group: str, version: str) -> bool:
        return any(key[:2] == (group, version) for key in self._rows)

    def groups(self) -> dict[str, dict[str, list[Resource]]]:
        """Group → version → rows; groups and versions in the order of registration, rows by name."""
        found: dict[str, dict[str, list[Resource]]] = {}
        for row in self:
            found.setdefault(row.group, {}).setdefault(row.version, []).append(row)
        for versions in found.values():
            for rows in versions.values():
                rows.sort(key=lambda r: r.plural)
        return found

    def __iter__(self) -> Any:
        return iter(self._rows.values())


def field_value(obj: Json, path: tuple[str, ...], absent: str) -> str:
    """The value a field selector compares: strings as they are, booleans as true and false."""
    value: Any = obj
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
        if value is None:
            return absent
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# ── the built-in kinds ──────────────────────────────────────────────────────────────────────────────────────

_STATUS = Subresource("status")
_SCALE = Subresource("scale", STATUS_VERBS, ("autoscaling", "v1", "Scale"))


def _labels(*paths: str, **absent: str) -> dict[str, tuple[tuple[str, ...], str]]:
    return {path: (tuple(path.split(".")), absent.get(path.replace(".", "_"), "")) for path in paths}


def _subs(*names: str | Subresource) -> dict[str, Subresource]:
    rows = [_SCALE if n == "scale" else Subresource(n) if isinstance(n, str) else n for n in names]
    return {row.name: row for row in sorted(rows, key=lambda r: r.name)}


_OBJECT_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

_EVENT_LABELS: dict[str, tuple[tuple[str, ...], str]] = {
    **{f"involvedObject.{part}": (("involvedObject", part), "") for part in _OBJECT_REFERENCE},
    "reason": (("reason",), ""),
    "reportingComponent": (("reportingComponent",), ""),
    "source": (("source", "component"), ""),
    "type": (("type",), ""),
}
_NEW_EVENT_LABELS: dict[str, tuple[tuple[str, ...], str]] = {
    **{f"regarding.{part}": (("involvedObject", part), "") for part in _OBJECT_REFERENCE},
    "reason": (("reason",), ""),
    "reportingController": (("reportingComponent",), ""),
    "type": (("type",), ""),
}

_POD_LABELS: dict[str, tuple[tuple[str, ...], str]] = {
    **_labels(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
        spec_hostNetwork="false",
    ),
    "spec.host": (("spec", "nodeName"), ""),
}

_POD_SUBRESOURCES = _subs(
    "status",
    "resize",
    "ephemeralcontainers",
    Subresource("log", ("get",)),
    Subresource("binding", CREATE, ("", "v1", "Binding")),
    Subresource("eviction", CREATE, ("policy", "v1", "Eviction")),
    Subresource("attach", ("create", "get"), ("", "v1", "PodAttachOptions")),
    Subresource("exec", ("create", "get"), ("", "v1", "PodExecOptions")),
    Subresource("portforward", ("create", "get"), ("", "v1", "PodPortForwardOptions")),
)


# Kept from kube-apiserver: these answer DELETE with what is gone, all others with a Status.
_RETURNED = frozenset(
    (
        *("core.PersistentVolume", "core.PersistentVolumeClaim", "core.Pod", "core.PodTemplate", "core.ResourceQuota"),
        *("core.Service", "core.ServiceAccount", "resource.DeviceClass", "resource.ResourceClaim"),
        *("resource.ResourceClaimTemplate", "resource.ResourceSlice", "storage.CSIDriver", "storage.CSINode"),
        *("storage.StorageClass", "storage.VolumeAttachment", "storage.VolumeAttributesClass"),
    )
)


def _row(
    group_version: str,
    plural: str,
    kind: str,
    shape: str,
    *subresources: str | Subresource,
    short: str = "",
    cluster: bool = False,
    all: bool = False,
    **rules: Any,
) -> Resource:
    group, _, version = group_version.rpartition("/")
    rules.setdefault("subresources", _subs(*subresources))
    rules.setdefault("returned", shape in _RETURNED)
    return Resource(
        group=group,
        version=version,
        plural=plural,
        singular=rules.pop("singular", kind.lower()),
        kind=kind,
        namespaced=not cluster,
        short_names=tuple(short.split()),
        categories=("all",) if all else (),
        shape=shape,
        **rules,
    )


_WORKLOAD: dict[str, Any] = {"generation": True, "all": True}
_STRICT: dict[str, Any] = {"unconditional": False}
_VIRTUAL: dict[str, Any] = {"verbs": CREATE}
_RBAC = "rbac.authorization.k8s.io/v1"
_RESOURCE = "resource.k8s.io/v1"

BUILT_IN: tuple[Resource, ...] = (
    _row("v1", "bindings", "Binding", "core.Binding", **_VIRTUAL),
    _row("v1", "configmaps", "ConfigMap", "core.ConfigMap", short="cm"),
    _row("v1", "endpoints", "Endpoints", "core.Endpoints", short="ep", create_on_update=True),
    _row("v1", "events", "Event", "core.Event", short="ev", create_on_update=True, field_labels=_EVENT_LABELS),
    _row("v1", "limitranges", "LimitRange", "core.LimitRange", short="limits", create_on_update=True),
    _row(
        "v1", "namespaces", "Namespace", "core.Namespace", "status", Subresource("finalize", ("update",)),
        short="ns", cluster=True, field_labels=_labels("status.phase"),
        verbs=tuple(v for v in ALL_VERBS if v != "deletecollection"),
    ),
    _row(
        "v1", "nodes", "Node", "core.Node", "status", short="no", cluster=True, status_on_create=True,
        field_labels=_labels("spec.unschedulable", spec_unschedulable="false"),
    ),
    _row("v1", "persistentvolumeclaims", "PersistentVolumeClaim", "core.PersistentVolumeClaim", "status", short="pvc"),
    _row("v1", "persistentvolumes", "PersistentVolume", "core.PersistentVolume", "status", short="pv", cluster=True),
    _row(
        "v1", "pods", "Pod", "core.Pod", short="po", all=True, generation=True, field_labels=_POD_LABELS,
        subresources=_POD_SUBRESOURCES,
    ),
    _row("v1", "podtemplates", "PodTemplate", "core.PodTemplate", generation=True),
    _row(
        "v1", "replicationcontrollers", "ReplicationController", "core.ReplicationController", "status", "scale",
        short="rc", scale=ScalePaths(), field_labels=_labels("status.replicas", status_replicas="0"), **_WORKLOAD,
    ),
    _row("v1", "resourcequotas", "ResourceQuota", "core.ResourceQuota", "status", short="quota"),
    _row("v1", "secrets", "Secret", "core.Secret", field_labels=_labels("type")),
    _row(
        "v1", "serviceaccounts", "ServiceAccount", "core.ServiceAccount",
        Subresource("token", CREATE, ("authentication.k8s.io", "v1", "TokenRequest")), short="sa",
    ),
    _row(
        "v1", "services", "Service", "core.Service", "status", short="svc", all=True, create_on_update=True,
        field_labels=_labels("spec.clusterIP", "spec.type"),
    ),
    _row("apps/v1", "controllerrevisions", "ControllerRevision", "apps.ControllerRevision"),
    _row("apps/v1", "daemonsets", "DaemonSet", "apps.DaemonSet", "status", short="ds", **_WORKLOAD),
    _row(
        "apps/v1", "deployments", "Deployment", "apps.Deployment", "status", "scale",
        short="deploy", scale=ScalePaths(), **_WORKLOAD,
    ),
    _row(
        "apps/v1", "replicasets", "ReplicaSet", "apps.ReplicaSet", "status", "scale",
        short="rs", scale=ScalePaths(), field_labels=_labels("status.replicas", status_replicas="0"), **_WORKLOAD,
    ),
    _row(
        "apps/v1", "statefulsets", "StatefulSet", "apps.StatefulSet", "status", "scale",
        short="sts", scale=ScalePaths(), **_WORKLOAD,
    ),
    _row(
        "events.k8s.io/v1", "events", "Event", "events.Event", short="ev", create_on_update=True,
        field_labels=_NEW_EVENT_LABELS,
    ),
    _row(
        "authentication.k8s.io/v1", "selfsubjectreviews", "SelfSubjectReview", "authentication.SelfSubjectReview",
        cluster=True, **_VIRTUAL,
    ),
    _row(
        "authentication.k8s.io/v1", "tokenreviews", "TokenReview", "authentication.TokenReview",
        cluster=True, **_VIRTUAL,
    ),
    _row(
        "authorization.k8s.io/v1", "localsubjectaccessreviews", "LocalSubjectAccessReview",
        "authorization.LocalSubjectAccessReview", **_VIRTUAL,
    ),
    _row(
        "authorization.k8s.io/v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview",
        "authorization.SelfSubjectAccessReview", cluster=True, **_VIRTUAL,
    ),
    _row(
        "authorization.k8s.io/v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview",
        "authorization.SelfSubjectRulesReview", cluster=True, **_VIRTUAL,
    ),
    _row(
        "authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview",
        "authorization.SubjectAccessReview", cluster=True, **_VIRTUAL,
    ),
    _row(
        "autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler",
        "autoscaling2.HorizontalPodAutoscaler", "status", short="hpa", all=True,
    ),
    _row(
        "autoscaling/v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler",
        "autoscaling.HorizontalPodAutoscaler", "status", short="hpa", all=True,
    ),
    _row("batch/v1", "cronjobs", "CronJob", "batch.CronJob", "status", short="cj", **_WORKLOAD),
    _row(
        "batch/v1", "jobs", "Job", "batch.Job", "status",
        field_labels=_labels("status.successful", status_successful="0"), **_WORKLOAD,
    ),
    _row(
        "certificates.k8s.io/v1", "certificatesigningrequests", "CertificateSigningRequest",
        "certificates.CertificateSigningRequest", "status", "approval", short="csr", cluster=True,
        field_labels=_labels("spec.signerName"),
    ),
    _row(
        "networking.k8s.io/v1", "ingressclasses", "IngressClass", "networking.IngressClass",
        cluster=True, generation=True,
    ),
    _row("networking.k8s.io/v1", "ingresses", "Ingress", "networking.Ingress", "status", short="ing", generation=True),
    _row(
        "networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", "networking.NetworkPolicy",
        short="netpol", generation=True,
    ),
    _row(
        "policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", "policy.PodDisruptionBudget", "status",
        short="pdb", generation=True, **_STRICT,
    ),
    _row(
        _RBAC, "clusterrolebindings", "ClusterRoleBinding", "rbac.ClusterRoleBinding",
        cluster=True, create_on_update=True,
    ),
    _row(_RBAC, "clusterroles", "ClusterRole", "rbac.ClusterRole", cluster=True, create_on_update=True),
    _row(_RBAC, "rolebindings", "RoleBinding", "rbac.RoleBinding", create_on_update=True),
    _row(_RBAC, "roles", "Role", "rbac.Role", create_on_update=True),
    _row("storage.k8s.io/v1", "csidrivers", "CSIDriver", "storage.CSIDriver", cluster=True, generation=True, **_STRICT),
    _row("storage.k8s.io/v1", "csinodes", "CSINode", "storage.CSINode", cluster=True, **_STRICT),
    _row("storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity", "storage.CSIStorageCapacity", **_STRICT),
    _row("storage.k8s.io/v1", "storageclasses", "StorageClass", "storage.StorageClass", short="sc", cluster=True),
    _row(
        "storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", "storage.VolumeAttachment", "status",
        cluster=True, **_STRICT,
    ),
    _row(
        "storage.k8s.io/v1", "volumeattributesclasses", "VolumeAttributesClass", "storage.VolumeAttributesClass",
        short="vac", cluster=True,
    ),
    _row(
        "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition",
        "apiextensions.CustomResourceDefinition", "status", short="crd crds", cluster=True, generation=True,
    ),
    _row(
        "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", "scheduling.PriorityClass",
        short="pc", cluster=True, generation=True,
    ),
    _row("scheduling.k8s.io/v1alpha2", "podgroups", "PodGroup", "schedulingalpha.PodGroup", "status"),
    _row("scheduling.k8s.io/v1alpha2", "workloads", "Workload", "schedulingalpha.Workload"),
    _row("coordination.k8s.io/v1", "leases", "Lease", "coordination.Lease", create_on_update=True, **_STRICT),
    _row(
        "node.k8s.io/v1", "runtimeclasses", "RuntimeClass", "node.RuntimeClass", cluster=True,
        create_on_update=True, **_STRICT,
    ),
    _row("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", "discovery.EndpointSlice", generation=True),
    _row(_RESOURCE, "deviceclasses", "DeviceClass", "resource.DeviceClass", cluster=True, generation=True),
    _row(_RESOURCE, "resourceclaims", "ResourceClaim", "resource.ResourceClaim", "status"),
    _row(_RESOURCE, "resourceclaimtemplates", "ResourceClaimTemplate", "resource.ResourceClaimTemplate"),
    _row(
        _RESOURCE, "resourceslices", "ResourceSlice", "resource.ResourceSlice", cluster=True, generation=True,
        field_labels=_labels("spec.nodeName", "spec.driver"),
    ),
)  # fmt: skip


def with_category(row: Resource, *categories: str) -> Resource:
    """The row in further categories (what `kubectl get <category>` collects)."""
    return replace(row, categories=(*row.categories, *categories))
