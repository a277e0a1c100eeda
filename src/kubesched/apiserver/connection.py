"""One client's connection to the API server: bytes in, a request at a time to `ApiServer.handle`, bytes out.

Half of what a request costs a server in Python is what a framework does around it: a task, a response object, headers
in a multidict, a stream nobody waits for.  None of that is needed here, because a request is handled in one go.  So
this is a bare asyncio protocol over llhttp, the parser of Node.js, by way of httptools.

A client may do as it likes: send one byte a minute, megabytes without an end, or requests while a watch is open; and it
may stop reading.  Each of these costs a bounded amount of memory, and a connection that is held for nothing is closed.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Final, NamedTuple, cast

import httptools

from kubesched.apiserver.requests import Answer, Response, User, WatchStream, error_response
from kubesched.apiserver.server import BODY_BYTES_MAX
from kubesched.apiserver.status import ApiError, bad_request, too_large

HEAD_BYTES_MAX: Final = 1 << 20
UNREAD_BYTES_MAX: Final = 1 << 20  # of requests that come while a watch is open, or while nobody reads
COMPRESS_BYTES_MIN: Final = 128 * 1024
BOOKMARK_SECONDS: Final = 60.0
STALLED_SECONDS: Final = 60.0  # a client takes no bytes
IDLE_SECONDS: Final = 90.0  # between requests, and for one request to arrive
LINGER_SECONDS: Final = 2.0  # for a client to read why it is cut off
_LAST_BOOKMARK_BEFORE: Final = 2.0
_WARN_CODE: Final = 299
_NO_BODY: Final = (204, 304)

Handle = Callable[[str, str, str, Mapping[str, str], bytes, User | None], Answer]


@functools.lru_cache(256)  # clients send few names, and send them often
def _lower(name: bytes) -> str:
    return name.decode("latin-1").lower()


class Arrived(NamedTuple):
    """A request that is complete."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    keep: bool  # whether another may follow
    chunks: bool  # whether the client knows chunks, as from HTTP/1.1 on


class Connection(asyncio.Protocol):
    """A connection, from accept to close.

    Args:
        handle: what answers a request.
        open_ones: where this one is found while it is open.
        loop: whose time it is.
    """

    def __init__(self, handle: Handle, open_ones: set[Connection], loop: asyncio.AbstractEventLoop) -> None:
        self._handle, self._open_ones, self.loop = handle, open_ones, loop
        self._parser = httptools.HttpRequestParser(self)
        self._arrived: deque[Arrived] = deque()
        self._unread = bytearray()  # not yet given to the parser
        self._streaming: Streaming | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._refused: ApiError | None = None
        self._leaving = False
        self._head_bytes = 0
        self._in_head = True
        self.on_message_begin()

    # ── from the loop ────────────────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._certificate = _certificate_user(transport)
        wire = transport.get_extra_info("socket")
        if wire is not None:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._open_ones.add(self)

    def connection_lost(self, problem: Exception | None) -> None:
        self._open_ones.discard(self)
        self._leaving = True
        if self._streaming is not None:
            self._streaming.close()
        if self._stalled is not None:
            self._stalled.cancel()

    def data_received(self, data: bytes) -> None:
        if self._leaving:
            return
        if not self._may_answer:
            self._unread += data
            if len(self._unread) > UNREAD_BYTES_MAX:
                self.transport.abort()
            return
        self._feed(data)
        self._answer_what_arrived()

    def pause_writing(self) -> None:
        self._wait_for_reader(-1)

    def _wait_for_reader(self, before: int) -> None:
        """Give up on a client that has taken nothing since the last look."""
        waiting = self.transport.get_write_buffer_size()
        if waiting == before:
            self.transport.abort()
        else:
            self._stalled = self.loop.call_later(STALLED_SECONDS, self._wait_for_reader, waiting)

    def resume_writing(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
        if self._leaving:
            return
        if self._streaming is not None:
            self._streaming.pump()
        else:
            self._go_on()

    @property
    def held(self) -> bool:
        """Whether the client has enough to read for now."""
        return self._stalled is not None

    # ── from the parser ──────────────────────────────────────────────────────────────────────────────────────

    def on_message_begin(self) -> None:
        self._target = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._since = self.loop.time()

    def on_url(self, part: bytes) -> None:
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        # Of a header that comes twice the first counts, as in Go.
        self._headers.setdefault(_lower(name), value.decode("utf-8", "replace"))

    def on_headers_complete(self) -> None:
        self._in_head = False
        length = self._headers.get("content-length", "")
        if length.isdecimal() and int(length) > BODY_BYTES_MAX:
            self._refused = too_large(f"limit is {BODY_BYTES_MAX}")
        elif self._headers.get("expect", "").lower() == "100-continue" and not self._arrived:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, part: bytes) -> None:
        self._body_bytes += len(part)
        if self._body_bytes > BODY_BYTES_MAX:
            self._refused = too_large(f"limit is {BODY_BYTES_MAX}")
        if self._refused is None:
            self._body.append(part)

    def on_message_complete(self) -> None:
        parser = self._parser
        method, target = parser.get_method().decode("latin-1"), self._target.decode("utf-8", "replace")
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        keep, chunks = parser.should_keep_alive(), parser.get_http_version() != "1.0"
        self._arrived.append(Arrived(method, target, self._headers, body, keep, chunks))
        self._in_head, self._head_bytes = True, 0

    def _feed(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        upgrades = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            upgrades = True  # to what is not spoken here: the request is answered as it stands, and no other follows
        except httptools.HttpParserError as problem:
            self._refused = bad_request(f"the request is not HTTP: {problem}")
        if self._in_head and self._head_bytes > HEAD_BYTES_MAX:
            self._refused = ApiError(431, "RequestHeaderFieldsTooLarge", f"limit is {HEAD_BYTES_MAX}")
        if upgrades and self._arrived:
            self._arrived.append(self._arrived.pop()._replace(keep=False))

    @property
    def _may_answer(self) -> bool:
        return self._streaming is None and self._stalled is None and not self._leaving

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────

    def _answer_what_arrived(self) -> None:
        """Everything that may be answered now, in its order; what broke off comes last."""
        while self._arrived and self._may_answer:
            self._answer(self._arrived.popleft())
        if self._refused is not None and not self._arrived and self._may_answer:
            self._leaving = True
            self._respond(error_response(self._refused), {}, "", keep=False)
            # Closed at once, with bytes on their way here, TCP would drop ours before the client has read them.
            self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def _answer(self, request: Arrived) -> None:
        path, _, query = request.target.partition("?")
        answer = self._handle(request.method, path, query, request.headers, request.body, self._certificate)
        if isinstance(answer, WatchStream):
            self._streaming = Streaming(answer, self, request)
            self._streaming.begin()
        else:
            self._respond(answer, request.headers, request.method, keep=request.keep)
            if not request.keep:
                self._leave()

    def _respond(self, answer: Response, asked: Mapping[str, str], method: str, *, keep: bool) -> None:
        body, more = answer.body, answer.headers
        if len(body) >= COMPRESS_BYTES_MIN and "gzip" in asked.get("accept-encoding", ""):
            packer = zlib.compressobj(1, wbits=31)
            body = packer.compress(body) + packer.flush()
            more = {**more, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        if not keep:
            more = {**more, "Connection": "close"}
        if answer.status not in _NO_BODY:
            more = {**more, "Content-Length": str(len(body))}
        head = _head(answer.status, answer.content_type, more, answer.warnings)
        self.transport.write(head if method == "HEAD" or answer.status in _NO_BODY else head + body)

    def streamed(self, *, keep: bool) -> None:
        """A watch is over."""
        self._streaming = None
        if not keep and not self._leaving:
            self._leave()
        self._go_on()

    def _go_on(self) -> None:
        """What came meanwhile has its turn."""
        self._since = self.loop.time()
        self._answer_what_arrived()
        while self._unread and self._may_answer:
            data, self._unread = bytes(self._unread), bytearray()
            self._feed(data)
            self._answer_what_arrived()

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────

    def _leave(self) -> None:
        """Close when what was written has been sent."""
        self._leaving = True
        self.transport.close()

    def close_if_idle(self, now: float) -> None:
        """Close what is held for nothing; called again and again, and whoever does not say goodbye is cut off."""
        if self._streaming is None and self._stalled is None and now - self._since > IDLE_SECONDS:
            if self._leaving:
                self.transport.abort()
            else:
                self._leave()

    def close(self) -> None:
        """Close at once; a watch is told that it is over."""
        self._leaving = True
        if self._streaming is not None:
            self._streaming.end()
        self.transport.abort()  # a TLS peer that has gone away would be waited for to say goodbye


class Streaming:
    """A watch on its way out: lines as they come, as many at a time as are ready, and bookmarks.

    Args:
        connection: where it goes; told when the watch is over.
        request: what asked for it.
    """

    def __init__(self, watch: WatchStream, connection: Connection, request: Arrived) -> None:
        self._watch, self._connection, self._loop = watch, connection, connection.loop
        self._chunks = request.chunks
        self._keep = request.keep and request.chunks  # without chunks only closing says where the stream ends
        self._planned: asyncio.Handle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._over = False
        now = self._loop.time()
        self._end = now + watch.timeout if watch.timeout else float("inf")
        self._bookmark_at = now + BOOKMARK_SECONDS
        self._last_words_at = self._end - _LAST_BOOKMARK_BEFORE if watch.bookmark is not None else float("inf")

    def begin(self) -> None:
        watch = self._watch
        more = {"Transfer-Encoding": "chunked"} if self._chunks else {}
        if not self._keep:
            more["Connection"] = "close"
        self._connection.transport.write(_head(watch.status, watch.content_type, more, watch.warnings))
        watch.set_on_ready(self._ready)
        self._set_alarm()
        self._ready()

    def _ready(self) -> None:
        """Called in the middle of somebody's write: what has come is sent after it."""
        if self._planned is None and not self._over:
            self._planned = self._loop.call_soon(self.pump)

    def pump(self) -> None:
        """Send what there is, as long as the client takes it."""
        self._planned = None
        while not self._over and not self._connection.held:
            lines = self._watch.take()
            if lines:
                self._send(b"".join(lines))
            elif self._watch.closed:
                self.end()
            else:
                return

    def _send(self, data: bytes) -> None:
        self._connection.transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunks else data)

    def _set_alarm(self) -> None:
        self._alarm = self._loop.call_at(min(self._end, self._bookmark_at, self._last_words_at), self._rang)

    def _rang(self) -> None:
        now = self._loop.time()
        if now >= self._end:
            self.end()
            return
        if now >= self._last_words_at:
            self._last_words_at = float("inf")
        if now >= self._bookmark_at:
            self._bookmark_at = now + BOOKMARK_SECONDS
        if self._watch.bookmark is not None:
            self._watch.bookmark()
        self._set_alarm()

    def end(self) -> None:
        """The watch is over, and the client is told so."""
        if not self._over:
            self.close()
            if self._chunks:
                self._connection.transport.write(b"0\r\n\r\n")
            self._connection.streamed(keep=self._keep)

    def close(self) -> None:
        """The watch is over, and nobody is there any more."""
        self._over = True
        self._watch.close()
        for planned in (self._planned, self._alarm):
            if planned is not None:
                planned.cancel()


# ── heads ───────────────────────────────────────────────────────────────────────────────────────────────────


class _Today:
    """The Date header, made once a second."""

    second = 0
    line = b""

    def __call__(self) -> bytes:
        second = int(time.time())
        if second != self.second:
            self.second, self.line = second, f"Date: {formatdate(second, usegmt=True)}\r\n".encode()
        return self.line


_date = _Today()
_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus}


@functools.lru_cache(256)
def _first_lines(status: int, content_type: str) -> bytes:
    lines = [_STATUS_LINES.get(status) or f"HTTP/1.1 {status} ", "Cache-Control: no-cache, private"]
    if status not in _NO_BODY:
        lines.append(f"Content-Type: {content_type}")
    return "".join(f"{line}\r\n" for line in lines).encode()


def _head(status: int, content_type: str, more: Mapping[str, str], warnings: Iterable[str]) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in more.items()]
    lines += [f'Warning: {_WARN_CODE} - "{_quoted(text)}"\r\n' for text in warnings]
    return b"%b%b%b\r\n" % (_first_lines(status, content_type), _date(), "".join(lines).encode())


def _quoted(text: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown.replace("\\", "\\\\").replace('"', '\\"')


def _certificate_user(transport: asyncio.BaseTransport) -> User | None:
    """The user of a client certificate, which TLS has verified to be of our CA."""
    certificate = transport.get_extra_info("peercert")
    if not certificate:
        return None
    names = [pair for part in certificate.get("subject", ()) for pair in part]
    common = next((value for key, value in names if key == "commonName"), "")
    groups = tuple(value for key, value in names if key == "organizationName")
    return User(common, (*groups, "system:authenticated")) if common else None
