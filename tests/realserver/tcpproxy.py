"""A proxy that breaks connections to the API server, at the byte a test asks for.

It stands between a client and a server on loopback, in a thread of its own, so that synchronous and asynchronous
tests use it alike. Two kinds of fault can be asked for:

- *on the link*, for every connection: cut after N bytes, delay, throttle, black hole, refuse. TLS passes through
  unread, so these work between any client and any server.
- *on a request*: whatever matches a pattern loses its response after the server has answered, never reaches the
  server, reaches it later, is answered by the proxy, or is cut off in the middle of the response. To see requests
  the proxy must end TLS itself: give it a serving certificate that clients trust and a context for the server behind.
  It then speaks HTTP/1.1 on both sides. Clients authenticate by token there, for a client certificate ends here too.

A fault is a value; asking for one returns an `Order`, which counts how often it struck and can be waited for.
"""

import asyncio
import re
import socket
import ssl
import struct
import threading
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from tests.realserver.faults import (
    BlackHole,
    Cut,
    CutResponse,
    Delay,
    Direction,
    Ending,
    HoldRequest,
    LinkFault,
    LoseRequest,
    LoseResponse,
    Order,
    Refuse,
    Reply,
    RequestFault,
    Throttle,
)

CHUNK = 64 * 1024
T = TypeVar("T")


@dataclass(frozen=True)
class Tls:
    """How the proxy ends TLS: as whom towards clients, and whom it trusts as the server."""

    facing_clients: ssl.SSLContext
    facing_server: ssl.SSLContext


@dataclass(eq=False)
class _Connection:
    """The two halves of one connection."""

    client_reader: asyncio.StreamReader
    client: asyncio.StreamWriter
    server_reader: asyncio.StreamReader
    server: asyncio.StreamWriter
    passed: dict[Direction, int] = field(default_factory=lambda: {"up": 0, "down": 0})
    losing: Order | None = None         # what happens to the response now awaited
    seen: bytearray = field(default_factory=bytearray)
    client_gone: bool = False


class TcpProxy:
    """Listens on a loopback port of its own and forwards to `upstream`; use as a context manager."""

    def __init__(self, upstream: tuple[str, int], tls: Tls | None = None) -> None:
        self.upstream = upstream
        self.tls = tls
        self.port = 0
        self.requests: list[str] = []   # "METHOD target" of each request seen, with TLS ended here
        self._link: Order | None = None
        self._orders: list[Order] = []
        self._connections: set[_Connection] = set()     # never iterated where the order could matter
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients: weakref.WeakSet[asyncio.StreamWriter] = weakref.WeakSet()
        self._healed = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcpproxy", daemon=True)
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    # ── for tests ──

    def start(self) -> "TcpProxy":
        self._thread.start()
        self._await(self._listen())
        return self

    def stop(self) -> None:
        if self._loop.is_closed():
            return
        self._await(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> "TcpProxy":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def impose(self, fault: LinkFault, *, times: int | None = None) -> Order:
        """Put a fault on the link, for connections there are and those to come; byte counts begin now.

        With `times` the link heals by itself after so many cuts or refusals.
        """
        order = Order(fault, None, times)

        def put() -> Order:
            self._link = order
            for connection in self._connections:
                connection.passed = {"up": 0, "down": 0}
            self._wake()
            return order

        return self._do(put)

    def heal(self) -> None:
        """Take the fault off the link; what a black hole held goes on its way."""

        def take() -> None:
            self._link = None
            self._wake()

        self._do(take)

    def on(self, pattern: str, fault: RequestFault, *, times: int | None = 1) -> Order:
        """Strike requests whose head or body matches a regular expression, such as `^POST .*/binding`."""
        assert self.tls is not None, "to see requests the proxy must end TLS: TcpProxy(upstream, tls=Tls(...))"
        order = Order(fault, re.compile(pattern.encode(), re.DOTALL), times)
        self._do(lambda: self._orders.append(order))
        return order

    def release(self, order: Order) -> None:
        """Let the requests held by an order reach the server."""
        self._do(order.released.set)

    def forget(self, order: Order) -> None:
        """Strike no more requests with this order."""
        self._do(lambda: self._orders.remove(order))

    def drop_connections(self, ending: Literal["reset", "close"] = "reset") -> int:
        """End every connection there is; say how many."""

        def drop() -> int:
            connections = list(self._connections)
            for connection in connections:
                _end(connection.client, ending)
                _end(connection.server, "reset")
            return len(connections)

        return self._do(drop)

    # ── in the loop ──

    async def _listen(self) -> None:
        context = self.tls.facing_clients if self.tls else None
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0, ssl=context)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in list(self._clients):      # also those still saying goodbye
            _end(client, "reset")
        for _ in range(3):
            await asyncio.sleep(0)              # transports close in callbacks of callbacks

    async def _accepted(self, client_reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._clients.add(client)
        try:
            await self._serve(client_reader, client)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass        # either side may vanish at any moment, that is what a proxy is for; only stop() cancels
        finally:
            self._tasks.discard(task)
            _end(client, "close")

    async def _serve(self, client_reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        if self._link is not None and isinstance(self._link.fault, Refuse):
            self._struck_link(self._link)
            _end(client, "reset")
            return
        context = self.tls.facing_server if self.tls else None
        try:
            server_reader, server = await asyncio.open_connection(*self.upstream, ssl=context)
        except OSError:
            _end(client, "reset")   # the server is down: say so as its own kernel would
            return
        connection = _Connection(client_reader, client, server_reader, server)
        self._connections.add(connection)
        up = self._requests(connection) if self.tls else self._pump(connection, "up")
        sides = [asyncio.ensure_future(up), asyncio.ensure_future(self._pump(connection, "down"))]
        try:
            await asyncio.gather(*sides)
        finally:
            self._connections.discard(connection)
            _end(server, "reset")
            for side in sides:
                side.cancel()
            await asyncio.gather(*sides, return_exceptions=True)

    async def _pump(self, connection: _Connection, direction: Direction) -> None:
        reader = connection.client_reader if direction == "up" else connection.server_reader
        while data := await reader.read(CHUNK):
            await self._pass(connection, direction, data)
        raise ConnectionResetError("end of stream")     # one side has ended, so the other shall

    async def _pass(self, connection: _Connection, direction: Direction, data: bytes) -> None:
        """Send bytes on, as far as the link and the request's own fault let them."""
        if direction == "down":
            data = await self._kept_of_response(connection, data)
        if not data or (direction == "down" and connection.client_gone):
            return
        writer = connection.server if direction == "up" else connection.client
        data, cut = await self._through_link(connection, direction, data)
        for piece, pause in self._pieces(data, direction):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        if cut is not None:
            assert isinstance(cut.fault, Cut)
            self._struck_link(cut)
            self._give_up_client(connection, cut.fault.ending)
            await self._linger(connection, cut.fault.ending, direction)

    async def _through_link(self, connection: _Connection, direction: Direction,
                            data: bytes) -> tuple[bytes, Order | None]:
        while (order := self._link) is not None and isinstance(order.fault, BlackHole) \
                and direction in order.fault.directions:
            order.strike()
            await self._healed.wait()
        match order.fault if order else None:
            case Delay(seconds=seconds):
                await asyncio.sleep(seconds)
            case Cut(after=after, direction=cut) if cut == direction:
                already = connection.passed[direction]
                if already + len(data) >= after:
                    return data[: after - already], order
        connection.passed[direction] += len(data)
        return data, None

    def _pieces(self, data: bytes, direction: Direction) -> list[tuple[bytes, float]]:
        """The chunk in the portions it is sent in, each with the pause after it."""
        match self._link.fault if self._link else None:
            case Throttle(bytes_per_second=rate, direction=slow) if slow == direction:
                size = max(1, rate // 20)
                return [(data[at : at + size], size / rate) for at in range(0, len(data), size)]
        return [(data, 0.0)]

    # ── requests ──

    async def _requests(self, connection: _Connection) -> None:
        while True:
            request = await _read_request(connection.client_reader)
            self.requests.append(request.split(b" HTTP/", 1)[0].decode("latin-1"))
            connection.losing = None
            connection.seen.clear()
            order = self._matching(request)
            if order is None:
                await self._pass(connection, "up", request)
            else:
                order.take()
                await self._strike_request(connection, request, order)

    def _matching(self, request: bytes) -> Order | None:
        return next((order for order in self._orders
                     if order.left != 0 and order.pattern is not None and order.pattern.search(request)), None)

    async def _strike_request(self, connection: _Connection, request: bytes, order: Order) -> None:
        match order.fault:
            case Reply(status=status, headers=headers, body=body):
                order.strike()
                connection.client.write(_response(status, headers, body))
                await connection.client.drain()
            case LoseRequest(ending=ending):
                order.strike()
                self._give_up_client(connection, ending)
                await self._linger(connection, ending, "up")
            case HoldRequest(ending=ending):
                order.strike()
                if ending != "wait":
                    self._give_up_client(connection, ending)
                    connection.losing = order
                await order.released.wait()
                await self._pass(connection, "up", request)
                if ending != "wait":
                    await _for_ever()   # the way down ends it, when the server has answered
            case LoseResponse() | CutResponse():
                connection.losing = order
                await self._pass(connection, "up", request)

    async def _kept_of_response(self, connection: _Connection, data: bytes) -> bytes:
        """What the client may see of the bytes now coming in."""
        order = connection.losing
        if order is None:
            return data
        before = len(connection.seen)
        connection.seen += data
        answered = b"\r\n\r\n" in connection.seen
        match order.fault:
            case CutResponse(after=after) if len(connection.seen) < after:
                return data
            case CutResponse(after=after, ending=ending):
                connection.client.write(bytes(connection.seen[before:after]))
                await connection.client.drain()
            case LoseResponse(ending=ending) if answered:
                pass
            case HoldRequest() if answered:
                order.answered(_status(connection.seen))
                raise ConnectionResetError("answered, and nobody listens")
            case _:
                return b""
        order.answered(_status(connection.seen))
        order.strike()
        self._give_up_client(connection, ending)
        await self._linger(connection, ending, "down")
        return b""

    # ── ends ──

    def _give_up_client(self, connection: _Connection, ending: Ending) -> None:
        connection.client_gone = True
        if ending != "hang":
            _end(connection.client, ending)

    async def _linger(self, connection: _Connection, ending: Ending, direction: Direction) -> None:
        """The connection has had its part; with `hang` it stays until the client gives up by itself."""
        if ending == "hang" and direction == "down":
            await _for_ever()           # the way up sees the client go, and ends both
        while ending == "hang" and await connection.client_reader.read(CHUNK):
            pass
        raise ConnectionResetError("ended by a fault")

    def _struck_link(self, order: Order) -> None:
        order.take()
        order.strike()
        if order.left == 0 and self._link is order:
            self._link = None
            self._wake()

    def _wake(self) -> None:
        self._healed.set()
        self._healed.clear()

    # ── between threads ──

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=30)

    def _do(self, action: Callable[[], T]) -> T:
        async def act() -> T:
            return action()

        return self._await(act())


def _end(writer: asyncio.StreamWriter, ending: Ending) -> None:
    """Close a connection politely, or reset it: with no lingering the kernel answers with RST."""
    transport = writer.transport
    if ending == "reset":
        raw: socket.socket | None = writer.get_extra_info("socket")
        if raw is not None and raw.fileno() != -1:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    elif not transport.is_closing():
        writer.close()


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    """One whole HTTP/1.1 request, head and body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"^content-length:\s*(\d+)", head, re.IGNORECASE | re.MULTILINE)
    if length is not None:
        return head + await reader.readexactly(int(length[1]))
    if re.search(rb"^transfer-encoding:\s*chunked", head, re.IGNORECASE | re.MULTILINE):
        return head + await _read_chunks(reader)
    return head


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        body += line + await reader.readexactly(size + 2)
        if size == 0:
            return body


def _response(status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status} Ordered", *(f"{name}: {value}" for name, value in headers),
             f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _status(response: bytes | bytearray) -> int:
    return int(bytes(response).split(b" ", 2)[1])
