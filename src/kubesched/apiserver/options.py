"""Read the options of a request: what to list, how to watch, whether to write at all.

Each kind of request has an options type in meta.k8s.io whose validation speaks with its own name
(`ListOptions.meta.k8s.io "" is invalid: …`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubesched.api.labels import Selector, SelectorError, parse_selector
from kubesched.api.selectors import parse_field_selector
from kubesched.apiserver import cleaning, codec
from kubesched.apiserver.kinds import Resource, field_value
from kubesched.apiserver.negotiation import PROTOBUF
from kubesched.apiserver.ownership import Writer
from kubesched.apiserver.protobuf import BadProtobuf, read_envelope, read_message
from kubesched.apiserver.requests import Query, Request
from kubesched.apiserver.status import (
    FieldError,
    bad_request,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
    field_too_long,
    invalid_options,
)
from kubesched.apiserver.store import DeleteOptions, Preconditions

Json = dict[str, Any]
Matches = Callable[[Json], bool]

MANAGER_MAX = 128


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """CreateOptions, UpdateOptions or PatchOptions."""

    dry_run: bool
    manager: str
    force: bool = False
    named: bool = False

    @property
    def writer(self) -> Writer:
        return Writer(self.manager, self.named)


def write_options(request: Request, kind: str, *, apply: bool = False) -> WriteOptions:
    """Read and check the options of a write; kind is "CreateOptions", "UpdateOptions" or "PatchOptions"."""
    query = request.query
    if not query:
        if apply:
            raise invalid_options(kind, [field_required("fieldManager", "is required for apply patch")])
        return WriteOptions(False, _user_agent(request))
    errors: list[FieldError] = []
    manager = query.get("fieldManager")
    force = query.flag("force")
    if kind == "PatchOptions":
        if apply and not manager:
            errors.append(field_required("fieldManager", "is required for apply patch"))
        if not apply and force is not None:
            errors.append(field_forbidden("force", "may not be specified for non-apply patch"))
    if len(manager) > MANAGER_MAX:
        errors.append(field_too_long("fieldManager", MANAGER_MAX))
    if any(not character.isprintable() for character in manager):
        errors.append(field_invalid("fieldManager", manager, "should only contain printable characters"))
    dry_run = query.all("dryRun")
    if any(value != "All" for value in dry_run):
        errors.append(field_not_supported("dryRun", dry_run, ["All"]))
    mode = query.get("fieldValidation")
    if mode not in codec.FIELD_VALIDATION:
        errors.append(field_not_supported("fieldValidation", mode, codec.FIELD_VALIDATION))
    if errors:
        raise invalid_options(kind, errors)
    return WriteOptions(bool(dry_run), manager or _user_agent(request), bool(force), bool(manager))


def _user_agent(request: Request) -> str:
    return request.headers.get("user-agent", "").partition("/")[0][:MANAGER_MAX] or "unknown"


# ── selection ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Selection:
    """What label and field selectors leave: matches is None for everything; name when only one can be meant."""

    matches: Matches | None = None
    name: str | None = None


EVERYTHING = Selection()


def _label_matcher(text: str) -> Matches | None:
    try:
        selector: Selector = parse_selector(text)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    if selector.empty:
        return None
    return lambda obj: selector.matches(obj["metadata"].get("labels") or {})


# Kept from kube-apiserver: two kinds say it in their own way.
_UNKNOWN_LABELS = {
    "batch.Job": 'field label "{}" not supported for Job',
    "resource.ResourceSlice": "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {}",
}


def _field_conditions(text: str, resource: Resource) -> list[tuple[tuple[str, ...], str, str, bool]]:
    """(path, value when absent, wanted value, whether it must be equal) of every requirement."""
    try:
        selector = parse_field_selector(text)
    except SelectorError as error:
        raise bad_request(str(error)) from None
    # Kept from kube-apiserver: of the kinds without a namespace, only those with labels of their own know that.
    no_namespace = not resource.namespaced and (resource.field_labels or resource.is_custom)
    names = ("metadata.name",) if no_namespace else ("metadata.name", "metadata.namespace")
    conditions = []
    for requirement in selector.requirements:
        field = requirement.field
        if field in names:
            path, absent = tuple(field.split(".")), ""
        elif field in resource.field_labels:
            path, absent = resource.field_labels[field]
        elif resource.field_labels or resource.is_custom:
            raise bad_request(_UNKNOWN_LABELS.get(resource.shape, "field label not supported: {}").format(field))
        else:
            known = ", ".join(f'"{name}"' for name in names)
            raise bad_request(f'"{field}" is not a known field selector: only {known}')
        conditions.append((path, absent, requirement.value, requirement.equal))
    return conditions


def selection(query: Query, resource: Resource) -> Selection:
    """Compile the label and field selectors of a request into one predicate on stored objects."""
    labels, fields = query.get("labelSelector"), query.get("fieldSelector")
    if not labels and not fields:
        return EVERYTHING
    label_matches = _label_matcher(labels) if labels else None
    conditions = _field_conditions(fields, resource) if fields else []
    names = [wanted for path, _, wanted, equal in conditions if path == ("metadata", "name") and equal]
    name = names[0] if names else None
    if len(conditions) == 1 and name is not None and label_matches is None:
        return Selection(lambda obj: bool(obj["metadata"]["name"] == name), name)
    if not conditions:
        return Selection(label_matches)

    def matches(obj: Json) -> bool:
        for path, absent, wanted, equal in conditions:
            if (field_value(obj, path, absent) == wanted) is not equal:
                return False
        return label_matches is None or label_matches(obj)

    return Selection(matches, name)


# ── lists and watches ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ListOptions:
    """ListOptions as the store understands them."""

    watch: bool
    limit: int
    continue_token: str
    resource_version: str
    match: str
    send_initial_events: bool | None
    bookmarks: bool
    timeout: int | None


def list_options(query: Query, *, watch: bool) -> ListOptions:
    """Read and check the options of a list or watch."""
    options = ListOptions(
        watch=watch,
        limit=max(0, query.integer("limit") or 0),
        continue_token=query.get("continue"),
        resource_version=query.get("resourceVersion"),
        match=query.get("resourceVersionMatch"),
        send_initial_events=query.flag("sendInitialEvents"),
        bookmarks=bool(query.flag("allowWatchBookmarks")),
        timeout=query.integer("timeoutSeconds"),
    )
    errors = _watch_errors(options) if watch else _list_errors(options)
    if errors:
        raise invalid_options("ListOptions", errors)
    return options


_MATCH = "resourceVersionMatch"


def _list_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    if options.match:
        if options.match not in ("Exact", "NotOlderThan"):
            errors.append(field_not_supported(_MATCH, options.match, ["Exact", "NotOlderThan", ""]))
        if not options.resource_version:
            errors.append(field_forbidden(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided"))
        if options.continue_token:
            errors.append(field_forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
        if options.match == "Exact" and options.resource_version == "0":
            errors.append(field_forbidden(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial_events is not None:
        errors.append(field_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    if options.send_initial_events is None:
        if options.match:
            errors.append(
                field_forbidden(_MATCH, f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided")
            )
        return errors
    if options.match != "NotOlderThan":
        errors.append(field_forbidden(_MATCH, f"sendInitialEvents requires setting {_MATCH} to NotOlderThan"))
    if options.continue_token:
        errors.append(field_forbidden("continue", "continue is forbidden for watch"))
    return errors


# ── deletion ────────────────────────────────────────────────────────────────────────────────────────────────

_POLICIES = ("Foreground", "Background", "Orphan")
_DELETE_SHAPE = "meta.DeleteOptions"


def delete_options(request: Request) -> DeleteOptions:
    """Read DeleteOptions from the body if there is one, else from the query."""
    return checked_delete_options(_delete_body(request) if request.body.strip() else _delete_query(request.query))


def _delete_query(query: Query) -> Json:
    given: Json = {}
    if "gracePeriodSeconds" in query:
        given["gracePeriodSeconds"] = query.integer("gracePeriodSeconds")
    if "propagationPolicy" in query:
        given["propagationPolicy"] = query.get("propagationPolicy")
    if "orphanDependents" in query:
        given["orphanDependents"] = query.flag("orphanDependents")
    if "dryRun" in query:
        given["dryRun"] = query.all("dryRun")
    return given


def _delete_body(request: Request) -> Json:
    value, media = codec.read_value(request, "DeleteOptions")
    if media == PROTOBUF:
        try:
            _, kind, raw = read_envelope(request.body)
            value = {"kind": kind, **read_message(_DELETE_SHAPE, raw)}
        except BadProtobuf as error:
            raise bad_request(str(error)) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        what = cleaning.json_kind(value).partition(" ")[0]
        raise bad_request(f"couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go value")
    kind, version = value.pop("kind", "") or "DeleteOptions", value.pop("apiVersion", "")
    if kind != "DeleteOptions":
        raise bad_request(
            f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    try:
        cleaning.struct_cleaner(_DELETE_SHAPE)(value, [])
    except cleaning.Mistyped as error:
        raise bad_request(str(error)) from None
    for name, read in (("gracePeriodSeconds", request.query.integer), ("propagationPolicy", request.query.get)):
        if name in request.query and name not in value:
            value[name] = read(name)
    if "dryRun" in request.query:
        value.setdefault("dryRun", request.query.all("dryRun"))
    return value


def checked_delete_options(value: Json) -> DeleteOptions:
    """DeleteOptions from their JSON, or 422."""
    errors: list[FieldError] = []
    policy = value.get("propagationPolicy")
    orphan = value.get("orphanDependents")
    if policy and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(field_invalid("propagationPolicy", policy, why))
    if policy and policy not in _POLICIES:
        errors.append(field_not_supported("propagationPolicy", policy, [*_POLICIES, "nil"]))
    dry_run = value.get("dryRun") or []
    if any(one != "All" for one in dry_run):
        errors.append(field_not_supported("dryRun", dry_run, ["All"]))
    if errors:
        raise invalid_options("DeleteOptions", errors)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    wanted = value.get("preconditions") or {}
    preconditions = Preconditions(wanted.get("uid"), wanted.get("resourceVersion")) if wanted else None
    return DeleteOptions(value.get("gracePeriodSeconds"), preconditions, policy or None, bool(dry_run))
