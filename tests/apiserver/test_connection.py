"""One connection, byte by byte and second by second: what is answered, in which order, and who is cut off when."""

from __future__ import annotations

import asyncio
import gzip
import heapq
import json
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.apiserver.conftest import PODS, Clock, node, pod

from kubesched.apiserver import connection as limits
from kubesched.apiserver.connection import Connection
from kubesched.apiserver.server import BODY_BYTES_MAX, ApiServer
from kubesched.apiserver.store import Store


class Hours:
    """As much of an event loop as a connection needs; time passes when it is told to."""

    def __init__(self) -> None:
        self.now, self._soon = 1000.0, deque[Any]()
        self._alarms: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._number = 0

    def time(self) -> float:
        return self.now

    def call_soon(self, call: Callable[..., object], *args: Any) -> asyncio.Handle:
        handle = asyncio.Handle(call, args, self)  # type: ignore[arg-type]
        self._soon.append(handle)
        return handle

    def call_later(self, delay: float, call: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, call, *args)

    def call_at(self, at: float, call: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(at, call, args, self)  # type: ignore[arg-type]
        self._number += 1
        heapq.heappush(self._alarms, (at, self._number, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled alarm stays where it is, and does not ring."""

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        raise context["exception"]

    def settle(self) -> None:
        while self._soon:
            handle = self._soon.popleft()
            if not handle.cancelled():
                handle._run()

    def pass_(self, seconds: float) -> None:
        end = self.now + seconds
        self.settle()
        while self._alarms and self._alarms[0][0] <= end:
            at, _, handle = heapq.heappop(self._alarms)
            self.now = max(self.now, at)
            if not handle.cancelled():
                handle._run()
            self.settle()
        self.now = end


class Peer(asyncio.Transport):
    """The client's end: takes bytes, until told to take no more."""

    def __init__(self) -> None:
        super().__init__()
        self.read = bytearray()
        self.waiting = 0
        self.reads = True
        self.closed = self.aborted = False
        self.connection: Connection | None = None

    def write(self, data: Any) -> None:
        assert not self.closed, "nothing is written after the end"
        self.read += data
        if not self.reads:
            if not self.waiting:
                self.waiting = len(data)
                assert self.connection is not None
                self.connection.pause_writing()
            else:
                self.waiting += len(data)

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = self.closed = True
        assert self.connection is not None
        self.connection.connection_lost(None)


class Line:
    """A server, and a client connected to it."""

    def __init__(self, history: int = 8192) -> None:
        self.hours, self.peer = Hours(), Peer()
        self.store = Store(now=Clock(), luck=Random(1), history=history)
        self.server = ApiServer(self.store, now=Clock())
        self.server.bootstrap()
        self.open: set[Connection] = set()
        self.connection = Connection(self.server.handle, self.open, self.hours)  # type: ignore[arg-type]
        self.peer.connection = self.connection
        self.connection.connection_made(self.peer)

    def say(self, *raws: bytes) -> None:
        for raw in raws:
            self.connection.data_received(raw)
        self.hours.settle()

    def heard(self) -> bytes:
        """What has come since the last time."""
        told, self.peer.read = bytes(self.peer.read), bytearray()
        return told

    def statuses(self) -> list[int]:
        return [int(part[:3]) for part in self.heard().split(b"HTTP/1.1 ")[1:]]

    def make(self, name: str) -> None:
        assert self.server.handle("POST", PODS, body=pod(name)).status == 201
        self.hours.settle()


def asks(method: str, path: str, body: bytes = b"", *more: str, version: str = "1.1") -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "Host: x", *more]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.fixture
def line() -> Line:
    return Line()


def test_a_request_may_come_byte_by_byte(line: Line) -> None:
    raw = asks("POST", PODS, json.dumps(pod("slow")).encode())
    line.say(*(raw[at : at + 1] for at in range(len(raw))))
    assert line.statuses() == [201]


def test_requests_that_come_at_once_are_answered_in_their_order(line: Line) -> None:
    raw = asks("POST", PODS, json.dumps(pod("a")).encode()) + asks("GET", f"{PODS}/a") + asks("GET", f"{PODS}/b")
    line.say(raw)
    assert line.statuses() == [201, 200, 404]
    assert not line.peer.closed


def test_a_body_may_come_in_chunks(line: Line) -> None:
    body = json.dumps(pod("chunked")).encode()
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:])) + b"0\r\n\r\n"
    line.say(asks("POST", PODS, b"", "Transfer-Encoding: chunked", "Content-Type: application/json") + chunks)
    assert line.statuses() == [201]


def test_who_asks_before_sending_is_told_to_go_on(line: Line) -> None:
    body = json.dumps(pod("polite")).encode()
    raw = asks("POST", PODS, body, "Expect: 100-continue")
    line.say(raw[: -len(body)])
    assert line.heard() == b"HTTP/1.1 100 Continue\r\n\r\n"
    line.say(body)
    assert line.statuses() == [201]


@pytest.mark.parametrize("said", ["Connection: close", "Connection: Upgrade\r\nUpgrade: websocket"])
def test_nothing_follows_on_a_connection_that_is_to_be_closed(line: Line, said: str) -> None:
    line.say(asks("GET", PODS, b"", said) + asks("GET", PODS))
    assert line.statuses() == [200]
    assert line.peer.closed


def test_an_answer_to_an_old_client_ends_with_the_connection(line: Line) -> None:
    line.say(asks("GET", PODS, version="1.0"))
    assert b"Connection: close" in line.heard()
    assert line.peer.closed


def test_a_long_answer_is_packed_for_who_can_unpack_it(line: Line) -> None:
    for number in range(300):
        line.server.handle("POST", "/api/v1/nodes", body=node(f"n{number}"))
    line.say(asks("GET", "/api/v1/nodes", b"", "Accept-Encoding: gzip"))
    head, _, body = line.heard().partition(b"\r\n\r\n")
    assert b"Content-Encoding: gzip" in head
    assert f"Content-Length: {len(body)}".encode() in head
    assert len(json.loads(gzip.decompress(body))["items"]) == 300


# ── too much ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_body_that_is_announced_as_too_large_is_not_waited_for(line: Line) -> None:
    line.say(asks("POST", PODS, b"", f"Content-Length: {BODY_BYTES_MAX + 1}", "Expect: 100-continue"))
    assert line.statuses() == [413]


def test_chunks_without_an_end_are_cut_off_and_the_client_may_read_why(line: Line) -> None:
    line.say(asks("POST", PODS, b"", "Transfer-Encoding: chunked"))
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    for _ in range(BODY_BYTES_MAX // 0x10000 + 100):
        line.say(chunk)
    assert line.statuses() == [413]
    assert not line.peer.closed
    line.hours.pass_(limits.LINGER_SECONDS)
    assert line.peer.aborted


def test_a_head_without_an_end_is_cut_off(line: Line) -> None:
    line.say(b"GET / HTTP/1.1\r\nX: ")
    for _ in range(limits.HEAD_BYTES_MAX // 1000 + 1):
        line.say(b"x" * 1000)
    assert line.statuses() == [431]


def test_a_request_that_never_ends_does_not_hold_its_connection(line: Line) -> None:
    line.say(asks("POST", PODS, b"", "Content-Length: 100"))
    line.connection.close_if_idle(line.hours.now + limits.IDLE_SECONDS - 1)
    assert not line.peer.closed
    line.connection.close_if_idle(line.hours.now + limits.IDLE_SECONDS + 1)
    assert line.peer.closed
    line.connection.close_if_idle(line.hours.now + limits.IDLE_SECONDS + 16)
    assert line.peer.aborted
    assert not line.open


# ── watches ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_follows_a_watch_waits_until_it_is_over(line: Line) -> None:
    line.say(asks("GET", f"{PODS}?watch=1&timeoutSeconds=10") + asks("GET", f"{PODS}/seen"))
    line.make("seen")
    assert line.heard().count(b'{"type":"ADDED"') == 1
    line.say(asks("GET", "/version"))
    assert line.heard() == b""
    line.hours.pass_(10)
    assert line.heard().startswith(b"0\r\n\r\nHTTP/1.1 200 OK")
    assert not line.peer.closed


def test_a_watch_has_a_bookmark_now_and_then_and_one_before_it_ends(line: Line) -> None:
    line.say(asks("GET", f"{PODS}?watch=1&timeoutSeconds=150&allowWatchBookmarks=true"))
    counts = []
    for _ in range(5):
        line.hours.pass_(30)
        counts.append(line.heard().count(b'{"type":"BOOKMARK"'))
    assert counts == [0, 1, 0, 1, 1]


def test_a_watch_is_closed_with_its_connection(line: Line) -> None:
    line.say(asks("GET", f"{PODS}?watch=1"))
    assert line.store.watchers() == 1
    line.connection.connection_lost(None)
    assert line.store.watchers() == 0
    line.make("unseen")
    line.hours.pass_(1000)


def test_who_does_not_read_is_told_to_list_again_and_costs_nothing_meanwhile() -> None:
    line = Line(history=4)
    line.say(asks("GET", f"{PODS}?watch=1"))
    line.peer.reads = False
    line.make("first")
    said = len(line.peer.read)
    for number in range(20):
        line.make(f"p{number}")
    assert len(line.peer.read) == said
    line.peer.reads, line.peer.waiting = True, 0
    line.connection.resume_writing()
    assert b'"code":410' in line.peer.read
    assert line.peer.read.endswith(b"0\r\n\r\n")


def test_who_reads_nothing_at_all_is_cut_off(line: Line) -> None:
    line.say(asks("GET", f"{PODS}?watch=1"))
    line.peer.reads = False
    line.make("unread")
    line.hours.pass_(limits.STALLED_SECONDS - 1)
    assert not line.peer.closed
    line.hours.pass_(2)
    assert line.peer.aborted
    assert line.store.watchers() == 0


def test_who_reads_slowly_is_waited_for(line: Line) -> None:
    line.say(asks("GET", f"{PODS}?watch=1"))
    line.peer.reads = False
    line.make("unread")
    for _ in range(5):
        line.peer.waiting -= 1
        line.hours.pass_(limits.STALLED_SECONDS)
    assert not line.peer.closed


def test_who_sends_on_without_end_while_a_watch_is_open_is_cut_off(line: Line) -> None:
    line.say(asks("GET", f"{PODS}?watch=1"))
    for _ in range(limits.UNREAD_BYTES_MAX // 1000 + 1):
        if not line.peer.aborted:
            line.say(b"x" * 1000)
    assert line.peer.aborted


def test_when_the_server_stops_a_watch_is_told_so(line: Line) -> None:
    line.say(asks("GET", f"{PODS}?watch=1"))
    line.heard()
    line.connection.close()
    assert line.heard() == b"0\r\n\r\n"
    assert line.peer.aborted
