"""Say whose writes are followed, field by field, and with which rules.

Following who owns which field costs more than everything else a create does, and only server-side apply ever asks.  So
objects are followed from the start when their creator gave a name to write under (`fieldManager`, as kubectl does)
and from their first apply otherwise; once followed, every write through the API counts.  `follow_all` follows
everything, as kube-apiserver does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubesched.api.time import Instant, format_rfc3339
from kubesched.apiserver import model
from kubesched.apiserver.apply import FieldManager, reset_paths, without_new_times
from kubesched.apiserver.kinds import Resource

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes.

    name: the field manager.  named: it was given as such, so a new object is followed from the start.
    applied: ownership has been settled by server-side apply already.
    """

    name: str = "unknown"
    named: bool = False
    applied: bool = False


# What a write through a door does not change, whatever it says.
_Paths = tuple[tuple[str, ...], ...]
_MAIN: _Paths = (("status",),)
_STATUS: _Paths = (("spec",),)
_POD_STATUS: _Paths = (("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences"))


class Ownership:
    """The field managers of all kinds, made when first needed."""

    def __init__(self, now: Callable[[], int], *, follow_all: bool = False) -> None:
        self._now = now
        self._follow_all = follow_all
        self._managers: dict[tuple[str, str, str, str], tuple[Any, FieldManager]] = {}

    def time(self) -> str:
        return format_rfc3339(Instant(self._now()))

    def manager(self, resource: Resource, subresource: str = "") -> FieldManager:
        key = (resource.group, resource.version, resource.plural, subresource)
        found = self._managers.get(key)
        if found is None or found[0] is not resource.definition:
            found = self._managers[key] = (resource.definition, _make(resource, subresource))
        return found[1]

    def created(self, resource: Resource, obj: Json, writer: Writer) -> Json:
        """The new object with its managedFields, if it is to have any."""
        if writer.applied:
            return obj
        if not (writer.named or self._follow_all):
            obj["metadata"].pop("managedFields", None)
            return obj
        return self.manager(resource).update(None, obj, writer.name, self.time())

    def changed(self, resource: Resource, obj: Json, old: Json, subresource: str, writer: Writer) -> Json:
        """The changed object with its managedFields; old is the stored one in the same version."""
        if not writer.applied:
            if "managedFields" not in old["metadata"] and "managedFields" not in obj["metadata"]:
                return obj
            obj = self.manager(resource, subresource).update(old, obj, writer.name, self.time())
        return without_new_times(old, obj)


def _make(resource: Resource, subresource: str) -> FieldManager:
    if resource.is_custom:
        found = resource.definition.schema
        shape = model.custom(found, resource.definition.preserves_unknown)
    else:
        shape = model.built_in(resource.shape)
    reset: _Paths
    if subresource == "status":
        reset = _POD_STATUS if resource.shape == "core.Pod" else _STATUS
    else:
        reset = _MAIN if resource.has_status else ()
    paths = reset_paths(*reset)
    return FieldManager(shape, resource.group_version, resource.kind, subresource, paths)
