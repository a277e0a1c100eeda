"""PATCH: read the body as the kind of patch it says it is, apply it, and send the outcome down the usual road.

Four kinds exist.  JSON patches and merge patches work on any JSON; strategic merge patches need to know lists that
are maps, so custom resources do not have them; server-side apply is not a change but a wish, and creates what is
missing.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.apiserver import cleaning, codec
from kubesched.apiserver.kinds import Resource
from kubesched.apiserver.objects import Objects
from kubesched.apiserver.options import WriteOptions, write_options
from kubesched.apiserver.ownership import Writer
from kubesched.apiserver.patch_json import json_patch
from kubesched.apiserver.patch_merge import merge_patch
from kubesched.apiserver.patch_strategic import strategic_merge_patch
from kubesched.apiserver.requests import Request
from kubesched.apiserver.status import ApiError, bad_request, not_found, unsupported_media_type
from kubesched.apiserver.store import Stored

Json = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_FOR_ALL = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


def patch_type(request: Request, resource: Resource) -> str:
    """The kind of patch in the body; 415 for one this resource does not have."""
    kind = request.content_type
    if kind in _FOR_ALL or (kind == STRATEGIC_PATCH and not resource.is_custom):
        return kind
    if kind == STRATEGIC_PATCH:
        raise unsupported_media_type(_FOR_ALL)
    raise unsupported_media_type()


def read_patch(request: Request, kind: str) -> Any:
    """Decode the body of a patch."""
    if kind == APPLY_PATCH:
        return _read_apply(request.body)
    try:
        return codec.read_json(request.body)
    except codec.Undecodable as error:
        raise bad_request(str(error) if kind == STRATEGIC_PATCH else f"error decoding patch: {error}") from None


def _read_apply(body: bytes) -> Any:
    """An apply is YAML, which is mostly JSON."""
    try:
        return codec.read_json(body)
    except codec.Undecodable:
        pass
    try:
        return codec.read_yaml(body)
    except codec.Undecodable as error:
        raise bad_request(f"error decoding YAML: {error}") from None


def patched(kind: str, view: Json, change: Any, shape: str) -> Any:
    """What a patch makes of an object; the result is the caller's own, to change at will."""
    if kind == JSON_PATCH:
        result = json_patch(view, change)
    elif kind == MERGE_PATCH:
        if not isinstance(change, dict):
            what = cleaning.json_kind(change).partition(" ")[0]
            raise bad_request(
                f"error decoding patch: json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
            )
        result = merge_patch(view, change)
    else:
        result = strategic_merge_patch(view, change, shape)
    return own(result)


def own(value: Any) -> Any:
    """A copy that shares nothing with the stored object."""
    return msgspec.json.decode(msgspec.json.encode(value))


def patch(objects: Objects, request: Request, target: Any) -> tuple[Stored, bool]:
    """Apply the patch of a request; return the object and whether it is new."""
    resource: Resource = target.resource
    kind = patch_type(request, resource)
    options = write_options(request, "PatchOptions", apply=kind == APPLY_PATCH)
    strict = codec.field_validation(request.query)
    old = objects.store.find(resource.storage, target.place, target.name)
    if kind == APPLY_PATCH:
        return _applied(objects, request, target, read_patch(request, kind), old, options, strict)
    if old is None:
        raise _missing(target)
    outcome = patched(kind, objects.view(resource, old), read_patch(request, kind), resource.shape)
    new = objects.clean_patched(request, resource, outcome, strict)
    stored = objects.replace(
        resource, old, new, target.subresource, patched=True, writer=options.writer, dry_run=options.dry_run
    )
    return stored, False


def _missing(target: Any) -> ApiError:
    group, plural = target.resource.group, target.resource.plural
    return not_found(f"{group}/{plural}" if group else plural, target.name)


def _applied(
    objects: Objects,
    request: Request,
    target: Any,
    wish: Any,
    old: Stored | None,
    options: WriteOptions,
    strict: str,
) -> tuple[Stored, bool]:
    """Server-side apply: make the object as the wish says, from nothing if need be."""
    resource: Resource = target.resource
    if not isinstance(wish, dict):
        raise bad_request("error decoding YAML: the body is not an object")
    if old is None and target.subresource:
        raise _missing(target)
    _check_place(wish, target)
    manager = objects.ownership.manager(resource, target.subresource)
    view = None if old is None else objects.view(resource, old)
    outcome = own(manager.apply(view, wish, options.manager, force=options.force, now=objects.ownership.time()))
    try:
        new = objects.clean_patched(request, resource, outcome, strict)
    except ApiError as error:
        raise _unreadable(error, target, outcome) from None
    writer = Writer(options.manager, named=True, applied=True)
    if old is None:
        new.setdefault("metadata", {}).setdefault("name", target.name)
        stored = objects.create(resource, new, target.place, target.name, writer=writer, dry_run=options.dry_run)
        return stored, True
    stored = objects.replace(
        resource, old, new, target.subresource, patched=True, writer=writer, dry_run=options.dry_run
    )
    return stored, False


def _unreadable(error: ApiError, target: Any, outcome: Any) -> ApiError:
    """Kept from kube-apiserver: what an apply made of an object and cannot be read is the server's trouble, not 422."""
    why = str((error.details or {}).get("causes", [{}])[0].get("message", error.message)).rpartition('": ')[2]
    if why.startswith("strict decoding"):
        return error
    version, kind = target.resource.group_version, target.resource.kind
    named = f"{version if '/' in version else '/' + version}, Kind={kind}"
    place = (outcome.get("metadata") or {}).get("namespace", "")
    where = f"{place}/{target.name}; {named}"
    said = f"failed to convert new object ({where}) to proper version: unable to convert unstructured object to"
    return ApiError(500, "", f"{said} {named}: {why}")


def _check_place(wish: Json, target: Any) -> None:
    """A wish may leave its place to the URL, but not contradict it, and must look like an object at all."""
    for field in ("apiVersion", "kind"):
        if not isinstance(wish.get(field, ""), str):
            raise bad_request(f"error decoding YAML: {field} is not a string")
    meta = wish.get("metadata") or {}
    if not isinstance(meta, dict):
        raise bad_request("error decoding YAML: metadata is not an object")
    name = meta.get("name")
    if name and name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
