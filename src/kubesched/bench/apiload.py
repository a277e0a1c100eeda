"""A load on an API server, from outside: whole requests over kept connections, and nothing that a client library adds.

The same load goes to the embedded server and to any other, so that their figures can be compared.  It is measured by
the clock, and by the processor time of the server's processes: neighbours on a shared machine disturb that far less.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from msgspec import Struct

Json = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
NODES = 100
_MARK = b'{"type":"'  # with which every event of a watch begins
_CPUCLOCK_SCHED = 2  # what clock_getcpuclockid(3) makes of a process; Python has no name for it


class Rate(Struct, frozen=True):
    """How fast one kind of request was answered over so many connections."""

    what: str
    connections: int
    requests: int
    per_second: float
    p50_ms: float
    cpu_ms: float  # of the server, a request


class Watched(Struct, frozen=True):
    """How fast events came to so many watchers, and how long the list of all pods took."""

    watchers: int
    events_per_second: float


class Unexpected(Exception):
    """The server answered otherwise than a measurement can use."""


class Server(Struct, frozen=True):
    """Where a server is, how to be let in, and which processes are it."""

    url: str
    token: str
    ca: str
    pids: tuple[int, ...]

    def head(self, method: str, path: str, body: bytes = b"") -> bytes:
        host = urlsplit(self.url).netloc
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {self.token}"]
        lines += ["Accept: application/json", "Content-Type: application/json", f"Content-Length: {len(body)}", "", ""]
        return "\r\n".join(lines).encode() + body

    def cpu(self) -> float:
        """Seconds of processor time so far, of all threads; /proc would tell it in hundredths."""
        return sum(time.clock_gettime(~pid << 3 | _CPUCLOCK_SCHED) for pid in self.pids)

    def resident_mib(self) -> float:
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids)
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


class Connection(asyncio.Protocol):
    """One kept connection; a protocol and no stream, for what is to be measured is the server."""

    def __init__(self) -> None:
        self._heard = bytearray()
        self._status = 0
        self._length: int | None = None  # None: in chunks
        self._answered: Callable[[int, bytes], None] = lambda status, body: None
        self._counted: Callable[[int], None] | None = None
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, problem: Exception | None) -> None:
        self._answered(0, b"the connection was closed")

    def send(self, raw: bytes, answered: Callable[[int, bytes], None]) -> None:
        """Send a request; `answered` is told its status and its body."""
        self._answered = answered
        self.transport.write(raw)

    async def ask(self, raw: bytes) -> tuple[int, bytes]:
        told: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self.send(raw, lambda status, body: told.set_result((status, body)) if not told.done() else None)
        return await told

    async def events(self, raw: bytes, wanted: int) -> None:
        """Open a watch and return when so many events have come."""
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        seen = 0

        def count(events: int) -> None:
            nonlocal seen
            seen += events
            if seen >= wanted and not told.done():
                told.set_result(None)

        def broken(status: int, body: bytes) -> None:
            if not told.done():
                told.set_exception(Unexpected(f"a watch ended after {seen} of {wanted} events"))

        self._counted, self._answered = count, broken
        self.transport.write(raw)
        await told

    def data_received(self, data: bytes) -> None:
        if self._counted is not None:
            both = self._tail + data  # a mark may come in two pieces
            self._counted(both.count(_MARK))
            self._tail = both[1 - len(_MARK) :]
            return
        heard = self._heard
        heard += data
        if not self._status:
            end = heard.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(heard[:end]).lower()
            self._status = int(head[9:12])
            said = head.partition(b"content-length:")[2].split(b"\r\n", 1)[0]
            self._length = None if b"transfer-encoding: chunked" in head else int(said or b"0")
            del heard[: end + 4]
        if self._length is None:
            if not heard.endswith(b"0\r\n\r\n"):
                return
            body = _unchunked(heard)
        elif len(heard) < self._length:
            return
        else:
            body = bytes(heard)
        status, self._status = self._status, 0
        heard.clear()
        self._answered(status, body)


def _unchunked(heard: bytearray) -> bytes:
    parts: list[bytes] = []
    at = 0
    while True:
        line = heard.index(b"\r\n", at)
        size = int(heard[at:line], 16)
        if not size:
            return b"".join(parts)
        parts.append(bytes(heard[line + 2 : line + 2 + size]))
        at = line + 4 + size


async def connect(server: Server, count: int) -> list[Connection]:
    trust = ssl.create_default_context(cadata=server.ca)
    address, loop = urlsplit(server.url), asyncio.get_running_loop()
    host, port = address.hostname or "", address.port or 443
    opening = [loop.create_connection(Connection, host, port, ssl=trust) for _ in range(count)]
    return [connection for _, connection in await asyncio.gather(*opening)]


async def measure(server: Server, what: str, raws: Sequence[bytes], connections: int) -> Rate:
    """Send every request once, over so many connections at a time.  Raises Unexpected."""
    waiting = iter(raws)
    took: list[float] = []
    opened = await connect(server, connections)
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def go_on(connection: Connection) -> None:
        raw = next(waiting, None)
        if raw is not None:
            connection.send(raw, partial(answered, connection, time.perf_counter()))

    def answered(connection: Connection, began: float, status: int, body: bytes) -> None:
        took.append(time.perf_counter() - began)
        if over.done():
            return
        if not 200 <= status < 300:
            over.set_exception(Unexpected(f"{what}: {status} {body[:300]!r}"))
        elif len(took) == len(raws):
            over.set_result(None)
        else:
            go_on(connection)

    cpu, began = server.cpu(), time.perf_counter()
    try:
        for connection in opened:
            go_on(connection)
        await over
    finally:
        await _close(opened)
    seconds = time.perf_counter() - began
    spent = server.cpu() - cpu
    middle = sorted(took)[len(took) // 2]
    count = len(raws)
    return Rate(what, connections, count, round(count / seconds), round(middle * 1e3, 2), round(spent / count * 1e3, 3))


async def _close(opened: Iterable[Connection]) -> None:
    """Let go at once: a goodbye over TLS would be waited for."""
    for connection in opened:
        connection.transport.abort()
    await asyncio.sleep(0)


# ── what is asked ────────────────────────────────────────────────────────────────────────────────────────────


def nodes() -> list[Json]:
    room = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    ready = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return [{"metadata": {"name": f"node-{i}"}, "status": ready} for i in range(NODES)]


def pod(name: str) -> Json:
    resources = {"requests": {"cpu": "100m", "memory": "500Mi"}}
    container = {"name": "pause", "image": "registry.example/pause:3.9", "resources": resources}
    return {"metadata": {"name": name, "labels": {"app": "load"}}, "spec": {"containers": [container]}}


async def rates(server: Server, count: int, connections: int) -> list[Rate]:
    """Pods created, read and bound."""
    names = [f"load-{connections}-{i}" for i in range(count)]
    made = [server.head("POST", PODS, json.dumps(pod(name)).encode()) for name in names]
    read = [server.head("GET", f"{PODS}/{name}") for name in names]
    bound = []
    for i, name in enumerate(names):
        body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": f"node-{i % NODES}"}}
        bound.append(server.head("POST", f"{PODS}/{name}/binding", json.dumps(body).encode()))
    steps = (("create", made), ("read", read), ("bind", bound))
    return [await measure(server, what, raws, connections) for what, raws in steps]


async def prepare(server: Server) -> None:
    """The nodes that pods are bound to."""
    raws = [server.head("POST", "/api/v1/nodes", json.dumps(node).encode()) for node in nodes()]
    await measure(server, "create nodes", raws, 1)


async def fan_out(server: Server, watchers: int, pods: int) -> Watched:
    """Pods are created over eight connections while so many watch them."""
    [connection] = await connect(server, 1)
    _, listed = await connection.ask(server.head("GET", f"{PODS}?limit=1"))
    version = json.loads(listed)["metadata"]["resourceVersion"]
    opened = await connect(server, watchers)
    watch = server.head("GET", f"{PODS}?watch=1&resourceVersion={version}&timeoutSeconds=300")
    watching = [asyncio.create_task(one.events(watch, pods)) for one in opened]
    raws = [server.head("POST", PODS, json.dumps(pod(f"watched-{watchers}-{i}")).encode()) for i in range(pods)]
    began = time.perf_counter()
    await measure(server, "create", raws, 8)
    await asyncio.gather(*watching)
    seconds = time.perf_counter() - began
    await _close([connection, *opened])
    return Watched(watchers, round(watchers * pods / seconds))


async def listing(server: Server, times: int = 5) -> tuple[int, float]:
    """How many pods there are, and how many milliseconds the list of all takes: the median."""
    [connection] = await connect(server, 1)
    took, count = [], 0
    for _ in range(times):
        began = time.perf_counter()
        _, body = await connection.ask(server.head("GET", "/api/v1/pods"))
        took.append(time.perf_counter() - began)
        count = len(json.loads(body)["items"])
    await _close([connection])
    return count, round(sorted(took)[times // 2] * 1e3, 1)
