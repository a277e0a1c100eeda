"""Carry requests of the wire out over HTTP, and keep the three promises of `wire.exchange`.

A request becomes a task; what comes back is told at once, in the thread of the event loop.  Whether a lost request may
have been carried out is decided by one fact: whether its head had begun to be written.  Redirects are not followed,
nothing is compressed, and no answer is read beyond the length its request allows.

This is the only module that knows aiohttp's client.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Protocol
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractResolver

from kubesched.framework.errors import ConfigError
from kubesched.framework.plain import plain
from kubesched.live.access import Access
from kubesched.live.extending import CarefulResolver, Reach
from kubesched.wire.exchange import Chunk, Closed, Number, Reply, Request, Response, Unanswered

CONNECT_WITHIN = 10.0  # seconds
IDLE_KEPT = 60.0  # the API server keeps idle connections for 90 s
READ_BYTES = 1 << 20
KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
HANG_UP_TURNS = 100  # of the event loop, until what was shut down has noticed
USER_AGENT = "kubesched"

Tell = Callable[[Number, Reply], None]


class Transport(Protocol):
    """Who carries requests out.  All of it is called in one thread, that of the event loop."""

    loop: asyncio.AbstractEventLoop  # perhaps not running at the moment

    def send(self, number: Number, request: Request, tell: Tell) -> None:
        """Start a request; `tell` hears everything that comes back, never before this returns."""
        ...

    def abandon(self, number: Number) -> None:
        """Give a request up; nothing more is told of it."""
        ...

    async def close(self) -> None: ...


class _TooLong(Exception):
    """An answer longer than anybody wants to read."""


class HttpTransport:
    """HTTP/1.1 to one API server, and to extenders.

    Args:
        loop: where requests are carried out; a new one where none is given.
        extenders: how to reach each, by its number in the configuration.
    """

    def __init__(
        self,
        access: Access,
        loop: asyncio.AbstractEventLoop | None = None,
        *,
        user_agent: str = USER_AGENT,
        extenders: Mapping[int, Reach] | None = None,
    ) -> None:
        self.loop = loop or asyncio.new_event_loop()
        self._access, self._extenders = access, dict(extenders or {})
        self._headers = {"User-Agent": user_agent, "Accept-Encoding": "identity"}
        self._session: aiohttp.ClientSession | None = None
        self._outside: aiohttp.ClientSession | None = None
        self._tasks: dict[Number, asyncio.Task[None]] = {}
        self._sockets: WeakSet[socket.socket] = WeakSet()

    # ── Transport ────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, number: Number, request: Request, tell: Tell) -> None:
        task = self.loop.create_task(self._carry_out(number, request, tell))
        self._tasks[number] = task
        task.add_done_callback(lambda done: self._tasks.pop(number, None))

    def abandon(self, number: Number) -> None:
        task = self._tasks.pop(number, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for session in (self._session, self._outside):
            if session is not None:
                await session.close()
        await self._hang_up()

    async def _hang_up(self) -> None:
        """End what is left: a TLS peer that has gone away would be waited for to say goodbye."""
        for sock in [sock for sock in self._sockets if sock.fileno() != -1]:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for _ in range(HANG_UP_TURNS):
            if all(sock.fileno() == -1 for sock in self._sockets):
                return
            await asyncio.sleep(0)

    async def ask(self, request: Request) -> Response | Unanswered:
        """One request outside the exchange, for whoever has a coroutine to wait in."""
        return await self._answer(request)

    # ── one request ──────────────────────────────────────────────────────────────────────────────────────────

    async def _carry_out(self, number: Number, request: Request, tell: Tell) -> None:
        if request.streams:
            await self._stream(request, lambda reply: tell(number, reply))
        else:
            tell(number, await self._answer(request))

    async def _answer(self, request: Request) -> Response | Unanswered:
        """A whole answer; after a 401, or a server that cannot prove itself, once more with fresh credentials."""
        got = await self._try(request)
        if request.extender is None and (_refused(got) or _doubted(got)):
            self._access.distrust()
            got = await self._try(request)
        return got

    async def _try(self, request: Request) -> Response | Unanswered:
        fate = SimpleNamespace(written=False)
        try:
            async with asyncio.timeout(request.timeout / 1e9):
                response = await self._open(request, fate)
                async with response:
                    body = await _whole(response, request.bytes_max)
                    return Response(response.status, _headers(response), body)
        except Exception as problem:  # whatever a library may raise: the machines want an answer
            return _failed(problem, request, fate)

    async def _stream(self, request: Request, tell: Callable[[Reply], None]) -> None:
        """An answer in pieces."""
        for fresh in (False, True):
            fate = SimpleNamespace(written=False)
            try:
                async with asyncio.timeout(request.timeout / 1e9):
                    response = await self._open(request, fate)
                async with response:
                    if response.status == 200:
                        tell(Response(200, _headers(response)))
                        await self._pieces(response, tell)
                        return
                    async with asyncio.timeout(request.timeout / 1e9):
                        got: Response | Unanswered = Response(
                            response.status, _headers(response), await _whole(response, request.bytes_max)
                        )
            except Exception as problem:
                got = _failed(problem, request, fate)
            if fresh or not (_refused(got) or _doubted(got)):
                tell(got)
                return
            self._access.distrust()

    async def _pieces(self, response: aiohttp.ClientResponse, tell: Callable[[Reply], None]) -> None:
        why = "the server ended it"
        try:
            async for data in response.content.iter_any():
                tell(Chunk(data))
        except Exception as problem:
            why = _words(problem)
            _let_go(problem)
        tell(Closed(why))

    # ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _open(self, request: Request, fate: SimpleNamespace) -> aiohttp.ClientResponse:
        if request.extender is None:
            way = await self._access.current()
            session = self._session = self._session or self._make_session()
            path = request.path
        else:
            reach = self._extenders[request.extender]
            way, path = reach.way, f"/{request.path}"
            session = self._outside = self._outside or self._make_session(CarefulResolver())
        headers = {**self._headers, **way.headers, "Accept": request.accept}
        if request.body:
            headers["Content-Type"] = request.content_type
        return await session.request(
            request.method,
            way.url + path,
            params=request.query or None,
            data=request.body or None,
            headers=headers,
            ssl=True if way.tls is None else way.tls,
            server_hostname=way.server_name,
            proxy=way.proxy,
            allow_redirects=False,
            trace_request_ctx=fate,
        )

    def _make_session(self, resolver: AbstractResolver | None = None) -> aiohttp.ClientSession:
        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(_note_written)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=IDLE_KEPT, resolver=resolver, socket_factory=self._make_socket
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_WITHIN),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            read_bufsize=READ_BYTES,
            trust_env=False,
            trace_configs=[trace],
            max_line_size=64 << 10,
            max_field_size=64 << 10,
        )

    def _make_socket(self, address: Any) -> socket.socket:
        """A socket whose other end is asked now and then whether it still lives: a silent stream is no sign."""
        family, kind, protocol, _, _ = address
        sock = socket.socket(family=family, type=kind, proto=protocol)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEP_ALIVE.items():
            if hasattr(socket, option):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        self._sockets.add(sock)
        return sock


async def _note_written(session: object, context: SimpleNamespace, params: object) -> None:
    """From here on the server may have heard of the request."""
    context.trace_request_ctx.written = True


async def _whole(response: aiohttp.ClientResponse, bytes_max: int) -> bytes:
    pieces, size = [], 0
    async for data in response.content.iter_any():
        size += len(data)
        if size > bytes_max:
            response.close()
            raise _TooLong(f"the answer is longer than {bytes_max} bytes")
        pieces.append(data)
    return b"".join(pieces)


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _refused(got: Response | Unanswered) -> bool:
    return isinstance(got, Response) and got.status == 401


def _doubted(got: Response | Unanswered) -> bool:
    return isinstance(got, _Lost) and got.doubted


class _Lost(Unanswered, frozen=True):
    """No answer, and whether that is because of a certificate."""

    doubted: bool = False


def _failed(problem: Exception, request: Request, fate: SimpleNamespace) -> Unanswered:
    late = isinstance(problem, TimeoutError)
    why = f"no answer within {request.timeout / 1e9:g} s" if late else _words(problem)
    doubted = isinstance(problem, (ssl.SSLError, aiohttp.ClientSSLError))
    _let_go(problem)
    return _Lost(why, "unknown" if fate.written else "no", doubted)


def _let_go(problem: BaseException) -> None:
    """Forget where it was raised, and whatever led to it.

    A traceback holds the frames of everybody on the way, down to asyncio's own with its buffer of 256 KiB; and the
    response they belong to holds the exception.  So every connection that is cut would keep its buffer until the
    next collection of garbage: twenty watches that are cut at once, five megabytes.
    """
    problem.__traceback__ = None
    for before in (problem.__cause__, problem.__context__):
        if before is not None and before.__traceback__ is not None:
            _let_go(before)


def _words(problem: Exception) -> str:
    """What went wrong, and what may be done about it, where that is known."""
    match problem:
        case aiohttp.ClientConnectorCertificateError():
            told = getattr(problem.certificate_error, "verify_message", "") or problem.certificate_error
            return plain(f"{problem.host}:{problem.port} cannot prove who it is: {told}", 300)
        case aiohttp.ClientConnectorSSLError():
            return plain(f"{problem.host}:{problem.port} does not speak TLS as it should: {problem.os_error}", 300)
        case aiohttp.ClientConnectorError():
            known = problem.os_error.errno  # asyncio has words of its own, that say less
            why = os.strerror(known) if known and known > 0 else problem.os_error.strerror or str(problem.os_error)
            return plain(f"{problem.host}:{problem.port} cannot be reached: {why.lower()}", 300)
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection"
        case ConfigError():
            return plain(problem, 500)
    return plain(f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__, 300)
