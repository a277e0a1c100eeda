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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

Json = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
NODES = 100


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
        """Seconds of processor time so far."""
        ticks = 0
        for pid in self.pids:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids)
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


class Connection:
    """One kept connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    async def ask(self, raw: bytes) -> tuple[int, bytes]:
        self.writer.write(raw)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        lower = head.lower()
        if b"transfer-encoding: chunked" in lower:
            return status, await self._chunks()
        length = int(lower.partition(b"content-length:")[2].split(b"\r\n", 1)[0] or b"0")
        return status, await self._reader.readexactly(length)

    async def _chunks(self) -> bytes:
        parts = []
        while size := int(await self._reader.readline(), 16):
            parts.append((await self._reader.readexactly(size + 2))[:-2])
        await self._reader.readline()
        return b"".join(parts)

    async def events(self, raw: bytes, wanted: int) -> None:
        """Open a watch and return when so many events have come."""
        self.writer.write(raw)
        await self._reader.readuntil(b"\r\n\r\n")
        seen = 0
        while seen < wanted:
            seen += (await self._reader.read(1 << 18)).count(b'{"type":"')


async def connect(server: Server, count: int) -> list[Connection]:
    trust = ssl.create_default_context(cadata=server.ca)
    address = urlsplit(server.url)
    opened = [
        asyncio.open_connection(address.hostname, address.port, ssl=trust, limit=1 << 26) for _ in range(count)
    ]
    return [Connection(*pair) for pair in await asyncio.gather(*opened)]


async def measure(server: Server, what: str, raws: Sequence[bytes], connections: int) -> Rate:
    """Send every request once, over so many connections at a time.  Raises Unexpected."""
    waiting = iter(raws)
    took: list[float] = []
    opened = await connect(server, connections)

    async def work(connection: Connection) -> None:
        for raw in waiting:
            began = time.perf_counter()
            status, body = await connection.ask(raw)
            took.append(time.perf_counter() - began)
            if status >= 300:
                raise Unexpected(f"{what}: {status} {body[:300]!r}")

    cpu, began = server.cpu(), time.perf_counter()
    try:
        await asyncio.gather(*map(work, opened))
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
        connection.writer.transport.abort()
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
