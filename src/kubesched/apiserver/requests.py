"""A request and its answer as plain values, so that a socket is one way to make them and not the only one.

The HTTP face, the simulator and the tests all hand the same Request to the same function.  Query parameters follow
Go's reading of them: booleans are true unless "0" or "false", numbers are refused with strconv's words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, unquote_plus

import msgspec

from kubesched.apiserver.status import ApiError, bad_request

Json = dict[str, Any]

JSON_TYPE = "application/json"
encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class User:
    """Who asks; groups and extra as a TokenReview would tell them."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def info(self) -> Json:
        """The authentication.k8s.io UserInfo."""
        shown: Json = {"username": self.name}
        if self.uid:
            shown["uid"] = self.uid
        if self.groups:
            shown["groups"] = list(self.groups)
        if self.extra:
            shown["extra"] = {key: list(values) for key, values in self.extra.items()}
        return shown


ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


class Query:
    """The parameters after the question mark; of repeated ones the first counts, as in Go."""

    __slots__ = ("_values",)

    def __init__(self, text: str = "") -> None:
        values: dict[str, list[str]] = {}
        for part in text.split("&") if text else ():
            key, _, value = part.partition("=")
            if "%" in part or "+" in part:
                key, value = unquote_plus(key), unquote_plus(value)
            if key:
                values.setdefault(key, []).append(value)
        self._values = values

    def get(self, name: str, default: str = "") -> str:
        values = self._values.get(name)
        return values[0] if values else default

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def flag(self, name: str) -> bool | None:
        """A boolean, or None when it is not there."""
        values = self._values.get(name)
        return None if not values else values[0].lower() not in ("0", "false")

    def integer(self, name: str) -> int | None:
        values = self._values.get(name)
        if not values:
            return None
        text = values[0]
        try:
            value = int(text) if text.isascii() and "_" not in text and text == text.strip() else None
        except ValueError:
            value = None
        if value is None:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        if not -(2**63) <= value < 2**63:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
        return value

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __bool__(self) -> bool:
        return bool(self._values)


@dataclass(slots=True)
class Request:
    """One request: headers by lower-case name, the path without its query."""

    method: str
    path: str
    query: Query
    headers: Mapping[str, str]
    body: bytes = b""
    user: User = ADMIN
    warnings: list[str] = field(default_factory=list)

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def segments(self) -> list[str]:
        """The parts of the path, unescaped; a trailing slash makes no difference."""
        path = self.path
        parts = path.strip("/").split("/") if path.strip("/") else []
        return [unquote(part) for part in parts] if "%" in path else parts


@dataclass(slots=True)
class Response:
    """A finished answer."""

    status: int
    body: bytes = b""
    content_type: str = JSON_TYPE
    headers: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)


@dataclass(slots=True)
class WatchStream:
    """An answer that goes on: call `take` for the lines that are ready, whenever `on_ready` has fired.

    timeout: seconds after which the stream ends by itself (None: never, for callers in virtual time);
    finish() then gives the last bookmark.  closed says that nothing follows what take still holds.
    """

    take: Callable[[], list[bytes]]
    is_closed: Callable[[], bool]
    close: Callable[[], None]
    bookmark: Callable[[], None] | None = None
    set_on_ready: Callable[[Callable[[], None]], None] = lambda call: None
    timeout: int | None = None
    content_type: str = JSON_TYPE
    status: int = 200
    warnings: list[str] = field(default_factory=list)

    @property
    def closed(self) -> bool:
        return self.is_closed()

    def events(self) -> Iterator[Json]:
        """The events that are ready now, decoded."""
        for lines in self.take():
            for line in lines.splitlines():
                yield msgspec.json.decode(line)


Answer = Response | WatchStream


def json_response(obj: Any, status: int = 200) -> Response:
    return Response(status, encode(obj) + b"\n")


def text_response(text: str, status: int = 200) -> Response:
    return Response(status, text.encode(), "text/plain; charset=utf-8")


def error_response(error: ApiError) -> Response:
    """The Status that tells a client what was wrong."""
    response = Response(error.code, encode(error.to_status()) + b"\n")
    if error.retry_after:
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def not_a_page() -> Response:
    """What Go's mux says of a path nobody serves."""
    return text_response("404 page not found\n", 404)
