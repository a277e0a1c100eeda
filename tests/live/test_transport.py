"""The transport keeps its promises: every request is answered once, whatever the other side does."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import aiohttp
import pytest

from kubesched.api.time import Duration, milliseconds, seconds
from kubesched.live.access import Access, Proof
from kubesched.live.transport import HttpTransport
from kubesched.wire.exchange import Chunk, Closed, Number, Reply, Request, Response, Unanswered

Behaviour = Callable[[bytes, asyncio.StreamWriter], Coroutine[Any, Any, None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"


class Server:
    """Behaves badly: whatever a test says it does with a request, on 127.0.0.1."""

    def __init__(self, loop: asyncio.AbstractEventLoop, behave: Behaviour) -> None:
        self._loop, self._behave = loop, behave
        self.requests: list[bytes] = []
        self.connections = 0
        self._server = loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lower = head.lower()
                size = int(lower.partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
                self.requests.append(head + (await reader.readexactly(size) if size else b""))
                await self._behave(self.requests[-1], writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def close(self) -> None:
        self._server.close()


class Both:
    """A server, and a transport to it, in one event loop."""

    def __init__(self, behave: Behaviour, access: Callable[[str], Access] = Access) -> None:
        self.loop = asyncio.new_event_loop()
        self.server = Server(self.loop, behave)
        self.transport = HttpTransport(access(self.server.url), self.loop)
        self.told: list[Reply] = []

    def ask(self, method: Any = "GET", path: str = "/api", body: bytes = b"", **how: Any) -> Response | Unanswered:
        how.setdefault("timeout", seconds(5))
        request = Request(method=method, path=path, body=body, **how)
        return self.loop.run_until_complete(self.transport.ask(request))

    async def end(self) -> None:
        await self.transport.close()
        self.server.close()
        here = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not here]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def stream(self, until: int = 1, **how: Any) -> list[Reply]:
        """Everything that is told of a stream, until it is over or so many replies have come."""
        how.setdefault("timeout", seconds(5))
        over = self.loop.create_future()

        def tell(number: Number, reply: Reply) -> None:
            self.told.append(reply)
            ended = isinstance(reply, (Closed, Unanswered)) or (isinstance(reply, Response) and reply.status != 200)
            if (ended or len(self.told) >= until) and not over.done():
                over.set_result(None)

        self.transport.send(Number(1), Request(method="GET", path="/watch", streams=True, **how), tell)
        self.loop.run_until_complete(over)
        return self.told


@pytest.fixture
def both() -> Iterator[Callable[..., Both]]:
    made: list[Both] = []

    def make(behave: Behaviour, **how: Any) -> Both:
        made.append(Both(behave, **how))
        return made[-1]

    yield make
    for one in made:
        one.loop.run_until_complete(one.end())
        one.loop.close()


def says(*pieces: bytes, then: str = "stay") -> Behaviour:
    """Write these, and then `stay`, `close` or `reset`."""

    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if then == "close":
            writer.close()
        elif then == "reset":
            writer.transport.abort()

    return behave


# ── the everyday ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_request_is_asked_as_it_is_meant(both: Callable[..., Both]) -> None:
    it = both(says(OK))
    query = (("fieldSelector", "status.phase!=Failed"), ("limit", "1"))
    got = it.ask("POST", "/api/v1/pods", b'{"a": 1}', query=query)
    assert got == Response(200, {"content-length": "2", "content-type": "application/json"}, b"{}")
    head, _, body = it.server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /api/v1/pods?fieldSelector=status.phase!%3DFailed&limit=1 HTTP/1.1\r\n")
    assert b"Accept-Encoding: identity" in head
    assert body == b'{"a": 1}'


def test_a_connection_serves_one_request_after_the_other(both: Callable[..., Both]) -> None:
    it = both(says(OK))
    assert [it.ask().status for _ in range(5)] == [200] * 5  # type: ignore[union-attr]
    assert it.server.connections == 1


def test_a_refusal_is_an_answer(both: Callable[..., Both]) -> None:
    it = both(says(b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\nno"))
    assert it.ask("POST", body=b"{}") == Response(409, {"content-length": "2"}, b"no")


def test_a_redirect_is_not_followed(both: Callable[..., Both]) -> None:
    it = both(says(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"))
    assert it.ask().status == 302  # type: ignore[union-attr]
    assert len(it.server.requests) == 1


# ── no answer, and what became of the request ────────────────────────────────────────────────────────────────


def test_where_nobody_listens_nothing_was_carried_out(both: Callable[..., Both]) -> None:
    it = both(says(OK))
    it.server.close()
    got = it.ask("POST", body=b"{}")
    assert isinstance(got, Unanswered)
    assert got.applied == "no"
    assert "cannot be reached: connection refused" in got.why


@pytest.mark.parametrize(
    ("behave", "why"),
    [
        (says(then="close"), "the server closed the connection"),
        (says(then="reset"), "the server closed the connection"),
        (says(OK[:20], then="close"), ""),
        (says(OK[:20], then="reset"), ""),
        (says(OK[:-1], then="close"), ""),
        (says(OK[:-1], then="reset"), ""),
        (says(b"\x16\x03\x01\x00\xa5 this is no HTTP\r\n\r\n", then="close"), ""),
        (says(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", then="close"), ""),
        (says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", then="close"), ""),
        (says(b"HTTP/1.1 200 OK\r\nX: " + b"y" * (80 << 10) + b"\r\n\r\n", then="close"), ""),
        (says(), "no answer within 0.05 s"),
        (says(OK[:20]), "no answer within 0.05 s"),
        (says(OK[:-1]), "no answer within 0.05 s"),
    ],
)
def test_what_is_sent_and_not_answered_was_perhaps_carried_out(
    both: Callable[..., Both], behave: Behaviour, why: str
) -> None:
    it = both(behave)
    patience: Duration = milliseconds(50) if why.startswith("no answer") else seconds(30)
    got = it.ask("POST", body=b"{}", timeout=patience)
    assert isinstance(got, Unanswered)
    assert got.applied == "unknown"
    assert why in got.why
    assert len(it.server.requests) == 1  # what may have been carried out is never sent again behind our back


def test_a_write_on_a_connection_that_has_served_before_is_not_sent_twice_either(both: Callable[..., Both]) -> None:
    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        if request.startswith(b"GET"):
            writer.write(OK)
        else:
            writer.close()

    it = both(behave)
    it.ask()
    got = it.ask("POST", body=b"{}")
    assert isinstance(got, Unanswered)
    assert got.applied == "unknown"
    assert len(it.server.requests) == 2


def test_an_answer_without_end_is_not_read_to_it(both: Callable[..., Both]) -> None:
    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    got = both(behave).ask(bytes_max=1 << 20)
    assert isinstance(got, Unanswered)
    assert "longer than 1048576 bytes" in got.why


def test_a_connection_the_server_has_closed_meanwhile_is_not_used(both: Callable[..., Both]) -> None:
    it = both(says(OK, then="close"))
    assert it.ask().status == 200  # type: ignore[union-attr]
    it.loop.run_until_complete(asyncio.sleep(0))
    assert it.ask("POST", body=b"{}").status == 200  # type: ignore[union-attr]
    assert it.server.connections == 2


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def test_a_stream_comes_in_pieces_and_is_closed(both: Callable[..., Both]) -> None:
    told = both(says(HEAD, chunk(b"one\ntw"), chunk(b"o\n"), b"0\r\n\r\n")).stream(until=99)
    assert told[0] == Response(200, {"transfer-encoding": "chunked"})
    assert b"".join(one.data for one in told if isinstance(one, Chunk)) == b"one\ntwo\n"
    assert told[-1] == Closed("the server ended it")
    assert sum(isinstance(one, Closed) for one in told) == 1


@pytest.mark.parametrize("then", ["close", "reset"])
def test_a_stream_that_breaks_is_closed_and_what_came_is_told(both: Callable[..., Both], then: str) -> None:
    told = both(says(HEAD, chunk(b"one\n"), b"5\r\ntw", then=then)).stream(until=99)
    assert isinstance(told[0], Response)
    assert isinstance(told[-1], Closed)
    assert told[-1].why


def test_a_stream_may_be_silent_for_longer_than_its_head_may_take(both: Callable[..., Both]) -> None:
    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        await asyncio.sleep(0.2)  # four times the patience
        writer.write(chunk(b"late\n"))

    told = both(behave).stream(until=2, timeout=milliseconds(50))
    assert told[1] == Chunk(b"late\n")


def test_a_stream_whose_head_does_not_come_is_unanswered(both: Callable[..., Both]) -> None:
    [told] = both(says()).stream(timeout=milliseconds(50))
    assert isinstance(told, Unanswered)


def test_a_stream_that_is_refused_is_one_answer(both: Callable[..., Both]) -> None:
    [told] = both(says(b"HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone")).stream()
    assert told == Response(410, {"content-length": "4"}, b"gone")


def test_what_is_abandoned_is_not_told(both: Callable[..., Both]) -> None:
    it = both(says(HEAD, chunk(b"one\n")))
    it.stream(until=2)
    it.transport.abandon(Number(1))
    before = len(it.told)
    it.ask()
    assert len(it.told) == before


# ── what is over is over ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def left_over() -> Iterator[Callable[[], list[object]]]:
    """What only a collection of garbage would free; with it go the buffers of the connection it belonged to."""

    def there() -> list[object]:
        return [one for one in gc.get_objects() if isinstance(one, (aiohttp.ClientResponse, aiohttp.ClientError))]

    gc.collect()
    gc.disable()
    before = there()
    yield lambda: [one for one in there() if not any(one is old for old in before)]
    gc.enable()


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    "behave",
    [
        says(then="close"),
        says(then="reset"),
        says(HEAD, chunk(b"one\n"), b"5\r\ntw", then="close"),
        says(HEAD, chunk(b"one\n"), b"5\r\ntw", then="reset"),
        says(b"\x16\x03\x01 this is no HTTP\r\n\r\n", then="close"),
    ],
)
def test_a_connection_that_has_broken_is_forgotten_without_a_collection_of_garbage(
    both: Callable[..., Both], left_over: Callable[[], list[object]], behave: Behaviour, streams: bool
) -> None:
    it = both(behave)
    for _ in range(3):
        if streams:
            it.stream(until=99)
        else:
            it.ask()
    it.told.clear()
    assert left_over() == []


def test_neither_is_one_that_was_refused_kept(
    both: Callable[..., Both], left_over: Callable[[], list[object]]
) -> None:
    it = both(says(OK))
    it.server.close()
    it.ask()
    assert left_over() == []


# ── credentials that are not accepted any more ───────────────────────────────────────────────────────────────


class Rotating:
    """A token that is another one as soon as it is doubted."""

    def __init__(self) -> None:
        self.number = 1

    async def proof(self) -> Proof:
        return Proof(token=f"token-{self.number}")

    def distrust(self) -> None:
        self.number += 1


def accepts(token: bytes, answer: bytes) -> Behaviour:
    async def behave(request: bytes, writer: asyncio.StreamWriter) -> None:
        good = b"Authorization: Bearer " + token + b"\r\n" in request
        writer.write(answer if good else b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")

    return behave


@pytest.mark.parametrize("streams", [False, True])
def test_after_a_401_it_is_tried_once_more_with_what_is_there_now(both: Callable[..., Both], streams: bool) -> None:
    it = both(accepts(b"token-2", HEAD if streams else OK), access=lambda url: Access(url, Rotating()))
    got = it.stream()[0] if streams else it.ask("POST", body=b"{}")
    assert isinstance(got, Response)
    assert got.status == 200
    assert len(it.server.requests) == 2


def test_but_only_once(both: Callable[..., Both]) -> None:
    it = both(accepts(b"none", OK), access=lambda url: Access(url, Rotating()))
    assert it.ask().status == 401  # type: ignore[union-attr]
    assert len(it.server.requests) == 2
