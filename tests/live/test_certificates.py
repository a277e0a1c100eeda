"""Whoever cannot prove to be the API server hears nothing from us: no request, and no token."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from tests.realserver.pki import Authority, Pair, _named, _pem

from kubesched.api.time import seconds
from kubesched.live.access import LOOK_AGAIN_AFTER, Access
from kubesched.live.certificate import load_from_memory
from kubesched.live.running import repeat
from kubesched.live.transport import HttpTransport
from kubesched.wire.exchange import Request, Response, Unanswered

OURS, OTHER = Authority("the cluster's"), Authority("somebody else's")
ITSELF = Authority("127.0.0.1")
BAD: dict[str, tuple[Pair, str]] = {
    "of another authority": (OTHER.serving(), "unable to get local issuer certificate"),
    "for another host": (OURS.serving(["elsewhere.example"]), "IP address mismatch"),
    "expired": (OURS.serving(expired=True), "certificate has expired"),
    "signed by itself": (Pair(ITSELF.certificate, _pem(ITSELF._key)), "self-signed certificate"),
    "with a common name alone": (
        OURS._issue(_named("127.0.0.1"), ExtendedKeyUsageOID.SERVER_AUTH, False),
        "IP address mismatch",
    ),
    "of a client": (OURS.client("127.0.0.1"), "unsuitable certificate purpose"),
}


class Server:
    """Behind TLS, on 127.0.0.1; says yes to everything it hears."""

    def __init__(self, pair: Pair) -> None:
        self.loop = asyncio.new_event_loop()
        self.heard: list[bytes] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._server = self.loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context(pair))
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self._transports: list[HttpTransport] = []

    def _context(self, pair: Pair) -> ssl.SSLContext:
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_from_memory(self._tls, pair.certificate + pair.key)
        return self._tls

    def replace(self, pair: Pair) -> None:
        """Another certificate from now on, and new connections."""
        load_from_memory(self._tls, pair.certificate + pair.key)
        for writer in self._writers:
            writer.close()
        self.loop.run_until_complete(asyncio.sleep(0.01))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                self.heard.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    def client(self, ca: Path | bytes = OURS.certificate, **how: object) -> Callable[[], Response | Unanswered]:
        """Somebody who asks it something."""
        access = Access(f"https://127.0.0.1:{self.port}", ca=ca, **how)  # type: ignore[arg-type]
        transport = HttpTransport(access, self.loop)
        self._transports.append(transport)
        request = Request(method="GET", path="/version", timeout=seconds(30))
        return lambda: self.loop.run_until_complete(transport.ask(request))

    def close(self) -> None:
        async def end() -> None:
            for transport in self._transports:
                await transport.close()
            self._server.close()
            here = asyncio.current_task()
            tasks = [task for task in asyncio.all_tasks() if task is not here]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.loop.run_until_complete(end())
        self.loop.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Pair], Server]]:
    made: list[Server] = []

    def make(pair: Pair) -> Server:
        made.append(Server(pair))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("which", BAD)
def test_a_server_whose_certificate_is_not_its_own_hears_nothing(serve: Callable[[Pair], Server], which: str) -> None:
    pair, why = BAD[which]
    server = serve(pair)
    got = server.client()()
    assert isinstance(got, Unanswered)
    assert got.applied == "no"
    assert "cannot prove who it is" in got.why
    assert why in got.why
    assert server.heard == []


def test_one_that_is_as_it_should_be_is_asked(serve: Callable[[Pair], Server]) -> None:
    assert isinstance(serve(OURS.serving()).client()(), Response)


def test_the_name_it_must_have_may_be_said(serve: Callable[[Pair], Server]) -> None:
    server = serve(OURS.serving(["elsewhere.example"]))
    assert isinstance(server.client(server_name="elsewhere.example")(), Response)


def test_an_authority_that_is_replaced_on_disk_is_taken_up_without_a_restart(
    serve: Callable[[Pair], Server], tmp_path: Path
) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(OURS.certificate)
    server = serve(OURS.serving())
    ask = server.client(file)
    assert isinstance(ask(), Response)
    file.write_bytes(OTHER.certificate)
    server.replace(OTHER.serving())
    assert isinstance(ask(), Response), "the first who was refused has looked again"


def test_the_one_it_replaced_is_trusted_no_more(serve: Callable[[Pair], Server], tmp_path: Path) -> None:
    file, now = tmp_path / "ca.crt", 0.0
    file.write_bytes(OURS.certificate)
    server = serve(OURS.serving())
    ask = server.client(file, clock=lambda: now)
    assert isinstance(ask(), Response)
    file.write_bytes(OTHER.certificate)
    now += LOOK_AGAIN_AFTER
    assert isinstance(ask(), Unanswered)


def test_that_nobody_checks_is_said_again_every_hour() -> None:
    said: list[float] = []
    waits: list[tuple[float, Callable[[], None]]] = []

    class Loop:
        def call_later(self, delay: float, action: Callable[..., None], *arguments: object) -> None:
            waits.append((delay, lambda: action(*arguments)))

    repeat(Loop(), 3600.0, lambda: said.append(len(said)))  # type: ignore[arg-type]
    for _ in range(2):
        [(delay, action)] = waits
        assert delay == 3600.0
        waits.clear()
        action()
    assert len(said) == 3
