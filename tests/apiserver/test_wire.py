"""Bytes that are hardly HTTP, on a real port: each is answered with a refusal or a closed connection, nothing is said
of our insides, and other clients do not notice."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.conftest import TOKEN, Served, pod

PODS = "/api/v1/namespaces/default/pods"
PATIENCE = 20  # seconds; a server that hangs is a failure, and this is how it shows
LONGEST = 1 << 22


class Wire:
    """Connections to a served API server, bytes in and bytes out."""

    def __init__(self, served: Served) -> None:
        address = urlsplit(served.url)
        assert address.hostname is not None
        assert address.port is not None
        self.address = (address.hostname, address.port)
        self.trust = ssl.create_default_context(cafile=str(served.ca))

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(self.address, timeout=PATIENCE)
        try:
            return self.trust.wrap_socket(plain, server_hostname=self.address[0])
        except OSError:
            plain.close()
            raise

    def say(self, raw: bytes) -> bytes:
        """Everything that comes back until the server has said all it has to say."""
        with self.connect() as wire:
            try:
                wire.sendall(raw)
                wire.shutdown(socket.SHUT_WR)
            except OSError:
                return b""  # it had heard enough
            heard = bytearray()
            try:
                while more := wire.recv(1 << 16):
                    heard += more
                    assert len(heard) < LONGEST
            except (ConnectionError, ssl.SSLError):
                pass
            return bytes(heard)


class Neighbour:
    """A client that minds its own business on one connection, and a watch on another."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire.connect()
        self._answers = self._wire.makefile("rb")
        self._watching = wire.connect()
        self._watching.sendall(_request("GET", f"{PODS}?watch=1"))
        self._events = self._watching.makefile("rb")
        self._made = 0
        while self._events.readline() not in (b"\r\n", b""):
            pass

    def is_well(self) -> None:
        """A pod is made, and the watch tells of it."""
        self._made += 1
        name = f"neighbour-{self._made}"
        status, _ = self.ask("POST", PODS, json.dumps(pod(name)).encode())
        assert status == 201
        while name not in (line := self._events.readline().decode()):
            assert line, "the watch has ended"

    def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        self._wire.sendall(_request(method, path, body))
        status = int(self._answers.readline().split()[1])
        length = 0
        while (line := self._answers.readline().lower()) not in (b"\r\n", b""):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return status, self._answers.read(length)

    def close(self) -> None:
        for each in (self._answers, self._events, self._wire, self._watching):
            each.close()


def _request(method: str, path: str, body: bytes = b"", *more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: kubernetes", f"Authorization: Bearer {TOKEN}", *more]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.fixture
def wire(served: Served) -> Wire:
    return Wire(served)


@pytest.fixture
def neighbour(wire: Wire) -> Iterator[Neighbour]:
    made = Neighbour(wire)
    yield made
    made.close()


def refused(heard: bytes) -> bool:
    """Whether this is a refusal, and one that says nothing of our insides."""
    assert b"Traceback" not in heard
    assert b'File "' not in heard
    statuses = [int(part[:3]) for part in heard.split(b"HTTP/1.1 ")[1:]]
    assert all(status < 500 for status in statuses), heard[:500]
    return not statuses or statuses[-1] >= 400


AUTH = f"Authorization: Bearer {TOKEN}"
MALFORMED = {
    "nothing": b"",
    "not HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "an empty line for ever": b"\r\n" * 2000,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no version": b"GET /api/v1/pods\r\n\r\n",
    "another version": b"GET /version HTTP/9.9\r\nHost: x\r\n\r\n",
    "a strange method": f"EXPLODE {PODS} HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n\r\n".encode(),
    "a method that is no token": b"GE\x00T / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a long path": f"GET /{'a' * 20_000} HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n\r\n".encode(),
    "a long header": f"GET /version HTTP/1.1\r\nHost: x\r\nX: {'a' * 100_000}\r\n\r\n".encode(),
    "many headers": b"GET /version HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(20_000)) + b"\r\n",
    "a header without a colon": f"GET {PODS} HTTP/1.1\r\nHost: x\r\nnocolon\r\n{AUTH}\r\n\r\n".encode(),
    "a header with a null": f"GET {PODS} HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n{AUTH}\r\n\r\n".encode(),
    "a length that is no number": _request("POST", PODS, b"", "Content-Length: ten") + b"{}",
    "a negative length": _request("POST", PODS, b"", "Content-Length: -1") + b"{}",
    "two lengths": _request("POST", PODS, b"", "Content-Length: 2", "Content-Length: 3") + b"{} ",
    "a length and chunks": _request("POST", PODS, b"{}", "Transfer-Encoding: chunked"),
    "an absurd length": _request("POST", PODS, b"", "Content-Length: 99999999999999") + b"{}",
    "less than was promised": _request("POST", PODS, b"", "Content-Length: 100") + b"{}",
    "a chunk that is no number": _request("POST", PODS, b"", "Transfer-Encoding: chunked") + b"xyz\r\n{}\r\n0\r\n\r\n",
    "a chunk without an end": _request("POST", PODS, b"", "Transfer-Encoding: chunked") + b"ff\r\n{}",
    "gzip that is none": _request("POST", PODS, b"notgzip", "Content-Encoding: gzip"),
    "deflate that is none": _request("POST", PODS, b"notdeflate", "Content-Encoding: deflate"),
    "a wrong token": b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
    "broken escapes": f"GET {PODS}/%zz%ff?%zz=%ff HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n\r\n".encode(),
    "a path upwards": f"GET /api/v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\n{AUTH}\r\n\r\n".encode(),
    "bytes in the path": b"GET /api/v1/\xff\xfe\x80 HTTP/1.1\r\nHost: x\r\n" + AUTH.encode() + b"\r\n\r\n",
    "an upgrade": _request("GET", PODS + "/x/exec", b"", "Connection: Upgrade", "Upgrade: websocket"),
    "more than may be": _request("POST", PODS, b'{"a":"' + b"x" * (4 << 20) + b'"}'),
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED)
def test_what_is_malformed_is_refused_and_hurts_nobody(wire: Wire, neighbour: Neighbour, raw: bytes) -> None:
    assert refused(wire.say(raw))
    neighbour.is_well()


GOOD = _request("POST", PODS, json.dumps(pod("drawn")).encode(), "Connection: close")
PIECES = st.sampled_from(
    [b"\r\n", b"\r\n\r\n", b"\x00", b"\xff", b" ", b":", b"GET ", b"HTTP/1.1", b"chunked", b"Content-Length: 7\r\n",
     b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"{", b"%00", b"?watch=1", b"gzip"]
)  # fmt: skip
EDITS = st.lists(
    st.tuples(st.integers(0, len(GOOD)), st.integers(0, 12), st.one_of(PIECES, st.binary(max_size=6))),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
def test_a_request_with_bytes_changed_is_answered_or_refused(wire: Wire, neighbour: Neighbour) -> None:
    """A request in which some bytes are gone and others have come is answered as it can be, and nobody is hurt."""

    @settings(max_examples=150)
    @given(edits=EDITS)
    def holds(edits: list[tuple[int, int, bytes]]) -> None:
        raw = GOOD
        for at, gone, come in edits:
            raw = raw[:at] + come + raw[at + gone :]
        refused(wire.say(raw))

    holds()
    neighbour.is_well()


def test_who_goes_in_the_middle_is_missed_by_nobody(wire: Wire, neighbour: Neighbour) -> None:
    for cut in (1, 40, len(GOOD) - 1):
        leaving = wire.connect()
        leaving.sendall(GOOD[:cut])
        leaving.close()
    with socket.create_connection(wire.address, timeout=PATIENCE) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")  # where TLS is spoken
    neighbour.is_well()


def test_a_refusal_says_so_in_a_status(neighbour: Neighbour) -> None:
    status, body = neighbour.ask("POST", PODS, b"{")
    assert (status, json.loads(body)["reason"]) == (400, "BadRequest")
