"""The proxy breaks what it is asked to break, and nothing else: against a small server, without TLS and with."""

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.realserver import pki
from tests.realserver.faults import (
    BlackHole,
    Cut,
    CutResponse,
    Delay,
    HoldRequest,
    LoseRequest,
    LoseResponse,
    Refuse,
    Reply,
    Throttle,
)
from tests.realserver.tcpproxy import TcpProxy, Tls

AGES = 30.0     # longer than any of this takes; a test that waits so long has failed


class Echo:
    """Answers each HTTP request with its own body, and remembers what reached it; says `ready` to other bytes."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.bodies: list[str] = []
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self._threads = [threading.Thread(target=self._accept)]
        self._sockets: list[socket.socket] = []
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        for thread in self._threads[1:]:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(plain,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, plain: socket.socket) -> None:
        try:
            with self._tls.wrap_socket(plain, server_side=True) if self._tls else plain as connection:
                received = b""
                while data := connection.recv(65536):
                    received += data
                    while complete := re.match(rb"(.*?\r\n\r\n)(.*)", received, re.DOTALL):
                        length = int(re.search(rb"Content-Length: (\d+)", complete[1])[1])  # type: ignore[index]
                        if len(complete[2]) < length:
                            break
                        body, received = complete[2][:length], complete[2][length:]
                        self.bodies.append(body.decode())
                        connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s" % (length, body))
        except OSError:
            pass        # the proxy resets connections; that is what is tested


@pytest.fixture
def plain() -> Iterator[tuple[TcpProxy, Echo]]:
    server = Echo()
    with TcpProxy(server.address) as proxy:
        yield proxy, server
    server.close()


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[TcpProxy, Echo, ssl.SSLContext]]:
    authority = pki.Authority("proxy-test")
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(authority.certificate)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(*authority.serving().write(tmp_path, "serving"))
    trust = ssl.create_default_context(cafile=str(trusted))
    server = Echo(serving)
    with TcpProxy(server.address, Tls(serving, trust)) as proxy:
        yield proxy, server, trust
    server.close()


def connect(proxy: TcpProxy, trust: ssl.SSLContext | None = None) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", proxy.port), timeout=AGES)
    return trust.wrap_socket(connection, server_hostname="localhost") if trust else connection


def ask(connection: socket.socket, body: str, path: str = "/") -> None:
    connection.sendall(f"POST {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


def answer(connection: socket.socket, length: int) -> str:
    """Receive until so many bytes of body are there."""
    received = b""
    while len(received.partition(b"\r\n\r\n")[2]) < length:
        data = connection.recv(65536)
        if not data:
            raise EOFError(received.decode())
        received += data
    return received.partition(b"\r\n\r\n")[2].decode()


def everything(connection: socket.socket) -> bytes:
    """Receive until the connection ends, by whatever end."""
    received = b""
    try:
        while data := connection.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return received


def turned_away(proxy: TcpProxy) -> bool:
    """Whether a connection ends with nothing said; a reset may come as early as within connect()."""
    try:
        with connect(proxy) as connection:
            return everything(connection) == b""
    except ConnectionResetError:
        return True


# ── faults on the link ───────────────────────────────────────────────────────────────────────────────


def test_bytes_pass_both_ways(plain: tuple[TcpProxy, Echo]) -> None:
    proxy, server = plain
    long = "x" * 300_000
    with connect(proxy) as connection:
        ask(connection, long)
        assert answer(connection, len(long)) == long
        ask(connection, "again")
        assert answer(connection, 5) == "again"
    assert server.bodies == [long, "again"]


def test_a_cut_passes_exactly_so_many_bytes_down_and_then_resets(plain: tuple[TcpProxy, Echo]) -> None:
    proxy, _ = plain
    order = proxy.impose(Cut(after=20, direction="down"), times=1)
    with connect(proxy) as connection:
        ask(connection, "hello")
        order.wait()
        with pytest.raises(ConnectionResetError):
            while connection.recv(64):
                pass
    with connect(proxy) as connection:      # healed by itself
        ask(connection, "hello")
        assert answer(connection, 5) == "hello"


def test_a_polite_cut_shows_the_client_exactly_so_many_bytes(plain: tuple[TcpProxy, Echo]) -> None:
    proxy, _ = plain
    proxy.impose(Cut(after=20, direction="down", ending="close"))
    with connect(proxy) as connection:
        ask(connection, "hello")
        assert everything(connection) == b"HTTP/1.1 201 Created"


def test_a_cut_on_the_way_up_keeps_a_request_from_the_server(plain: tuple[TcpProxy, Echo]) -> None:
    proxy, server = plain
    order = proxy.impose(Cut(after=30, direction="up"), times=1)
    with connect(proxy) as connection:
        ask(connection, "hello")
        assert everything(connection) == b""
    assert (order.count, server.bodies) == (1, [])


def test_a_cut_counts_from_the_moment_it_is_asked_for(plain: tuple[TcpProxy, Echo]) -> None:
    proxy, _ = plain
    with connect(proxy) as connection:
        ask(connection, "first")
        assert answer(connection, 5) == "first"
        proxy.impose(Cut(after=12, direction="down", ending="close"))
        ask(connection, "second")
        assert everything(connection) == b"HTTP/1.1 201"


def test_a_hanging_cut_leaves_the_client_waiting(plain: tuple[TcpProxy, Echo]) -> None:
    proxy, _ = plain
    order = proxy.impose(Cut(after=5, direction="down", ending="hang"))
    with connect(proxy) as connection:
        ask(connection, "hello")
        order.wait()
        assert connection.recv(5, socket.MSG_WAITALL) == b"HTTP/"
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):
            connection.recv(1)


def test_a_black_hole_holds_everything_until_it_heals(plain: tuple[TcpProxy, Echo]) -> None:
    proxy, server = plain
    with connect(proxy) as connection:
        order = proxy.impose(BlackHole())
        ask(connection, "hello")
        order.wait()
        assert server.bodies == []
        proxy.heal()
        assert answer(connection, 5) == "hello"


def test_a_black_hole_in_one_direction_lets_the_other_pass(plain: tuple[TcpProxy, Echo]) -> None:
    proxy, server = plain
    with connect(proxy) as connection:
        order = proxy.impose(BlackHole(("down",)))
        ask(connection, "hello")
        order.wait()
        assert server.bodies == ["hello"]
        proxy.heal()
        assert answer(connection, 5) == "hello"


def test_delayed_and_throttled_bytes_arrive_whole(plain: tuple[TcpProxy, Echo]) -> None:
    proxy, _ = plain
    for fault in (Delay(seconds=0.01), Throttle(bytes_per_second=10_000)):
        proxy.impose(fault)
        with connect(proxy) as connection:
            ask(connection, "hello")
            assert answer(connection, 5) == "hello"


def test_refused_connections_are_reset_so_many_times(plain: tuple[TcpProxy, Echo]) -> None:
    proxy, _ = plain
    order = proxy.impose(Refuse(), times=2)
    for count in (1, 2):
        assert turned_away(proxy)
        assert order.count == count
    with connect(proxy) as connection:
        ask(connection, "third")
        assert answer(connection, 5) == "third"


def test_open_connections_can_be_dropped(plain: tuple[TcpProxy, Echo]) -> None:
    proxy, _ = plain
    with connect(proxy) as connection:
        ask(connection, "hello")
        assert answer(connection, 5) == "hello"
        assert proxy.drop_connections() == 1
        with pytest.raises(ConnectionResetError):
            connection.recv(1)


def test_a_server_that_is_down_looks_down(tmp_path: Path) -> None:
    server = Echo()
    server.close()
    with TcpProxy(server.address) as proxy:
        assert turned_away(proxy)


def test_requests_cannot_be_struck_where_they_cannot_be_seen(plain: tuple[TcpProxy, Echo]) -> None:
    with pytest.raises(AssertionError, match="must end TLS"):
        plain[0].on("^POST", LoseRequest())


# ── faults on a request ──────────────────────────────────────────────────────────────────────────────


def test_a_lost_response_was_done_by_the_server(tls: tuple[TcpProxy, Echo, ssl.SSLContext]) -> None:
    proxy, server, trust = tls
    order = proxy.on(r"^POST /bind ", LoseResponse())
    with connect(proxy, trust) as connection:
        ask(connection, "other", "/else")
        assert answer(connection, 5) == "other"
        ask(connection, "mine", "/bind")
        assert everything(connection) == b""
    assert order.wait_for_answer(timeout=AGES) == 201
    assert server.bodies == ["other", "mine"]
    assert proxy.requests == ["POST /else", "POST /bind"]


def test_a_lost_request_never_reaches_the_server(tls: tuple[TcpProxy, Echo, ssl.SSLContext]) -> None:
    proxy, server, trust = tls
    order = proxy.on(r"secret-word", LoseRequest("close"))       # found in the body as well
    with connect(proxy, trust) as connection:
        ask(connection, "a secret-word in it")
        assert everything(connection) == b""
    assert (order.count, server.bodies) == (1, [])


@pytest.mark.parametrize("fault", [LoseResponse("hang"), LoseRequest("hang")])
def test_a_client_left_hanging_can_give_up_and_try_again(
    tls: tuple[TcpProxy, Echo, ssl.SSLContext], fault: LoseResponse | LoseRequest
) -> None:
    proxy, _, trust = tls
    order = proxy.on("^POST", fault)
    with connect(proxy, trust) as connection:
        ask(connection, "first")
        order.wait(timeout=AGES)
        connection.setblocking(False)
        with pytest.raises(ssl.SSLWantReadError):
            connection.recv(1)
    with connect(proxy, trust) as connection:
        ask(connection, "second")
        assert answer(connection, 6) == "second"


def test_a_held_request_reaches_the_server_when_released_though_its_client_is_gone(
    tls: tuple[TcpProxy, Echo, ssl.SSLContext]
) -> None:
    proxy, server, trust = tls
    order = proxy.on("^POST", HoldRequest())
    with connect(proxy, trust) as connection:
        ask(connection, "late")
        assert everything(connection) == b""
    with connect(proxy, trust) as connection:
        ask(connection, "early")
        assert answer(connection, 5) == "early"

    proxy.release(order)

    assert order.wait_for_answer(timeout=AGES) == 201
    assert server.bodies == ["early", "late"]


def test_a_request_held_with_its_client_waiting_is_answered_late(
    tls: tuple[TcpProxy, Echo, ssl.SSLContext]
) -> None:
    proxy, server, trust = tls
    order = proxy.on("^POST", HoldRequest("wait"))
    with connect(proxy, trust) as connection:
        ask(connection, "patience")
        order.wait(timeout=AGES)
        assert server.bodies == []
        proxy.release(order)
        assert answer(connection, 8) == "patience"


def test_a_response_is_cut_in_the_middle(tls: tuple[TcpProxy, Echo, ssl.SSLContext]) -> None:
    proxy, _, trust = tls
    order = proxy.on("^POST", CutResponse(after=len("HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhel"),
                                          ending="close"))
    with connect(proxy, trust) as connection:
        ask(connection, "hello")
        assert everything(connection).endswith(b"\r\n\r\nhel")
    assert order.answers == [201]


def test_the_proxy_answers_in_the_servers_place_so_many_times(tls: tuple[TcpProxy, Echo, ssl.SSLContext]) -> None:
    proxy, server, trust = tls
    order = proxy.on("^POST", Reply(429, b"slow", (("Retry-After", "1"),)), times=2)
    with connect(proxy, trust) as connection:
        for expected in ("slow", "slow", "fast"):
            ask(connection, "fast")
            assert answer(connection, 4) == expected
    assert (order.count, server.bodies) == (2, ["fast"])


def test_a_forgotten_order_strikes_no_more(tls: tuple[TcpProxy, Echo, ssl.SSLContext]) -> None:
    proxy, _, trust = tls
    order = proxy.on("^POST", LoseRequest(), times=None)
    proxy.forget(order)
    with connect(proxy, trust) as connection:
        ask(connection, "hello")
        assert answer(connection, 5) == "hello"


def test_chunked_requests_pass_whole(tls: tuple[TcpProxy, Echo, ssl.SSLContext]) -> None:
    proxy, server, trust = tls
    order = proxy.on("^POST .*last words", LoseRequest())
    with connect(proxy, trust) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        connection.sendall(b"A\r\nlast words\r\n0\r\n\r\n")
        assert everything(connection) == b""
    assert (order.count, server.bodies) == (1, [])
