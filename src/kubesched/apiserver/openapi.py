"""Describe what is served as OpenAPI, for kubectl's validation, `explain` and `diff`.

Version 3 is a document per group and version behind an index; the index names each with a hash of its content, which
is what kubectl caches by, so a changed CustomResourceDefinition must change the hash, and does.  Documents are made
when they are first asked for, from the rows of the registry and the structs of the schema.

The words of `kubectl explain` are this project's own and cover what schedulers work with; the rest is shown with
names and types alone.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from importlib import resources
from typing import Any

from kubesched.apiserver import schema
from kubesched.apiserver.gnostic import encode_document
from kubesched.apiserver.kinds import Registry, Resource
from kubesched.apiserver.requests import Response, encode, json_response

Json = dict[str, Any]

_COMPONENTS = "#/components/schemas/"
_SCALARS: dict[str, Json] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "Duration": {"type": "string"},
}
_NAMED: dict[str, tuple[str, Json]] = {
    "Quantity": ("io.k8s.apimachinery.pkg.api.resource.Quantity", {"type": "string"}),
    "IntOrString": ("io.k8s.apimachinery.pkg.util.intstr.IntOrString", {"type": "string", "format": "int-or-string"}),
    "Time": ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", {"type": "string", "format": "date-time"}),
    "MicroTime": ("io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime", {"type": "string", "format": "date-time"}),
    "FieldsV1": ("io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1", {"type": "object"}),
    "RawExtension": ("io.k8s.apimachinery.pkg.runtime.RawExtension", {"type": "object"}),
    "JSON": ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON", {}),
    "JSONSchemaProps": ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps", {"type": "object"}),
}
_META = "meta.ObjectMeta"
_HEAD = {
    "apiVersion": {"type": "string", "description": "The version of the schema that this object is written in."},
    "kind": {"type": "string", "description": "The kind of this object, in CamelCase."},
}


@functools.cache
def descriptions() -> dict[str, str]:
    """Struct or struct.field → what it is for, from explain.txt."""
    found: dict[str, str] = {}
    for line in resources.files(__package__).joinpath("explain.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, text = line.partition(": ")
            found[name] = text
    return found


# ── schemas ─────────────────────────────────────────────────────────────────────────────────────────────────


class Schemas:
    """The schemas that a document needs, gathered while they are referred to."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.found: dict[str, Json] = {}

    def of_type(self, kind: schema.Type) -> Json:
        if kind.containers:
            inner = self.of_type(kind.element)
            if kind.containers[0] == "[]":
                return {"type": "array", "items": inner}
            return {"type": "object", "additionalProperties": inner}
        if kind.is_struct:
            return {"$ref": self.root + self.add(kind.base)}
        if kind.base in _SCALARS:
            return dict(_SCALARS[kind.base])
        name, body = _NAMED[kind.base]
        self.found.setdefault(name, body)
        return {"$ref": self.root + name}

    def add(self, struct: str, kinds: tuple[Json, ...] = ()) -> str:
        """Make a struct part of the document; return its name there."""
        here = schema.shape(struct)
        if here.openapi in self.found:
            return here.openapi
        body: Json = {"type": "object"}
        self.found[here.openapi] = body
        properties: Json = dict(_HEAD) if kinds else {}
        for field in here.fields.values():
            properties[field.name] = self._property(struct, field)
        if struct in descriptions():
            body["description"] = descriptions()[struct]
        if properties:
            body["properties"] = properties
        required = sorted(field.name for field in here.fields.values() if field.required)
        if required:
            body["required"] = required
        if here.whole:
            body["x-kubernetes-map-type"] = "atomic"
        if kinds:
            body["x-kubernetes-group-version-kind"] = list(kinds)
        return here.openapi

    def _property(self, struct: str, field: schema.Field) -> Json:
        found = self.of_type(field.type)
        text = descriptions().get(f"{struct}.{field.name}")
        # A reference may stand beside nothing else, so what is said of the field wraps it.
        if text and "$ref" in found:
            found = {"allOf": [found]} if self.root == _COMPONENTS else found
        if text:
            found["description"] = text
        if field.list_type:
            found["x-kubernetes-list-type"] = field.list_type
        if field.list_keys:
            found["x-kubernetes-list-map-keys"] = list(field.list_keys)
        if field.whole:
            found["x-kubernetes-map-type"] = "atomic"
        if field.merge:
            found["x-kubernetes-patch-strategy"] = "merge,retainKeys" if field.retain else "merge"
            if field.merge_key:
                found["x-kubernetes-patch-merge-key"] = field.merge_key
        elif field.retain:
            found["x-kubernetes-patch-strategy"] = "retainKeys"
        return found

    def of_resource(self, row: Resource) -> str:
        """Make a kind part of the document; return its name there."""
        gvk = {"group": row.group, "kind": row.kind, "version": row.version}
        if not row.is_custom:
            return self.add(row.shape, (gvk,))
        name = ".".join([*reversed(row.group.split(".")), row.version, row.kind])
        body: Json = dict(row.definition.openapi())
        properties = {**_HEAD, **body.get("properties", {})}
        properties["metadata"] = {"allOf": [{"$ref": self.root + self.add(_META)}]}
        self.found[name] = {
            **body,
            "type": "object",
            "properties": properties,
            "x-kubernetes-group-version-kind": [gvk],
        }
        return name


# ── version 3 ───────────────────────────────────────────────────────────────────────────────────────────────


def _paths(row: Resource, name: str) -> Json:
    """The paths of a resource, as far as clients look: what can be read, and patched with validation."""
    base = f"/apis/{row.group_version}" if row.group else f"/api/{row.version}"
    if row.namespaced:
        base += "/namespaces/{namespace}"
    gvk = {"group": row.group, "version": row.version, "kind": row.kind}
    media = {"application/json": {"schema": {"$ref": _COMPONENTS + name}}}
    answer = {"200": {"description": "OK", "content": media}}
    ways = {"fieldManager": "string", "fieldValidation": "string", "dryRun": "string"}
    parameters = [{"name": way, "in": "query", "schema": {"type": kind}} for way, kind in ways.items()]
    actions = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
    one: Json = {}
    for method, verb in actions.items():
        if verb in row.verbs:
            entry: Json = {"responses": answer, "x-kubernetes-action": method, "x-kubernetes-group-version-kind": gvk}
            if method in ("put", "patch"):
                entry["parameters"] = parameters
            one[method] = entry
    many: Json = {}
    for method, verb, action in (("get", "list", "list"), ("post", "create", "post")):
        if verb in row.verbs:
            entry = {"responses": answer, "x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk}
            if method == "post":
                entry["parameters"] = parameters
            many[method] = entry
    found = {f"{base}/{row.plural}": many} if many else {}
    if one:
        found[f"{base}/{row.plural}/{{name}}"] = one
    return found


class OpenApi:
    """The OpenAPI documents of a registry."""

    def __init__(self, registry: Registry, version: str) -> None:
        self.registry, self.version = registry, version
        self._generation = -1
        self._documents: dict[str, bytes] = {}

    def _cached(self, name: str, make: Callable[[], bytes]) -> bytes:
        if self._generation != self.registry.generation:
            self._generation = self.registry.generation
            self._documents.clear()
        if name not in self._documents:
            self._documents[name] = make()
        return self._documents[name]

    def index(self) -> Response:
        """Answer /openapi/v3."""
        return Response(200, self._cached("v3", self._make_index))

    def _make_index(self) -> bytes:
        paths = {}
        for group, versions in self.registry.groups().items():
            for version in versions:
                path = f"apis/{group}/{version}" if group else f"api/{version}"
                mark = self._fingerprint(group, version)
                paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={mark}"}
        return encode({"paths": paths}) + b"\n"

    def _fingerprint(self, group: str, version: str) -> str:
        """What a document depends on, hashed; cheaper than making the document."""
        rows = self.registry.groups()[group][version]
        seed: list[Any] = [self.version, len(descriptions())]
        for row in rows:
            seed.append([row.plural, row.kind, row.shape, list(row.subresources), row.verbs])
            if row.is_custom:
                seed.append(row.definition.openapi())
        return hashlib.sha256(encode(seed)).hexdigest().upper()

    def document(self, path: str) -> Response | None:
        """Answer /openapi/v3/<path>; None when there is no such group and version."""
        parts = path.split("/")
        group, version = (parts[1], parts[2]) if len(parts) == 3 else ("", parts[-1])
        if parts[0] != ("apis" if len(parts) == 3 else "api") or not self.registry.serves(group, version):
            return None
        return Response(200, self._cached(f"v3/{path}", lambda: encode(self._make_document(group, version))))

    def _make_document(self, group: str, version: str) -> Json:
        schemas = Schemas(_COMPONENTS)
        paths: Json = {}
        for row in self.registry.groups()[group][version]:
            paths |= _paths(row, schemas.of_resource(row))
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": self.version},
            "paths": paths,
            "components": {"schemas": schemas.found},
        }

    # version 2 ---------------------------------------------------------------------------------------

    def swagger(self) -> Json:
        """The OpenAPI 2 document: all definitions at once."""
        schemas = Schemas("#/definitions/")
        paths: Json = {}
        for row in self.registry:
            schemas.of_resource(row)
            paths |= _patch_paths(row)
        return {
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": self.version},
            "paths": paths,
            "definitions": schemas.found,
        }

    def v2(self, accept: str) -> Response:
        """Answer /openapi/v2: gnostic protobuf for whoever asks for it, else JSON."""
        if "proto" in accept.partition(",")[0]:
            body = self._cached("v2.pb", lambda: encode_document(self.swagger()))
            return Response(200, body, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
        return Response(200, self._cached("v2", lambda: encode(self.swagger()) + b"\n"))


def _patch_paths(row: Resource) -> Json:
    if "patch" not in row.verbs:
        return {}
    base = f"/apis/{row.group_version}" if row.group else f"/api/{row.version}"
    scope = "/namespaces/{namespace}" if row.namespaced else ""
    query = {"name": "fieldValidation", "in": "query", "type": "string", "uniqueItems": True}
    patch = {
        "parameters": [query],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": {"group": row.group, "kind": row.kind, "version": row.version},
    }
    return {f"{base}{scope}/{row.plural}/{{name}}": {"patch": patch}}


def respond(openapi: OpenApi, segments: list[str], accept: str) -> Response | None:
    """Answer a path below /openapi."""
    if segments == ["v2"]:
        return openapi.v2(accept)
    if segments == ["v3"]:
        return openapi.index()
    if segments[:1] == ["v3"]:
        return openapi.document("/".join(segments[1:]))
    return json_response({"paths": ["/openapi/v2", "/openapi/v3"]}) if not segments else None
