"""Turn the body of a request into an object of the kind that was asked for.

Whatever the encoding, what comes out has the shape of one round trip through kube-apiserver's own structs: types are
checked, quantities canonical, empty optional fields gone.  Unknown fields are refused (fieldValidation=Strict),
warned about (Warn, the default) or passed over (Ignore); in the latter two cases they are kept, so that objects of a
newer Kubernetes survive.

Bodies are bounded before they are walked: size by the server, depth here.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import yaml

from kubesched.apiserver import cleaning, protobuf, schema
from kubesched.apiserver.kinds import BUILT_IN, Resource
from kubesched.apiserver.negotiation import AVAILABLE, JSON, PROTOBUF, YAML
from kubesched.apiserver.requests import Query, Request
from kubesched.apiserver.status import (
    ApiError,
    bad_request,
    unsupported_media_type,
)

Json = dict[str, Any]

DEPTH_MAX = 128
YAML_NODES_MAX = 100_000
_WARNING_BYTES_MAX = 4096
_EXCERPT_MAX = 30
FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'

_decode_json = msgspec.json.Decoder().decode


class Undecodable(ValueError):
    """A body that is not JSON, YAML or protobuf at all."""


# ── bytes to values ─────────────────────────────────────────────────────────────────────────────────────────


def read_json(body: bytes) -> Any:
    """Decode JSON as Go does where it matters: no NaN, broken surrogates replaced, bounded depth."""
    try:
        value = _decode_json(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        value = _read_awkward_json(body)
    if body.count(b"{") + body.count(b"[") > DEPTH_MAX:
        check_depth(value)
    return value


def _read_awkward_json(body: bytes) -> Any:
    """What msgspec refuses: say why, or read it all the same if Go would."""
    if not body.strip():
        raise Undecodable("unexpected end of JSON input")
    text = body.decode("utf-8", errors="replace")
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise Undecodable("exceeded max depth") from None
    except json.JSONDecodeError as error:
        raise Undecodable(_go_syntax_error(text, error)) from None
    except ValueError as error:
        raise Undecodable(str(error)) from None
    return _without_surrogates(value)


def _no_constant(name: str) -> Any:
    raise ValueError(f"invalid character '{name[0]}' looking for beginning of value")


def _go_syntax_error(text: str, error: json.JSONDecodeError) -> str:
    rest = text[error.pos :].lstrip()
    if not rest or error.msg.startswith("Unterminated"):
        return "unexpected end of JSON input"
    if error.msg == "Extra data":
        return f"invalid character '{rest[0]}' after top-level value"
    return f"invalid character '{rest[0]}' looking for beginning of value"


def _without_surrogates(value: Any) -> Any:
    """Lone surrogates cannot be encoded again; Go replaces them."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
        case float() if value in (float("inf"), float("-inf")):
            raise Undecodable("json: cannot unmarshal number into Go value of type float64")
    return value


def check_depth(value: Any) -> None:
    """Refuse what is nested deeper than any object of Kubernetes."""
    level: Sequence[Any] = [value]
    for _ in range(DEPTH_MAX):
        level = [
            item
            for parent in level
            for item in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise Undecodable("exceeded max depth")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # whichever PyYAML was built with
    """YAML as sigs.k8s.io/yaml reads it: y and n are booleans, times are strings, there are no aliases."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag not in ("tag:yaml.org,2002:timestamp",)]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _word in ("y", "Y", "n", "N"):
    _Loader.yaml_implicit_resolvers.setdefault(_word, []).insert(0, ("tag:yaml.org,2002:bool", re.compile("^[yYnN]$")))
_Loader.bool_values = {**yaml.constructor.SafeConstructor.bool_values, "y": True, "n": False}


def read_yaml(body: bytes) -> Any:
    """Decode one YAML document."""
    try:
        text = body.decode()
        for nodes, event in enumerate(yaml.parse(text, Loader=_Loader)):
            if isinstance(event, yaml.AliasEvent) or nodes > YAML_NODES_MAX:
                raise Undecodable("yaml: document contains excessive aliasing")
        value = yaml.load(text, Loader=_Loader)
    except UnicodeDecodeError:
        raise Undecodable("yaml: invalid UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise Undecodable(f"yaml: line {line}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, Undecodable):
            raise
        raise Undecodable(f"yaml: {error}") from None
    value = _json_like(value)
    check_depth([value])
    return value


def _json_like(value: Any) -> Any:
    """YAML may hold keys and scalars that JSON cannot; make them strings, as Go does."""
    match value:
        case dict():
            return {_key(key): _json_like(item) for key, item in value.items()}
        case list():
            return [_json_like(item) for item in value]
        case bytes():
            return value.decode("latin-1")
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def repeated_fields(body: bytes) -> list[str]:
    """The keys that a JSON object gives more than once, as paths."""
    found: list[str] = []

    class Pairs(list[tuple[str, Any]]):
        pass

    def walk(value: Any, path: str) -> None:
        if isinstance(value, Pairs):
            seen: set[str] = set()
            for key, item in value:
                where = f"{path}.{key}" if path else key
                if key in seen:
                    found.append(where)
                seen.add(key)
                walk(item, where)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                walk(item, f"{path}[{index}]")

    try:
        walk(json.loads(body, object_pairs_hook=Pairs), "")
    except (ValueError, RecursionError):
        return []
    return found


# ── values to objects ───────────────────────────────────────────────────────────────────────────────────────


def field_validation(query: Query) -> str:
    """How unknown fields are to be treated: Strict, Warn or Ignore; options.write_options refuses what is none."""
    return query.get("fieldValidation") or "Warn"


def add_warnings(warnings: list[str], texts: Iterable[str]) -> None:
    """Note warnings, not twice the same and not without end: they travel in headers."""
    room = _WARNING_BYTES_MAX - sum(map(len, warnings))
    for text in texts:
        room -= len(text)
        if text not in warnings and room > 0:
            warnings.append(text)


def read_value(request: Request, kind: str) -> tuple[Any, str]:
    """Decode the body; return it and its media type.  kind names what was wanted, for the error."""
    media = request.content_type or JSON
    body = request.body
    try:
        if media == JSON:
            return read_json(body), media
        if media == YAML:
            return read_yaml(body), media
    except Undecodable as error:
        shown = _excerpt(body)
        what = str(error) if media == YAML else f"couldn't get version/kind; json parse error: {error}"
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {what} ({shown})") from None
    if media == PROTOBUF:
        return None, media
    raise unsupported_media_type(AVAILABLE)


def _excerpt(body: bytes) -> str:
    """The beginning of a body that is not what it should be: as text if it looks like an object, else in hex."""
    if not body:
        return "<empty>"
    if body.startswith(b"{"):
        shown, longest = body.decode("utf-8", errors="replace"), _EXCERPT_MAX
    else:
        shown, longest = body.hex(), 2 * _EXCERPT_MAX
    return shown if len(shown) <= longest else f"{shown[:longest]} ..."


def read_object(request: Request, group_version: str, kind: str, shape: str, validation: str = "Warn") -> Json:
    """Decode, check and clean an object of a kind that has a struct."""
    value, media = read_value(request, kind)
    if media == PROTOBUF:
        value = _read_protobuf(request.body, group_version, kind, shape)
    elif value is None:
        value = {}
    elif not isinstance(value, dict):
        what = cleaning.json_kind(value).partition(" ")[0]
        why = f"json: cannot unmarshal {what} into Go value of type {_TYPE_META}"
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; "
            f"json parse error: {why} ({_excerpt(request.body)})"
        )
    check_kind(value, group_version, kind)
    repeated = repeated_fields(request.body) if validation == "Strict" and media == JSON else []
    obj, problems = clean(value, group_version, kind, shape, validation)
    problems = [f'duplicate field "{path}"' for path in repeated] + problems
    if problems and validation == "Strict":
        said = ", ".join(problems)
        raise bad_request(
            f"{_in_version(group_version, kind)} cannot be handled as a {kind}: strict decoding error: {said}"
        )
    if problems and validation == "Warn":
        add_warnings(request.warnings, problems)
    return obj


def _read_protobuf(body: bytes, group_version: str, kind: str, shape: str) -> Json:
    try:
        said_version, said_kind, raw = protobuf.read_envelope(body)
        same = (said_version, said_kind) == (group_version, kind)
        value = protobuf.read_message(shape, raw) if same else {}
    except (protobuf.BadProtobuf, RecursionError) as error:
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {error}") from None
    return {"apiVersion": said_version, "kind": said_kind, **value}


def check_kind(value: Json, group_version: str, kind: str) -> None:
    """Refuse an object that says it is something else; saying nothing is fine."""
    said_version, said_kind = value.get("apiVersion") or group_version, value.get("kind") or kind
    if not isinstance(said_version, str) or not isinstance(said_kind, str):
        field = "kind" if isinstance(said_version, str) else "apiVersion"
        what = cleaning.json_kind(value[field]).partition(" ")[0]
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse "
            f"error: json: cannot unmarshal {what} into Go struct field .{field} of type string"
        )
    if (said_version, said_kind) != (group_version, kind):
        if (said_version, said_kind) in _kinds():
            room, version = group_version.rpartition("/")[0].partition(".")[0], said_version.rpartition("/")[2]
            why = f"converting ({version}.{said_kind}) to ({room or 'core'}.{kind}): unknown conversion"
        else:
            scheme = 'in scheme "pkg/runtime/scheme.go:111"'
            why = f'no kind "{said_kind}" is registered for version "{said_version}" {scheme}'
        raise bad_request(f"{_in_version(said_version, said_kind)} cannot be handled as a {kind}: {why}")


@functools.cache
def _kinds() -> frozenset[tuple[str, str]]:
    return frozenset((row.group_version, row.kind) for row in BUILT_IN)


def _in_version(group_version: str, kind: str) -> str:
    return f'{kind} in version "{group_version.rpartition("/")[2]}"'


def clean(value: Json, group_version: str, kind: str, shape: str, validation: str = "Ignore") -> tuple[Json, list[str]]:
    """Give a decoded value (which is changed) the shape of its struct; return it and what was unknown in it."""
    value.pop("kind", None)
    value.pop("apiVersion", None)
    unknown: list[str] = []
    try:
        cleaning.struct_cleaner(shape)(value, unknown)
    except cleaning.Mistyped as error:
        raise bad_request(f"{_in_version(group_version, kind)} cannot be handled as a {kind}: {error}") from None
    problems = []
    if unknown and validation != "Ignore":
        problems = [f'unknown field "{path}"' for path in schema.unknown_fields(value, schema.Type(shape))]
    return {"kind": kind, "apiVersion": group_version, **value}, problems


def read_resource(request: Request, resource: Resource) -> Json:
    """Decode the body of a create or update of a built-in kind."""
    mode = field_validation(request.query)
    return read_object(request, resource.group_version, resource.kind, resource.shape, mode)


def refused_as_patch(error: ApiError, patched: Json) -> ApiError:
    """A patch whose outcome cannot be decoded is the patch's fault: 422, with the outcome in the message."""
    shown = json.dumps(patched, separators=(",", ":"), ensure_ascii=False)
    why = error.message.partition(": ")[2] or error.message
    body = f"Invalid value: {json.dumps(shown, ensure_ascii=False)}: {why}"
    details = {"causes": [{"reason": "FieldValueInvalid", "message": body, "field": "patch"}]}
    return ApiError(422, "Invalid", f' "" is invalid: patch: {body}', details)
