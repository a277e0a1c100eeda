"""The scale subresource: one small shape for every kind that has replicas.

`kubectl scale` and autoscalers neither know nor care whether they scale a Deployment or a custom resource; they read
and write an autoscaling/v1 Scale, whose numbers lie where the kind's row says (kinds.ScalePaths).
"""

from __future__ import annotations

from typing import Any

from kubesched.apiserver import codec, patching
from kubesched.apiserver.cells import selector_text
from kubesched.apiserver.kinds import Resource, ScalePaths
from kubesched.apiserver.objects import Objects
from kubesched.apiserver.options import WriteOptions, write_options
from kubesched.apiserver.requests import Request, Response, encode
from kubesched.apiserver.status import ApiError, field_invalid, internal, invalid
from kubesched.apiserver.store import Stored

Json = dict[str, Any]

GROUP_VERSION, KIND, SHAPE = "autoscaling/v1", "Scale", "autoscaling.Scale"


def _at(obj: Json, path: tuple[str, ...]) -> Any:
    value: Any = obj
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _with(obj: Json, path: tuple[str, ...], value: Any) -> Json:
    head, *rest = path
    inner = obj.get(head) if isinstance(obj.get(head), dict) else {}
    return {**obj, head: _with(inner or {}, tuple(rest), value) if rest else value}


def scale_of(resource: Resource, obj: Json, *, writing: bool = False) -> Json:
    """The Scale of an object; whoever sets the replicas need not have had any."""
    paths = resource.scale or ScalePaths()
    replicas = _at(obj, paths.spec)
    if resource.is_custom and replicas is None and not writing:
        raise internal(f'the spec replicas field ".{".".join(paths.spec)}" does not exist')
    meta = obj["metadata"]
    shown = {
        key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if key in meta
    }
    status: Json = {"replicas": _at(obj, paths.status) or 0}
    selector = selector_text(_at(obj, paths.selector))
    if selector:
        status["selector"] = selector
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": KIND, "apiVersion": GROUP_VERSION, "metadata": shown, "spec": spec, "status": status}


def show(resource: Resource, stored: Stored) -> Response:
    return Response(200, encode(scale_of(resource, stored.obj)) + b"\n")


def update(objects: Objects, request: Request, resource: Resource, stored: Stored) -> Response:
    """PUT a Scale."""
    options = write_options(request, "UpdateOptions")
    mode = codec.field_validation(request.query)
    scale = codec.read_object(request, GROUP_VERSION, KIND, SHAPE, mode)
    return _apply(objects, resource, stored, scale, options)


def patch(objects: Objects, request: Request, resource: Resource, stored: Stored) -> Response:
    """PATCH a Scale."""
    kind = patching.patch_type(request, resource)
    options = write_options(request, "PatchOptions", apply=kind == patching.APPLY_PATCH)
    mode = codec.field_validation(request.query)
    change = patching.read_patch(request, kind)
    if kind == patching.APPLY_PATCH:
        kind = patching.MERGE_PATCH
    outcome = patching.patched(kind, scale_of(resource, stored.obj, writing=True), change, SHAPE)
    try:
        codec.check_kind(outcome, GROUP_VERSION, KIND)
        scale, _ = codec.clean(outcome, GROUP_VERSION, KIND, SHAPE, mode)
    except ApiError as error:
        raise codec.refused_as_patch(error, outcome) from None
    return _apply(objects, resource, stored, scale, options)


def _apply(objects: Objects, resource: Resource, stored: Stored, scale: Json, options: WriteOptions) -> Response:
    paths = resource.scale or ScalePaths()
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    meta = scale.get("metadata") or {}
    if meta.get("name", stored.name) != stored.name:
        why = f"the name of the object ({meta['name']}) does not match the name on the URL ({stored.name})"
        raise ApiError(400, "BadRequest", why)
    if replicas < 0:
        error = field_invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("autoscaling", KIND, stored.name, [error])
    new = patching.own(_with(stored.obj, paths.spec, replicas))
    new["metadata"]["resourceVersion"] = meta.get("resourceVersion", "")
    if meta.get("uid"):
        new["metadata"]["uid"] = meta["uid"]
    return show(
        resource, objects.replace(resource, stored, new, patched=True, writer=options.writer, dry_run=options.dry_run)
    )
