"""Say no the way the real server does: Status objects with its codes, reasons and sentences.

Clients branch on `reason` and `code`, people read `message`, and scripts grep for it; so all three are
those of kube-apiserver v1.36.  An ApiError is raised wherever a request is refused and becomes the body
of the answer at the edge.  Resources are addressed as everywhere in this room ("pods", "apps/deployments")
and printed as Kubernetes prints them ("deployments.apps").
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

CONFLICT_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
EXPIRED_LIST = "The resourceVersion for the provided list is too old."
EXPIRED_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


class ApiError(Exception):
    """A refused request.

    Args:
        code: the HTTP status.
        reason: the machine-readable reason; "" where the real server gives none.
        message: the sentence for people.
        details: the details object; None leaves it out, {} shows an empty one.
        retry_after: seconds after which to try again; becomes details.retryAfterSeconds and a header.
        metadata: ListMeta of the Status (an expired list offers a continue token there).
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Json | None = None,
        retry_after: int | None = None,
        metadata: Json | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after
        self.metadata = metadata

    def to_status(self) -> Json:
        """Return the Status object, its fields in the order of the real one."""
        status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata or {}, "status": "Failure"}
        if self.message:
            status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        details = self.details
        if self.retry_after:
            details = {**(details or {}), "retryAfterSeconds": self.retry_after}
        if details is not None:
            status["details"] = details
        status["code"] = self.code
        return status


# Names ---------------------------------------------------------------------------------------------------------


def split_resource(resource: str) -> tuple[str, str]:
    """Return (group, plural) of "apps/deployments" or "pods"."""
    group, _, plural = resource.rpartition("/")
    return group, plural


def qualified(resource: str) -> str:
    """Return a resource as messages show it: "pods", "deployments.apps"."""
    group, plural = split_resource(resource)
    return f"{plural}.{group}" if group else plural


def _details(resource: str, name: str, **more: Any) -> Json:
    group, plural = split_resource(resource)
    details: Json = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    details["kind"] = plural
    details.update(more)
    return details


# Values that a field may not have ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with one field: what the causes of a 422 are made of.

    reason: FieldValueRequired, FieldValueInvalid …  body: the sentence without the field.
    A field of "" is the object itself, which the real server shows as <nil>.
    """

    reason: str
    field: str
    body: str

    def __str__(self) -> str:
        return f"{self.field or '<nil>'}: {self.body}"

    def cause(self) -> Json:
        return {"reason": self.reason, "message": self.body, "field": self.field or "<nil>"}


def _shown(value: Any) -> str:
    """A value as the real server prints it inside an error: strings quoted, objects as Go's JSON."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if isinstance(value, str):
        return text
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _body(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head


def field_required(field: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", field, _body("Required value", detail))


def field_invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", field, _body(f"Invalid value: {_shown(value)}", detail))


def field_type_invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueTypeInvalid", field, _body(f"Invalid value: {_shown(value)}", detail))


def field_not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """supported is shown in the order given; the real server mostly gives it sorted."""
    choices = ", ".join(_shown(choice) for choice in supported)
    detail = f"supported values: {choices}" if choices else ""
    return FieldError("FieldValueNotSupported", field, _body(f"Unsupported value: {_shown(value)}", detail))


def field_forbidden(field: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, _body("Forbidden", detail))


def field_duplicate(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {_shown(value)}")


def field_not_found(field: str, value: Any, detail: str = "") -> FieldError:
    return FieldError("FieldValueNotFound", field, _body(f"Not found: {_shown(value)}", detail))


def field_too_long(field: str, limit: int) -> FieldError:
    unit = "byte" if limit == 1 else "bytes"
    return FieldError("FieldValueTooLong", field, f"Too long: may not be more than {limit} {unit}")


def field_too_many(field: str, actual: int, limit: int) -> FieldError:
    unit = "item" if limit == 1 else "items"
    return FieldError("FieldValueTooMany", field, f"Too many: {actual}: must have at most {limit} {unit}")


# Refusals ------------------------------------------------------------------------------------------------------


def not_found(resource: str, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{qualified(resource)} "{name}" not found', _details(resource, name))


def unknown_resource() -> ApiError:
    """A plural or subresource that a served group does not have."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: str, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{qualified(resource)} "{name}" already exists', _details(resource, name))


def generate_name_conflict(resource: str, name: str) -> ApiError:
    taken = f'{qualified(resource)} "{name}" already exists'
    message = f"{taken}, the server was not able to generate a unique name for the object"
    return ApiError(409, "AlreadyExists", message, _details(resource, name), retry_after=1)


def conflict(resource: str, name: str, why: str = CONFLICT_MODIFIED) -> ApiError:
    message = f'Operation cannot be fulfilled on {qualified(resource)} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(resource, name))


def apply_conflict(conflicts: Sequence[tuple[str, str]]) -> ApiError:
    """Server-side apply met fields of others: (manager as shown, path), one manager's together, in order."""
    by_manager: dict[str, list[str]] = {}
    for manager, path in conflicts:
        by_manager.setdefault(manager, []).append(path)
    if len(conflicts) == 1:
        message = f"Apply failed with 1 conflict: conflict with {conflicts[0][0]}: {conflicts[0][1]}"
    else:
        lines = []
        for manager, paths in by_manager.items():
            lines += [f"conflicts with {manager}:", *(f"- {path}" for path in paths)]
        message = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path}
        for manager, path in conflicts
    ]
    return ApiError(409, "Conflict", message, {"causes": causes})


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """The object of this kind breaks a rule (or several); errors must not be empty."""
    seen = list(dict.fromkeys(str(error) for error in errors))
    text = seen[0] if len(seen) == 1 else f"[{', '.join(seen)}]"
    shown = f"{kind}.{group}" if group else kind
    details: Json = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [error.cause() for error in errors]
    return ApiError(422, "Invalid", f'{shown} "{name}" is invalid: {text}', details)


def invalid_options(kind: str, errors: Sequence[FieldError]) -> ApiError:
    """Bad CreateOptions, ListOptions, …"""
    return invalid("meta.k8s.io", kind, "", errors)


def unprocessable() -> ApiError:
    """A JSON patch that cannot be applied to this object; the real server does not say why."""
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: str, name: str, why: str, causes: Sequence[Json] | None = None) -> ApiError:
    """Admission or authorization says no; name "" for requests without one (create, list)."""
    shown = f'{qualified(resource)} "{name}"' if name else qualified(resource)
    details = _details(resource, name)
    if causes:
        details["causes"] = list(causes)
    return ApiError(403, "Forbidden", f"{shown} is forbidden: {why}", details)


def gone(message: str) -> ApiError:
    return ApiError(410, "Gone", message)


def expired(message: str, continue_token: str = "") -> ApiError:
    """History no longer reaches back that far; continue_token offers an inconsistent continuation."""
    return ApiError(410, "Expired", message, metadata={"continue": continue_token} if continue_token else None)


def too_old(requested: int, oldest: int) -> ApiError:
    """A watch from before the kept history."""
    return expired(f"too old resource version: {requested} ({oldest})")


def future_resource_version(requested: int, current: int) -> ApiError:
    message = f"Timeout: Too large resource version: {requested}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return ApiError(504, "Timeout", message, {"causes": causes}, retry_after=1)


def timeout(message: str, retry_after: int = 0) -> ApiError:
    return ApiError(504, "Timeout", f"Timeout: {message}", {}, retry_after=retry_after or None)


def too_large(why: str) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {why}")


def too_many_requests(message: str, retry_after: int = 0, causes: Sequence[Json] | None = None) -> ApiError:
    details: Json = {"causes": list(causes)} if causes else {}
    return ApiError(429, "TooManyRequests", message, details, retry_after=retry_after or None)


def method_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def method_not_supported(resource: str, verb: str) -> ApiError:
    """A verb that this resource does not have, found only while handling it."""
    message = f'{verb} is not supported on resources of kind "{qualified(resource)}"'
    return ApiError(405, "MethodNotAllowed", message, _details(resource, ""))


def not_acceptable(available: Sequence[str]) -> ApiError:
    message = "only the following media types are accepted: " + ", ".join(available)
    return ApiError(406, "NotAcceptable", message)


def unsupported_media_type(accepted: Sequence[str] = ()) -> ApiError:
    """A body in a format that is not spoken; accepted names those that are."""
    if not accepted:
        return ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return ApiError(415, "UnsupportedMediaType", message)


def internal(why: str) -> ApiError:
    return ApiError(500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]})


def plain(message: str, code: int = 500) -> ApiError:
    """An error that the real server passes on as it is: neither reason nor details."""
    return ApiError(code, "", message)


# Preconditions -------------------------------------------------------------------------------------------------

# Where the real server keeps what; only error messages show it.
_REGISTRY = {
    "nodes": "minions",
    "services": "services/specs",
    "endpoints": "services/endpoints",
    "replicationcontrollers": "controllers",
    "networking.k8s.io/ingresses": "ingress",
}
_FOLDED_GROUPS = frozenset(
    (
        "",
        "apps",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
    )
)


def registry_key(resource: str, namespace: str, name: str) -> str:
    """Return the etcd key under which the real server would keep the object."""
    group, plural = split_resource(resource)
    folder = _REGISTRY.get(resource) or (plural if group in _FOLDED_GROUPS else f"{group}/{plural}")
    return "/".join(part for part in ("/registry", folder, namespace, name) if part)


def precondition_failed(
    resource: str, namespace: str, name: str, what: str, wanted: str, found: str, *, dry_run: bool = False
) -> ApiError:
    """A write was fenced by UID or ResourceVersion and the stored object is another."""
    key = registry_key(resource, namespace, name)
    if dry_run:  # kept from kube-apiserver: what is not written has no place in etcd, only one in the registry
        key = key.removeprefix("/registry")
    return conflict(
        resource,
        name,
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}",
    )
