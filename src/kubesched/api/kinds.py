"""Where a kind lives: its group, its version, its plural, and whether it lives in a namespace.

The path of a request, the rule of a role and the place in a store all follow from these four.  The kinds a scheduler
knows are one table; a kind of your own says the same of itself, as a CustomResource.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, Literal, NamedTuple

from msgspec import Struct

from kubesched.api.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DeviceClass,
    KubeObject,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    Service,
    StatefulSet,
    StorageClass,
    VolumeAttachment,
)

Scope = Literal["Cluster", "Namespaced"]


class Column(NamedTuple):
    """A column `kubectl get` prints: its head, and the path to the field."""

    name: str
    path: str


class CustomResource(KubeObject, frozen=True):
    """A kind of your own.  Inherit, say where it lives, and name its fields.

        class Budget(CustomResource, frozen=True):
            group = "acme.example"
            version = "v1alpha1"
            scope = "Cluster"
            spec: BudgetSpec = BudgetSpec()
    """

    group: ClassVar[str] = ""
    version: ClassVar[str] = "v1"
    scope: ClassVar[Scope] = "Namespaced"
    plural: ClassVar[str] = ""  # made from the name where it is not given
    short_names: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[tuple[Column, ...]] = ()


class Kind(Struct, frozen=True):
    """One kind: where the API server serves it, and what a scheduler sees of it."""

    view: type[KubeObject]
    group: str
    version: str
    plural: str
    namespaced: bool

    @property
    def name(self) -> str:
        """The kind itself: `ReplicaSet`."""
        return self.view.__name__

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The plural with its group, as stores and events name it: `apps/replicasets`, `pods`."""
        return f"{self.group}/{self.plural}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path at the API server; of all namespaces where none is given."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return "/".join([f"{root}{within}/{self.plural}", *filter(None, (name, subresource))])


def _rows(group: str, version: str, *rows: tuple[type[KubeObject], str, bool]) -> Iterable[Kind]:
    return (Kind(view, group, version, plural, namespaced) for view, plural, namespaced in rows)


_TABLE = (
    *_rows(
        "",
        "v1",
        (Pod, "pods", True),
        (Node, "nodes", False),
        (Namespace, "namespaces", False),
        (PersistentVolume, "persistentvolumes", False),
        (PersistentVolumeClaim, "persistentvolumeclaims", True),
        (Service, "services", True),
        (ReplicationController, "replicationcontrollers", True),
    ),
    *_rows("apps", "v1", (ReplicaSet, "replicasets", True), (StatefulSet, "statefulsets", True)),
    *_rows("policy", "v1", (PodDisruptionBudget, "poddisruptionbudgets", True)),
    *_rows(
        "storage.k8s.io",
        "v1",
        (StorageClass, "storageclasses", False),
        (CSINode, "csinodes", False),
        (CSIDriver, "csidrivers", False),
        (CSIStorageCapacity, "csistoragecapacities", True),
        (VolumeAttachment, "volumeattachments", False),
    ),
    *_rows("resource.k8s.io", "v1", (DeviceClass, "deviceclasses", False), (ResourceClaim, "resourceclaims", True)),
)

KNOWN: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _TABLE})
"""The kinds a scheduler knows without being told, by name."""


def kind_of(view: type[KubeObject]) -> Kind:
    """Where the objects of a view live.  Raises ValueError for a CustomResource that does not say."""
    if not issubclass(view, CustomResource):
        return KNOWN[view.__name__]
    if not view.group:
        raise ValueError(f'{view.__name__} does not say where it lives: give the class group = "acme.example"')
    return Kind(view, view.group, view.version, view.plural or plural_of(view.__name__), view.scope == "Namespaced")


def plural_of(name: str) -> str:
    """The plural Kubernetes' tools make of a kind: `policies`, `classes`, `widgets`."""
    singular = name.lower()
    if singular.endswith("y") and singular[-2:-1] not in "aeiou":
        return f"{singular[:-1]}ies"
    return f"{singular}es" if singular.endswith(("s", "x", "z", "ch", "sh")) else f"{singular}s"
