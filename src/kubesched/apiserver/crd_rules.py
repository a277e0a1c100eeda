"""What a CustomResourceDefinition must say, what it may leave out, and what of it cannot change.

Versions must have structural schemas; paths into objects must be readable; names must fit together.  Nothing here knows
how definitions are served: that is kubesched.apiserver.crd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.api.names import check_dns1123_label, check_dns1123_subdomain
from kubesched.apiserver import jsonpath, structural
from kubesched.apiserver.status import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)

Json = dict[str, Any]
Errors = list[FieldError]

_PROTECTED = ("k8s.io", "kubernetes.io")


def complete(obj: Json) -> None:
    """Fill in what a definition may leave out."""
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if names.get("kind"):
        names.setdefault("singular", names["kind"].lower())
        if not names.get("listKind"):
            names["listKind"] = f"{names['kind']}List"
    spec.setdefault("conversion", {"strategy": "None"})
    for version in spec.get("versions") or ():
        for column in version.get("additionalPrinterColumns") or ():
            if not column.get("priority"):
                column.pop("priority", None)


def first_status(obj: Json, now: int) -> None:
    """The status of a definition nobody has looked at: which versions objects are stored in."""
    stored = [v["name"] for v in obj["spec"].get("versions") or () if v.get("storage")]
    obj["status"] = {"acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}


def problems(obj: Json) -> Errors:
    """What is wrong with a definition, beyond its metadata."""
    spec = obj["spec"]
    names, group = spec.get("names") or {}, spec.get("group", "")
    errors: Errors = []
    plural = names.get("plural", "")
    if obj["metadata"].get("name") != f"{plural}.{group}":
        why = 'must be spec.names.plural+"."+spec.group'
        errors.append(field_invalid("metadata.name", obj["metadata"].get("name", ""), why))
    if not group:
        errors.append(field_required("spec.group"))
    else:
        errors += [field_invalid("spec.group", group, fault) for fault in _faults(check_dns1123_subdomain(group))]
        if "." not in group:
            errors.append(field_invalid("spec.group", group, "should be a domain with at least one dot"))
    scope = spec.get("scope")
    if not scope:
        errors.append(field_required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        errors.append(field_not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
    errors += _version_problems(spec.get("versions") or [])
    for name in ("plural", "singular", "kind", "listKind"):
        value = names.get(name, "")
        if not value:
            errors.append(field_required(f"spec.names.{name}"))
        else:
            errors += [
                field_invalid(f"spec.names.{name}", value, f) for f in _faults(check_dns1123_label(value.lower()))
            ]
            if name in ("plural", "singular") and value != value.lower():
                errors.append(field_invalid(f"spec.names.{name}", value, "must be lower case"))
    if (spec.get("conversion") or {}).get("strategy") not in (None, "None"):
        why = "conversion webhooks are not called here: versions may only differ in name"
        errors.append(field_forbidden("spec.conversion.strategy", why))
    protected = any(group == one or group.endswith(f".{one}") for one in _PROTECTED)
    approval = "api-approved.kubernetes.io"
    if protected and approval not in (obj["metadata"].get("annotations") or {}):
        why = f'protected groups must have approval annotation "{approval}", see https://github.com/kubernetes/enhancements/pull/1111'
        errors.append(field_required(f"metadata.annotations[{approval}]", why))
    return errors


def _faults(sentence: str | None) -> list[str]:
    return sentence.split("; ") if sentence else []


def _version_problems(versions: list[Json]) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, version in enumerate(versions):
        at = f"spec.versions[{index}]"
        name = version.get("name", "")
        errors += [field_invalid(f"{at}.name", name, fault) for fault in _faults(check_dns1123_label(name))]
        if name in seen:
            errors.append(field_duplicate(f"{at}.name", name))
        seen.add(name)
        found = (version.get("schema") or {}).get("openAPIV3Schema")
        if found is None:
            errors.append(field_required(f"{at}.schema.openAPIV3Schema"))
        else:
            errors += structural.check_schema(found, f"{at}.schema.openAPIV3Schema")
        errors += _path_problems(version, at)
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        errors.append(field_invalid("spec.versions", [v.get("name", "") for v in versions] or None, why))
    return errors


def _path_problems(version: Json, at: str) -> Errors:
    errors: Errors = []
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        where = f"{at}.additionalPrinterColumns[{index}]"
        for name in ("name", "type", "jsonPath"):
            if not column.get(name):
                errors.append(field_required(f"{where}.{name}"))
        if column.get("type") and column["type"] not in (*structural.TYPES, "date"):
            choices = ("boolean", "date", "integer", "number", "string")
            errors.append(field_not_supported(f"{where}.type", column["type"], choices))
        errors += _bad_path(column.get("jsonPath"), f"{where}.jsonPath", jsonpath.compile_path)
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        for name in ("specReplicasPath", "statusReplicasPath"):
            if not scale.get(name):
                errors.append(field_required(f"{at}.subresources.scale.{name}"))
        for name in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath"):
            errors += _bad_path(scale.get(name), f"{at}.subresources.scale.{name}", jsonpath.names)
    for index, one in enumerate(version.get("selectableFields") or ()):
        errors += _bad_path(one.get("jsonPath"), f"{at}.selectableFields[{index}].jsonPath", jsonpath.names)
    return errors


def _bad_path(path: Any, at: str, read: Callable[[str], Any]) -> Errors:
    if not path:
        return []
    try:
        read(path)
    except jsonpath.BadPath as error:
        return [field_invalid(at, path, str(error))]
    return []


def changed_problems(obj: Json, old: Json) -> Errors:
    """What is wrong with a changed definition: what it is about cannot change."""
    errors = problems(obj)
    established = any(
        c.get("type") == "Established" and c.get("status") == "True"
        for c in (old.get("status") or {}).get("conditions") or ()
    )
    new, was = obj["spec"], old["spec"]
    if established and new.get("scope") != was.get("scope"):
        errors.append(field_invalid("spec.scope", new.get("scope"), "field is immutable"))
    if established and new["names"].get("kind") != was["names"].get("kind"):
        errors.append(field_invalid("spec.names.kind", new["names"].get("kind"), "field is immutable"))
    if new.get("group") != was.get("group"):
        errors.append(field_invalid("spec.group", new.get("group"), "field is immutable"))
    if new["names"].get("plural") != was["names"].get("plural"):
        errors.append(field_invalid("spec.names.plural", new["names"].get("plural"), "field is immutable"))
    stored = (old.get("status") or {}).get("storedVersions") or []
    named = [version.get("name") for version in new.get("versions") or ()]
    for index, name in enumerate(stored):
        if name not in named:
            errors.append(field_invalid(f"status.storedVersions[{index}]", name, "must appear in spec.versions"))
    return errors
