"""What every object has: a name, labels, owners; and the settings all views share."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

Quantity: TypeAlias = str | int | float  # as written; quantity.py makes exact integers of it
ResourceList: TypeAlias = dict[str, Quantity]


class View(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """The settings every view shares: frozen, camelCase on the wire, defaults left out, no cycles to collect."""


class OwnerReference(View, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(View, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class KubeObject(View, frozen=True, tag_field="kind"):
    """An object with metadata; `kind` is its tag on the wire and in a journal."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def kind(self) -> str:
        return type(self).__name__

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone for what lives outside namespaces."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one says so."""
        return next((owner for owner in self.metadata.owner_references if owner.controller), None)
