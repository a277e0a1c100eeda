"""The socket in front of ApiServer.handle: aiohttp, kept as thin as it can be.

A request is read whole (bounded), handled in one go, and written; nothing is awaited in between, so requests are
atomic. A watch is a response that stays open: lines are written as they come, many at a time when many are ready.  A
client that does not read is not waited for: the watch behind it lags, is cut off with 410 by the store, and the
connection is closed when it takes no bytes for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import ssl
import threading
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from aiohttp import web

from kubesched.apiserver.requests import Response, User, WatchStream, encode
from kubesched.apiserver.server import BODY_BYTES_MAX, ApiServer
from kubesched.apiserver.status import ApiError, internal, too_large

T = TypeVar("T")

BOOKMARK_SECONDS = 60.0
STALLED_SECONDS = 60.0
COMPRESS_BYTES_MIN = 128 * 1024
_LAST_BOOKMARK_BEFORE = 2.0
_WARN_CODE = 299


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
        self._runner: web.ServerRunner | None = None
        self._watches: set[asyncio.Task[Any]] = set()

    @property
    def url(self) -> str:
        scheme = "https" if self.tls else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"

    async def start(self) -> None:
        """Listen; afterwards `port` is the port that was taken."""
        handler = web.Server(self._handle, request_factory=_make_request, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(handler, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port, ssl_context=self.tls)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]  # TCPSite has no other way
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.server.address = f"{host}:{self.port}"

    async def stop(self) -> None:
        """Stop listening and end every watch."""
        for task in list(self._watches):
            task.cancel()
        if self._runner is None:
            return
        connections = list(self._runner.server.connections) if self._runner.server is not None else []
        transports = [one.transport for one in connections if one.transport is not None]
        await self._runner.cleanup()
        self._runner = None
        # A TLS peer that has gone away would be waited for to say goodbye.
        for transport in transports:
            with contextlib.suppress(AttributeError):  # before Python 3.11.5 a closed one may have lost its protocol
                transport.abort()
        await asyncio.sleep(0)

    async def __aenter__(self) -> HttpFace:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.stop()

    # requests --------------------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        path, _, query = request.raw_path.partition("?")
        try:
            body = await request.read() if request.body_exists else b""
        except web.HTTPRequestEntityTooLarge:
            return _status_response(too_large(f"limit is {BODY_BYTES_MAX}"))
        except web.HTTPException as error:
            return _status_response(ApiError(error.status, "BadRequest", error.reason))
        except (zlib.error, ValueError, web.RequestPayloadError):
            return _status_response(ApiError(400, "BadRequest", "the body of the request cannot be read"))
        try:
            answer = self.server.handle(request.method, path, query, request.headers, body, _certificate_user(request))
        except Exception as error:
            # A bug of ours must not look like a broken network: say what broke, and go on serving.
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"{request.method} {path} failed", "exception": error}
            )
            return _status_response(internal(f"{type(error).__name__} while handling {request.method}"))
        if isinstance(answer, WatchStream):
            return await self._stream(request, answer)
        return _response(answer, request.headers)

    async def _stream(self, request: web.BaseRequest, watch: WatchStream) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": watch.content_type, "Cache-Control": "no-cache, private"}
        )
        _add_warnings(response.headers, watch.warnings)
        response.enable_chunked_encoding()
        task = asyncio.current_task()
        if task is not None:
            self._watches.add(task)
        try:
            await response.prepare(request)
            await _pump(response, watch)
            await response.write_eof()
        except (TimeoutError, ConnectionError):
            request.protocol.force_close()
        finally:
            watch.close()
            if task is not None:
                self._watches.discard(task)
        return response


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


async def _pump(response: web.StreamResponse, watch: WatchStream) -> None:
    """Write what a watch has, as it comes, until it or its time is over."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    watch.set_on_ready(ready.set)
    end = loop.time() + watch.timeout if watch.timeout else float("inf")
    bookmark_at = loop.time() + BOOKMARK_SECONDS
    last_words = watch.bookmark is not None
    while True:
        ready.clear()
        lines = watch.take()
        if lines:
            await asyncio.wait_for(response.write(b"".join(lines)), STALLED_SECONDS)
            continue
        now = loop.time()
        if watch.closed or now >= end:
            return
        if last_words and now >= end - _LAST_BOOKMARK_BEFORE:
            last_words = False
            _bookmark(watch)
            continue
        if now >= bookmark_at:
            bookmark_at = now + BOOKMARK_SECONDS
            _bookmark(watch)
            continue
        until = min(end, bookmark_at, end - _LAST_BOOKMARK_BEFORE if last_words else end)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ready.wait(), until - now)


def _bookmark(watch: WatchStream) -> None:
    if watch.bookmark is not None:
        watch.bookmark()


# ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────


def _make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: asyncio.Task[None]) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=BODY_BYTES_MAX)


def _response(answer: Response, asked: Mapping[str, str]) -> web.Response:
    body = answer.body
    headers = {"Content-Type": answer.content_type, "Cache-Control": "no-cache, private", **answer.headers}
    if len(body) >= COMPRESS_BYTES_MIN and "gzip" in asked.get("Accept-Encoding", ""):
        packer = zlib.compressobj(1, wbits=31)
        body = packer.compress(body) + packer.flush()
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    response = web.Response(status=answer.status, body=body, headers=headers)
    _add_warnings(response.headers, answer.warnings)
    return response


def _add_warnings(headers: Any, warnings: list[str]) -> None:
    for text in warnings:
        quoted = "".join(c if c.isprintable() else "?" for c in text).replace("\\", "\\\\").replace('"', '\\"')
        headers.add("Warning", f'{_WARN_CODE} - "{quoted}"')


def _status_response(error: ApiError) -> web.Response:
    return web.Response(status=error.code, body=encode(error.to_status()), content_type="application/json")


# ── who and where ───────────────────────────────────────────────────────────────────────────────────────────


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _certificate_user(request: web.BaseRequest) -> User | None:
    """The user of a client certificate, which TLS has verified to be of our CA."""
    transport = request.transport
    certificate = transport.get_extra_info("peercert") if transport is not None else None
    if not certificate:
        return None
    names = [pair for part in certificate.get("subject", ()) for pair in part]
    common = next((value for key, value in names if key == "commonName"), "")
    groups = tuple(value for key, value in names if key == "organizationName")
    return User(common, (*groups, "system:authenticated")) if common else None
