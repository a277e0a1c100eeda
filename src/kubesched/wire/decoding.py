"""Bytes from the API server into views, without building anything else on the way.

The usual object is decoded in one pass, from the line of a watch or the page of a list straight into the Struct the
core keeps.  Whatever does not fit takes the slow way: an object that cannot be read becomes an Invalid that still has
its name, a Status at the end of a stream becomes a Trouble, and what makes no sense at all is Garbled.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from kubesched.api.kinds import Kind
from kubesched.api.objects import KubeObject, read_or_invalid
from kubesched.cluster.objects import version
from kubesched.framework.plain import plain
from kubesched.wire.status import UNREADABLE, Status, read_status

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_DIGITS_MAX = 19

V = TypeVar("V")


class Garbled(ValueError):
    """Bytes that no API server means to send."""


class Page(NamedTuple):
    """Some objects of a list, the version of the whole, and where to go on."""

    objects: list[KubeObject]
    version: int
    proceed: str


class Change(NamedTuple):
    """An object came, changed or went."""

    obj: KubeObject
    gone: bool


class Bookmark(NamedTuple):
    """Everything up to this version has been told."""

    version: int
    ends_initial: bool


class Trouble(NamedTuple):
    """The server ends the stream, and says why."""

    status: Status


class Foreign(NamedTuple):
    """An object of another kind, in the middle of ours."""

    kind: str


Line: TypeAlias = Change | Bookmark | Trouble | Foreign


class _ListMeta(Struct, frozen=True):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    proceed: str = msgspec.field(default="", name="continue")


class _List(Struct, Generic[V]):
    items: list[V] | None = None
    metadata: _ListMeta = _ListMeta()


class _Frame(Struct, Generic[V]):
    type: str
    object: V


class _Any(Struct):
    kind: str = ""


class Reader:
    """Decodes one kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        view: Any = kind.view
        self._page = msgspec.json.Decoder(_List[view])
        self._line = msgspec.json.Decoder(_Frame[view])
        self._object = msgspec.json.Decoder(view)
        self._raw_page = msgspec.json.Decoder(_List[msgspec.Raw])
        self._raw_line = msgspec.json.Decoder(_Frame[msgspec.Raw])

    # ── one object ───────────────────────────────────────────────────────────────────────────────────────────

    def object(self, body: bytes | msgspec.Raw) -> KubeObject:
        """One object, or an Invalid that names it.  Raises Garbled where it has no name."""
        try:
            obj: KubeObject = self._object.decode(body)
        except UNREADABLE:
            obj = self._salvaged(body)
        return self._named(obj)

    def _salvaged(self, body: bytes | msgspec.Raw) -> KubeObject:
        try:
            raw = msgspec.json.decode(body)
        except UNREADABLE as error:
            raise Garbled(f"a {self.kind.name} is no JSON: {plain(error)}") from None
        if not isinstance(raw, dict):
            raise Garbled(f"a {self.kind.name} is no object of JSON")
        return read_or_invalid(raw, self.kind.view)

    def _named(self, obj: KubeObject) -> KubeObject:
        if not obj.metadata.name or not version(obj):
            raise Garbled(f"a {self.kind.name} has no name, or no resourceVersion that is a number")
        return obj

    # ── lists ────────────────────────────────────────────────────────────────────────────────────────────────

    def page(self, body: bytes) -> Page:
        """A page of a list.  Raises Garbled."""
        objects: list[KubeObject]
        try:
            page = self._page.decode(body)
            objects = [self._named(obj) for obj in page.items or ()]
        except UNREADABLE:
            page = self._decode(self._raw_page, body, "list")
            objects = [self.object(raw) for raw in page.items or ()]
        return Page(objects, _number(page.metadata.resource_version, "list"), page.metadata.proceed)

    def version(self, body: bytes) -> int:
        """The version of a list, whatever is in it.  Raises Garbled."""
        return _number(self._decode(self._raw_page, body, "list").metadata.resource_version, "list")

    # ── watches ──────────────────────────────────────────────────────────────────────────────────────────────

    def line(self, line: bytes) -> Line:
        """A line of a watch.  Raises Garbled."""
        try:
            frame = self._line.decode(line)
        except UNREADABLE:
            return self._odd_line(line)
        if frame.type in ("ADDED", "MODIFIED", "DELETED"):
            return Change(self._named(frame.object), frame.type == "DELETED")
        return self._odd_line(line)

    def _odd_line(self, line: bytes) -> Line:
        frame = self._decode(self._raw_line, line, "watch")
        match frame.type:
            case "ADDED" | "MODIFIED" | "DELETED":
                kind = self._decode(_any, frame.object, "watch").kind
                if kind and kind != self.kind.name:
                    return Foreign(plain(kind, 64))
                return Change(self.object(frame.object), frame.type == "DELETED")
            case "BOOKMARK":
                meta = self._decode(_bookmark, frame.object, "watch").metadata
                ends = (meta.annotations or {}).get(INITIAL_EVENTS_END) == "true"
                return Bookmark(_number(meta.resource_version, "bookmark"), ends)
            case "ERROR":
                return Trouble(read_status(bytes(frame.object)))
        raise Garbled(f"the watch has an event of type {plain(frame.type, 64)!r}")

    def _decode(self, decoder: msgspec.json.Decoder[V], data: bytes | msgspec.Raw, what: str) -> V:
        try:
            return decoder.decode(data)
        except UNREADABLE as error:
            raise Garbled(f"the {what} of {self.kind.plural} cannot be read: {plain(error, 200)}") from None


class _BookmarkMeta(Struct, frozen=True):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    annotations: dict[str, str] | None = None


class _BookmarkObject(Struct, frozen=True):
    metadata: _BookmarkMeta = _BookmarkMeta()


_any = msgspec.json.Decoder(_Any)
_bookmark = msgspec.json.Decoder(_BookmarkObject)


def _number(text: str, what: str) -> int:
    """A resourceVersion as the number it has officially been since v1.35."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX and text != "0"):
        raise Garbled(f"the resourceVersion of a {what} is {plain(text, 64)!r}, not a number")
    return int(text)
