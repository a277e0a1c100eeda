"""Load on an API server: many requests at once over a few connections, and a watch that notes when a pod got a node.

What it sends is encoded beforehand and what it hears is hardly read, so that little of the machine goes to whoever
measures.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterable
from typing import Any

import aiohttp
from tests.realserver.client import Client

CONNECTIONS = 16
_NAME = re.compile(rb'"name":"([^"]+)"')
_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')


class Refused(AssertionError):
    """The API server did not do what it was asked."""


class Load:
    """Requests in the name of one client.

    Args:
        connections: how many requests are under way at once.
    """

    def __init__(self, client: Client, connections: int = CONNECTIONS) -> None:
        self._client, self._connections = client, connections
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Load:
        self._session = aiohttp.ClientSession(
            self._client.url,
            connector=aiohttp.TCPConnector(ssl=self._client.trust, limit=0),
            headers={"Authorization": f"Bearer {self._client.token}", "Content-Type": "application/json"},
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=1 << 20,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        assert self._session is not None, "entered first"
        return self._session

    async def send(self, method: str, path: str, body: bytes, *good: int) -> bytes:
        async with self.session.request(method, path, data=body) as answer:
            said = await answer.read()
            if answer.status not in good:
                raise Refused(f"{method} {path}: {answer.status} {said.decode(errors='replace')[:300]}")
            return said

    async def post_all(self, wanted: Iterable[tuple[str, bytes]]) -> list[float]:
        """POST a body to each path; when each was sent, by the monotonic clock."""
        left, sent = iter(wanted), list[float]()

        async def some() -> None:
            for path, body in left:
                sent.append(time.monotonic())
                await self.send("POST", path, body, 201)

        await asyncio.gather(*(some() for _ in range(self._connections)))
        return sent

    async def bound(self, namespace: str, version: str, count: int, seen: dict[str, float]) -> None:
        """Note when each of so many pods got a node; ends with the last of them.

        A busy server drops whoever does not read as fast as it writes; then the watch goes on from where it was.
        """
        while len(seen) < count:
            query = {"watch": "1", "fieldSelector": "spec.nodeName!=", "resourceVersion": version}
            async with self.session.get(f"/api/v1/namespaces/{namespace}/pods", params=query) as answer:
                if answer.status != 200:
                    raise Refused(f"the watch of pods: {answer.status} {await answer.text()}")
                rest = b""
                async for data in answer.content.iter_any():
                    now = time.monotonic()
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        name, told = _NAME.search(line), _VERSION.search(line)
                        assert name is not None, line
                        assert told is not None, line
                        version = told[1].decode()
                        seen.setdefault(name[1].decode(), now)
                    if len(seen) >= count:
                        return


def encoded(objects: Iterable[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(one).encode() for one in objects]


def node(name: str, *, cpu: str = "32", memory: str = "128Gi", pods: str = "110", **labels: str) -> dict[str, Any]:
    """A node that is ready."""
    room = {"cpu": cpu, "memory": memory, "pods": pods}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }
