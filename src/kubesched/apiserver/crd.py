"""CustomResourceDefinitions: kinds that users bring, served like the built-in ones while the server runs.

A definition that is accepted gets its names, is Established at once, and puts a row into the registry for every
version it serves; discovery and OpenAPI follow by themselves.  When it is deleted its objects go first.  The schema
of each version prunes, defaults and validates objects (kubesched.apiserver.structural).

Versions of one kind differ in name only: there are no conversion webhooks here.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

from kubesched.api.time import Instant, format_rfc3339
from kubesched.apiserver import cleaning, codec, jsonpath, schema, structural, tables
from kubesched.apiserver.cells import Row
from kubesched.apiserver.kinds import STATUS_VERBS, Conversion, Registry, Resource, ScalePaths, Subresource
from kubesched.apiserver.negotiation import JSON, PROTOBUF, YAML
from kubesched.apiserver.requests import Request
from kubesched.apiserver.status import FieldError, bad_request, unsupported_media_type
from kubesched.apiserver.store import Store

Json = dict[str, Any]
Errors = list[FieldError]

SHAPE = "apiextensions.CustomResourceDefinition"
STORAGE = "apiextensions.k8s.io/customresourcedefinitions"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


class Definition:
    """One version of a custom kind: how its objects are read, completed, checked and shown."""

    def __init__(self, spec: Json, version: Json) -> None:
        self.group: str = spec["group"]
        self.kind: str = spec["names"]["kind"]
        self.version: str = version["name"]
        self.schema: Json = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        self.preserves_unknown = bool(spec.get("preserveUnknownFields"))
        self._columns = tables.custom_columns(version.get("additionalPrinterColumns") or [_AGE])
        self._warning = _deprecation(version, self.group_version, self.kind)

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.version}"

    def columns(self) -> tuple[tuple[Json, ...], Row]:
        """The columns of a Table, and what fills a row."""
        return self._columns

    def read(self, request: Request, mode: str) -> Json:
        """Decode the body of a create or update."""
        value, media = codec.read_value(request, self.kind)
        if media == PROTOBUF:
            raise unsupported_media_type((JSON, YAML))
        if not isinstance(value, dict):
            raise bad_request(f"the object provided is unrecognized (must be of type {self.kind}): it is no object")
        repeated = codec.repeated_fields(request.body) if mode == "Strict" and media == JSON else []
        self._check_kind(value)
        obj, problems = self.clean(value, mode)
        problems = [f'duplicate field "{path}"' for path in repeated] + problems
        if problems and mode == "Strict":
            said = ", ".join(problems)
            raise bad_request(f"{self._in_version()} cannot be handled as a {self.kind}: strict decoding error: {said}")
        if problems and mode == "Warn":
            codec.add_warnings(request.warnings, problems)
        if self._warning:
            codec.add_warnings(request.warnings, [self._warning])
        return obj

    def _check_kind(self, value: Json) -> None:
        kind, group_version = value.get("kind"), value.get("apiVersion")
        if not kind:
            shown = json.dumps(value)
            raise bad_request(
                f"the object provided is unrecognized (must be of type {self.kind}): "
                f"Object 'Kind' is missing in '{shown[:1024]}'"
            )
        if group_version != self.group_version:
            raise bad_request(
                f"the API version in the data ({group_version or ''}) does not match the expected API version "
                f"({self.group_version})"
            )
        if kind != self.kind:
            raise bad_request(f"the kind in the data ({kind}) does not match the expected kind ({self.kind})")

    def _in_version(self) -> str:
        return f'{self.kind} in version "{self.version}"'

    def clean(self, value: Json, mode: str) -> tuple[Json, list[str]]:
        """Prune a decoded value (which is changed); return it and what was unknown in it."""
        value.pop("kind", None)
        value.pop("apiVersion", None)
        unknown: list[str] = []
        problems: list[str] = []
        meta = value.get("metadata")
        if meta is None:
            meta = value["metadata"] = {}
        try:
            cleaning.struct_cleaner("meta.ObjectMeta")(meta, unknown)
        except cleaning.Mistyped as error:
            raise bad_request(f"{self._in_version()} cannot be handled as a {self.kind}: {error}") from None
        if unknown and mode != "Ignore":
            found = schema.unknown_fields({"metadata": meta}, schema.Type("core.ConfigMap"))
            problems += [f'unknown field "{path}"' for path in found]
        for name in unknown:
            meta.pop(name, None)
        if not self.preserves_unknown:
            pruned = list(structural.prune(value, self.schema, root=True))
            problems += [f'unknown field "{path}"' for path in pruned]
        return {"apiVersion": self.group_version, "kind": self.kind, **value}, problems

    def fill(self, obj: Json) -> None:
        """Fill in the defaults of the schema."""
        structural.fill(obj, self.schema)

    def problems(self, obj: Json, old: Json | None) -> Errors:
        """What is wrong with an object; faults that it already had, unchanged, are let be."""
        bare = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
        required = [key for key in self.schema.get("required") or () if key not in ("apiVersion", "kind", "metadata")]
        found = structural.validate(bare, {**self.schema, "required": required})
        if not found or old is None:
            return found
        same = {str(error) for error in structural.validate({k: v for k, v in old.items() if k in bare}, self.schema)}
        unchanged = all(obj.get(key) == old.get(key) for key in bare)
        return [] if unchanged else [error for error in found if str(error) not in same]

    def openapi(self) -> Json:
        """The schema as OpenAPI shows it."""
        return self.schema


def _deprecation(version: Json, group_version: str, kind: str) -> str:
    if not version.get("deprecated"):
        return ""
    return version.get("deprecationWarning") or f"{group_version} {kind} is deprecated"


# ── definitions as rows ─────────────────────────────────────────────────────────────────────────────────────


def rows(obj: Json) -> list[Resource]:
    """The rows of the registry that a definition stands for, the preferred version first."""
    spec = obj["spec"]
    served = [version for version in spec.get("versions") or () if version.get("served")]
    served.sort(key=lambda version: _preference(version["name"]), reverse=True)
    return [_row(spec, version, len(spec["versions"]) > 1) for version in served]


def _preference(name: str) -> tuple[int, int, int]:
    """Kubernetes' order of versions: v2, v1, v2beta1, v1beta1, v1alpha1, others."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", name)
    if match is None:
        return (0, 0, 0)
    stage = {None: 3, "beta": 2, "alpha": 1}[match[2]]
    return (stage, int(match[1]), int(match[3] or 0))


def _row(spec: Json, version: Json, several: bool) -> Resource:
    names = spec["names"]
    subs = version.get("subresources") or {}
    subresources: dict[str, Subresource] = {}
    scale = None
    if subs.get("status") is not None:
        subresources["status"] = Subresource("status")
    if subs.get("scale") is not None:
        subresources["scale"] = Subresource("scale", STATUS_VERBS, ("autoscaling", "v1", "Scale"))
        paths = subs["scale"]
        scale = ScalePaths(
            jsonpath.names(paths["specReplicasPath"]),
            jsonpath.names(paths["statusReplicasPath"]),
            jsonpath.names(paths["labelSelectorPath"]) if paths.get("labelSelectorPath") else ("",),
        )
    fields = {}
    for one in version.get("selectableFields") or ():
        path = jsonpath.names(one["jsonPath"])
        fields[".".join(path)] = (path, "")
    group = spec["group"]
    conversion = None
    if several:
        stored = next(v["name"] for v in spec["versions"] if v.get("storage"))
        conversion = Conversion(
            f"{group}/{names['plural']}", _renamed(f"{group}/{stored}"), _renamed(f"{group}/{version['name']}")
        )
    return Resource(
        group=group,
        version=version["name"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        kind=names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=_VERBS,
        subresources=subresources,
        field_labels=fields,
        generation=True,
        unconditional=False,
        conversion=conversion,
        scale=scale,
        definition=Definition(spec, version),
    )


def _renamed(group_version: str) -> Callable[[Json], Json]:
    return lambda obj: {**obj, "apiVersion": group_version}


class Definitions:
    """Keeps the registry in step with the definitions in the store."""

    def __init__(self, registry: Registry, store: Store, now: Callable[[], int]) -> None:
        self.registry, self.store, self.now = registry, store, now

    def load(self) -> None:
        """Serve what is defined already, after a restart."""
        for stored in self.store.list(STORAGE).items:
            self._serve(stored.obj)

    def changed(self, name: str) -> None:
        """Look at a definition that was just created or changed."""
        stored = self.store.find(STORAGE, "", name)
        if stored is None or "deletionTimestamp" in stored.obj["metadata"]:
            return
        taken = self._kind_taken(stored.obj)
        if not taken:
            self._serve(stored.obj)
        self._establish(name, taken)

    def empty(self, name: str) -> None:
        """A definition is about to be deleted: its objects go first, and hold it while they cannot."""
        stored = self.store.find(STORAGE, "", name)
        if stored is None:
            return
        spec = stored.obj["spec"]
        storage = f"{spec['group']}/{spec['names']['plural']}"
        self.store.delete_collection(storage)
        if self.store.count(storage):
            self.store.guaranteed_update(STORAGE, "", name, _with_cleanup)
        else:
            self.registry.remove(spec["group"], spec["names"]["plural"])

    def settle(self, resource: Resource) -> None:
        """An object of a custom kind changed: if it was the last that held a going definition, let that go."""
        name = f"{resource.plural}.{resource.group}"
        stored = self.store.find(STORAGE, "", name)
        if stored is None or "deletionTimestamp" not in stored.obj["metadata"] or self.store.count(resource.storage):
            return
        self.registry.remove(resource.group, resource.plural)
        self.store.guaranteed_update(STORAGE, "", name, _without_cleanup)

    def _serve(self, obj: Json) -> None:
        spec = obj["spec"]
        self.registry.remove(spec["group"], spec["names"]["plural"])
        for row in rows(obj):
            self.registry.add(row)

    def _kind_taken(self, obj: Json) -> str:
        """The name that another definition of the same group has already, or ""."""
        spec = obj["spec"]
        for stored in self.store.list(STORAGE).items:
            other = stored.obj["spec"]
            if stored.name != obj["metadata"]["name"] and other["group"] == spec["group"]:
                if other["names"]["kind"] == spec["names"]["kind"]:
                    return str(spec["names"]["kind"])
        return ""

    def _establish(self, name: str, taken: str) -> None:
        at = format_rfc3339(Instant(self.now()))

        def establish(obj: Json) -> Json:
            status = obj.get("status") or {}
            was = {c["type"]: c for c in status.get("conditions") or ()}
            if taken:
                why = f'"{taken}" is already in use'
                conditions = [
                    _condition(was, "NamesAccepted", "False", "KindConflict", why, at),
                    _condition(was, "Established", "False", "NotAccepted", "not all names are accepted", at),
                ]
                return {**obj, "status": {**status, "conditions": conditions}}
            conditions = [
                _condition(was, "NamesAccepted", "True", "NoConflicts", "no conflicts found", at),
                _condition(
                    was, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted", at
                ),
            ]
            stored = list(status.get("storedVersions") or ())
            stored += [v["name"] for v in obj["spec"]["versions"] if v.get("storage") and v["name"] not in stored]
            names = copy.deepcopy(obj["spec"]["names"])
            return {**obj, "status": {"conditions": conditions, "acceptedNames": names, "storedVersions": stored}}

        self.store.guaranteed_update(STORAGE, "", name, establish)


def _with_cleanup(obj: Json) -> Json:
    meta = obj["metadata"]
    return {**obj, "metadata": {**meta, "finalizers": [*(meta.get("finalizers") or ()), CLEANUP]}}


def _without_cleanup(obj: Json) -> Json:
    meta = dict(obj["metadata"])
    meta["finalizers"] = [f for f in meta.get("finalizers") or () if f != CLEANUP]
    if not meta["finalizers"]:
        del meta["finalizers"]
    return {**obj, "metadata": meta}


def _condition(was: dict[str, Json], kind: str, state: str, reason: str, message: str, at: str) -> Json:
    if kind in was and was[kind].get("status") == state:
        return was[kind]
    return {"type": kind, "status": state, "lastTransitionTime": at, "reason": reason, "message": message}
