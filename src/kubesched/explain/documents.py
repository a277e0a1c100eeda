"""The objects in a file that kubectl printed, one by one: from JSON as bytes, from YAML as plain data.

A dump of a large cluster has hundreds of megabytes, of which a scheduler reads a tenth.  JSON is therefore only cut
into its objects here, and decoded lean by whoever knows what he wants.  YAML is folded event by event, which is
several times faster than a loader's way over nodes and constructors, and the parts no scheduler reads are dropped.
Nothing is executed or expanded: tags and aliases are refused.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple, TypeAlias

import msgspec
import yaml
from msgspec import Struct

from kubesched.api.yaml import meaning
from kubesched.framework.errors import KubeschedError
from kubesched.framework.plain import plain

DEPTH_MAX = 100
"""How deep documents may nest; the deepest object of Kubernetes needs about thirty."""

UNREAD = {
    *("managedFields", "env", "envFrom", "volumeMounts", "volumeDevices", "command", "args", "securityContext"),
    *("livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "nodeInfo", "addresses", "daemonEndpoints"),
}
"""Fields no view has, wherever in an object they stand; where their value is not a scalar, it is not kept."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Data: TypeAlias = Any
"""bytes or msgspec.Raw where the file is JSON, plain data where it is YAML."""


class Part(NamedTuple):
    """One object of a file: where in it, as what, and of which kind if only its list says so."""

    where: str
    data: Data
    kind: str = ""


class UnreadableFile(KubeschedError):
    """A file that is not what kubectl prints; says which, where and what was expected."""


def parts(data: bytes, file: str, *, unread: Collection[str] = UNREAD) -> Iterator[Part]:
    """The objects in a file, lists opened.  Raises UnreadableFile.

    Args:
        unread: fields of YAML that are not kept; none, for whoever wants the objects whole.
    """
    body = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not body:
        raise UnreadableFile(f"{file}: is empty; kubectl get -o json or -o yaml prints what is read here")
    return _json_parts(body, file) if body[:1] in b"{[" else _yaml_parts(data, file, unread)


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _Envelope(Struct):
    kind: str = ""
    items: list[msgspec.Raw] | None = None


_envelope = msgspec.json.Decoder(_Envelope)
_array = msgspec.json.Decoder(list[msgspec.Raw])


def _json_parts(body: bytes, file: str) -> Iterator[Part]:
    try:
        if body[:1] == b"[":
            return (Part(f"{file}: item {i}", raw) for i, raw in enumerate(_array.decode(body)))
        return _opened(file, body, _envelope.decode(body))
    except msgspec.ValidationError as error:
        raise UnreadableFile(f"{file}: is no Kubernetes object: {plain(error, 200)}") from None
    except (msgspec.DecodeError, RecursionError):
        pass  # several documents, or none at all
    documents = _documents(body, file)
    try:
        opened = [(document, _envelope.decode(document)) for document in documents]
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UnreadableFile(f"{file}: is no Kubernetes object: {plain(error, 200)}") from None
    return (
        part
        for number, (document, envelope) in enumerate(opened)
        for part in _opened(f"{file}: document {number}", document, envelope)
    )


def _opened(where: str, document: bytes, envelope: _Envelope) -> Iterator[Part]:
    if envelope.kind.endswith("List") and envelope.items is not None:
        kind = envelope.kind.removesuffix("List")
        return (Part(f"{where}: item {i}", raw, kind) for i, raw in enumerate(envelope.items))
    return iter([Part(where, document)])


def _spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _documents(body: bytes, file: str) -> list[bytes]:
    """One JSON document after the other, as several calls of kubectl leave them."""
    found: list[bytes] = []
    at, decoder = 0, json.JSONDecoder()
    try:
        text = body.decode()
        while at < len(text):
            _, end = decoder.raw_decode(text, at)
            found.append(text[at:end].encode())
            at = _spaces(text, end)
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{file}: is not UTF-8: byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise UnreadableFile(f"{file}:{error.lineno}: is not JSON: {error.msg}") from None
    except (RecursionError, ValueError):  # or a number of thousands of digits
        raise UnreadableFile(f"{file}: is not JSON that anybody would write: it nests, or counts, too far") from None
    return found


# ── YAML ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _yaml_parts(data: bytes, file: str, unread: Collection[str]) -> Iterator[Part]:
    documents = list(_yaml_documents(data, file, unread))
    for number, document in enumerate(documents):
        where = file if len(documents) == 1 else f"{file}: document {number}"
        if not isinstance(document, dict):
            raise UnreadableFile(f"{where}: is no Kubernetes object, but {_named(document)}")
        kind, items = document.get("kind"), document.get("items")
        if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
            for i, item in enumerate(items):
                yield Part(f"{where}: item {i}", item, kind.removesuffix("List"))
        else:
            yield Part(where, document)


def _named(document: Any) -> str:
    return "a list" if isinstance(document, list) else f"the {type(document).__name__} {plain(document, 60)!r}"


def _yaml_documents(data: bytes, file: str, unread: Collection[str]) -> Iterator[Any]:
    try:
        text = data.decode("utf-8-sig")
        parser = _LOADER(text)
        while parser.check_event(yaml.StreamStartEvent):
            parser.get_event()
        while parser.check_event(yaml.DocumentStartEvent):
            parser.get_event()
            document = _Tree(parser, file, unread).read()
            if document is not None:  # nothing stands between two ---, or after the last
                yield document
            parser.get_event()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableFile(f"{file}:{line}: is not UTF-8") from None
    except yaml.reader.ReaderError as error:
        raise UnreadableFile(f"{file}: has a character no text has, #x{int(error.character):04x}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 0 if mark is None else mark.line + 1
        problem = " ".join(filter(None, (error.context, error.problem)))
        raise UnreadableFile(f"{file}:{line}: is neither JSON nor YAML: {plain(problem, 200)}") from None


class _Tree:
    """Folds the events of one document into dictionaries, lists and scalars."""

    def __init__(self, parser: Any, file: str, unread: Collection[str]) -> None:
        self._next, self._file, self._unread = parser.get_event, file, unread
        self._known: dict[str, Any] = {}  # plain scalars met before

    def read(self) -> Any:
        """The document.  One loop without calls: it runs for every word of a dump."""
        scalar, mapping, sequence = yaml.ScalarEvent, yaml.MappingStartEvent, yaml.SequenceStartEvent
        outer: list[tuple[Any, str | None]] = []  # what is open around the current collection
        top: list[Any] = []
        current: Any = top
        key: str | None = None
        unread = self._unread
        inside = False  # the current collection is a mapping
        while True:
            event = self._next()
            kind = type(event)
            if kind is scalar:
                if event.tag is not None:
                    raise self._refused(event, f"has the tag {plain(event.tag, 60)}", "values need none here")
                if inside and key is None:
                    key = event.value
                    if key in current:
                        raise self._refused(event, f"has the key {plain(key, 60)!r} twice", "keep one")
                    continue
                value = self._scalar(event.value) if event.implicit[0] else event.value
                if inside:
                    current[key] = value
                    key = None
                else:
                    current.append(value)
            elif kind is mapping or kind is sequence:
                self._check(event, len(outer), inside and key is None)
                opened: Any = {} if kind is mapping else []
                if not inside:
                    current.append(opened)
                elif key not in unread:
                    current[key] = opened
                outer.append((current, key))
                current, key, inside = opened, None, kind is mapping
            elif kind is yaml.AliasEvent:
                raise self._refused(event, f"has the alias *{event.anchor}", "write the value where it is needed")
            else:
                current, _ = outer.pop()
                key, inside = None, isinstance(current, dict)
            if not outer:
                return top[0]

    def _scalar(self, text: str) -> Any:
        known = self._known
        if text not in known:
            if len(known) > 10_000:
                known.clear()
            known[text] = meaning(text)
        return known[text]

    def _check(self, event: Any, depth: int, is_key: bool) -> None:
        if event.tag is not None:
            raise self._refused(event, f"has the tag {plain(event.tag, 60)}", "values need none here")
        if is_key:
            raise self._refused(event, "has a key that is a mapping or a list", "keys are names")
        if depth >= DEPTH_MAX:
            raise self._refused(event, f"nests more than {DEPTH_MAX} levels deep", "no object does")

    def _refused(self, event: Any, problem: str, remedy: str) -> UnreadableFile:
        return UnreadableFile(f"{self._file}:{event.start_mark.line + 1}: {problem} ({remedy})")
