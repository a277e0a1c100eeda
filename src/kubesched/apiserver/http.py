"""The socket in front of ApiServer.handle: a port, the connections on it, and a thread to serve it in.

A request is read whole (bounded), handled in one go, and written; nothing is awaited in between, so requests are
atomic.  A watch is an answer that stays open: lines are written as they come, many at a time when many are ready.  A
client that does not read is not waited for: the watch behind it lags, is cut off with 410 by the store, and the
connection is closed when it takes no bytes for a while.  What one connection does is in `connection.py`.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from kubesched.apiserver.connection import Connection
from kubesched.apiserver.requests import Answer, User, error_response
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.status import internal

T = TypeVar("T")

BACKLOG: Final = 512
SWEEP_SECONDS: Final = 15.0


class InsecureAddress(ValueError):
    """A server that everybody could reach and nobody had to prove anything to."""


class HttpFace:
    """An ApiServer on a TCP port.

    Args:
        server: what answers.
        host, port: where to listen; port 0 takes a free one.
        tls: the server side of TLS; None speaks plain HTTP, on loopback only.
    """

    def __init__(
        self, server: ApiServer, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        if tls is None and not is_loopback(host):
            raise InsecureAddress(f"refusing to serve plain HTTP on {host}: use TLS, or listen on 127.0.0.1")
        self.server, self.host, self.port, self.tls = server, host, port, tls
        self._listener: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self._address}"

    @property
    def _address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def start(self) -> None:
        """Listen; afterwards `port` is the port that was taken."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: Connection(self._handle, self._connections, loop),
            self.host,
            self.port,
            ssl=self.tls,
            backlog=BACKLOG,
        )
        self.port = self._listener.sockets[0].getsockname()[1]
        self.server.address = self._address
        self._close_idle_ones()

    async def stop(self) -> None:
        """Stop listening and end every watch."""
        if self._sweep is not None:
            self._sweep.cancel()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in list(self._connections):
            connection.close()
        while self._connections:
            await asyncio.sleep(0)  # until the loop has let go of them

    async def __aenter__(self) -> HttpFace:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.stop()

    def _close_idle_ones(self) -> None:
        loop = asyncio.get_running_loop()
        for connection in list(self._connections):
            connection.close_if_idle(loop.time())
        self._sweep = loop.call_later(SWEEP_SECONDS, self._close_idle_ones)

    def _handle(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes, certificate: User | None
    ) -> Answer:
        try:
            return self.server.handle(method, path, query, headers, body, certificate)
        except Exception as error:
            # A bug of ours must not look like a broken network: say what broke, and go on serving.
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"{method} {path} failed", "exception": error}
            )
            return error_response(internal(f"{type(error).__name__} while handling {method}"))


class HttpThread:
    """An HttpFace in a thread of its own, for programs that have no event loop to spare.

    The store belongs to that thread: use `call` to touch the server from elsewhere while it serves.

        with HttpThread(ApiServer(store, now=clock), tls=context) as face:
            requests.get(face.url + "/version", …)
    """

    def __init__(
        self, server: ApiServer, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self.face = HttpFace(server, host=host, port=port, tls=tls)
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="kubesched-apiserver", daemon=True)

    @property
    def url(self) -> str:
        return self.face.url

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())

    def start(self) -> None:
        """Listen; returns when the port is open."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.face.start(), self.loop).result()

    def stop(self) -> None:
        """Stop listening and end the thread."""
        asyncio.run_coroutine_threadsafe(self.face.stop(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run a function in the server's thread and return what it returns."""

        async def run() -> T:
            return function(*args, **kwargs)

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result()

    def __enter__(self) -> HttpThread:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()



def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
