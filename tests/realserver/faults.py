"""What the proxy can be asked to do to a connection or a request, as values, and the order that keeps count of it."""

import asyncio
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Direction = Literal["up", "down"]               # up: from client to server
Ending = Literal["reset", "close", "hang"]      # what the client sees at the end of its connection

# ── faults on the link ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Cut:
    """End each connection once `after` more bytes have passed in one direction."""

    after: int
    direction: Direction = "down"
    ending: Ending = "reset"


@dataclass(frozen=True)
class Delay:
    """Hold every chunk back for a while, in both directions."""

    seconds: float


@dataclass(frozen=True)
class Throttle:
    """Let so many bytes a second through in one direction, as a slow peer would."""

    bytes_per_second: int
    direction: Direction = "up"


@dataclass(frozen=True)
class BlackHole:
    """Let nothing through in these directions, with every connection open; on healing, what was held goes on.

    Connections are still accepted, as the kernel does it for us: the first byte is what never gets an answer.
    """

    directions: tuple[Direction, ...] = ("up", "down")


@dataclass(frozen=True)
class Refuse:
    """Reset every new connection at once."""


LinkFault = Cut | Delay | Throttle | BlackHole | Refuse

# ── faults on a request ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class LoseResponse:
    """The server does it and answers; the client never hears."""

    ending: Ending = "reset"


@dataclass(frozen=True)
class LoseRequest:
    """The server never hears of it."""

    ending: Ending = "reset"


@dataclass(frozen=True)
class HoldRequest:
    """The client is given up at once; the request reaches the server when the order is released.

    This is the request that still sits in a queue somewhere when the client has long asked what became of it. With
    `wait` the client is not given up: it gets its answer, late.
    """

    ending: Ending | Literal["wait"] = "reset"


@dataclass(frozen=True)
class CutResponse:
    """Pass so many bytes of the response, head included, then end the connection."""

    after: int
    ending: Ending = "reset"


@dataclass(frozen=True)
class Reply:
    """Answer in the server's place; the server never hears of it."""

    status: int
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)


RequestFault = LoseResponse | LoseRequest | HoldRequest | CutResponse | Reply


# ── orders ───────────────────────────────────────────────────────────────────────────────────────────


class Order:
    """A fault asked for: how often it struck, and what the server answered to requests the client lost.

    It is counted before the client can notice, so that a test which saw its connection end may look here at once.
    """

    def __init__(self, fault: LinkFault | RequestFault, pattern: re.Pattern[bytes] | None, times: int | None) -> None:
        self.fault = fault
        self.pattern = pattern
        self.left = times
        self.count = 0
        self.answers: list[int] = []
        self._changed = threading.Condition()
        self.released = asyncio.Event()

    def wait(self, count: int = 1, *, timeout: float = 30) -> None:
        """Wait until it has struck `count` times."""
        self._wait(lambda: self.count >= count, timeout, f"struck {count} times")

    def wait_for_answer(self, *, timeout: float = 30) -> int:
        """Wait until the server has answered a request whose client is gone; return that status."""
        self._wait(lambda: bool(self.answers), timeout, "an answer")
        return self.answers[-1]

    def take(self) -> None:
        """Use up one of the times it may strike; it counts as struck when the fault has happened."""
        if self.left is not None:
            self.left -= 1

    def strike(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()

    def answered(self, status: int) -> None:
        with self._changed:
            self.answers.append(status)
            self._changed.notify_all()

    def _wait(self, so: Callable[[], bool], timeout: float, what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(so, timeout):
                raise AssertionError(f"{self.fault}: waited {timeout:.0f} s for {what}; struck {self.count} times, "
                                     f"server answers {self.answers}")
