"""Requests as values, what comes back as values, and who waits for it.

Everything that talks to the API server here is a state machine: it is told what came back and what time it is, and
says what to ask next.  It holds no socket and reads no clock, so the same code runs against a real API server, in a
simulated cluster on virtual time, and in a test that cuts a stream at any byte.

A host carries requests out and keeps three promises:

- Every request is answered: by one Response, or by one Unanswered no later than `timeout` after it was asked.
- A request that `streams` and is answered 200 comes in pieces: a Response with an empty body, Chunks as they
  arrive, cut anywhere, and one Closed.  Any other status comes whole, as one Response.
- What has been abandoned need not be answered; a late answer does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NewType, Protocol, TypeAlias

from msgspec import Struct

from kubesched.api.time import Duration, Instant, seconds
from kubesched.core.messages import Event

Number = NewType("Number", int)

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
ANSWER_BYTES_MAX = 16 << 20

Level: TypeAlias = Literal["info", "warning", "error"]


class Luck(Protocol):
    """Where jitter comes from: `random.Random` is one."""

    def random(self) -> float:
        """A number from 0 up to, not including, 1."""
        ...


# ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Request(Struct, frozen=True, kw_only=True):
    """One HTTP request.  Path and query are plain text; whoever sends them quotes them.

    Args:
        path: at the API server; for an extender, the verb to put behind its prefix.
        content_type: of the body, where there is one.
        streams: answered in pieces, for as long as it takes.
        timeout: until the whole answer must be there, or, of a stream, its head.
        bytes_max: a whole answer longer than this is not read to its end: Unanswered says so.
        extender: whom to ask instead of the API server, by its number in the configuration.
        waited: how long it had to wait for its turn; None where there are no turns.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    streams: bool = False
    timeout: Duration = seconds(30)
    bytes_max: int = ANSWER_BYTES_MAX
    extender: int | None = None
    waited: Duration | None = None


class Remark(Struct, frozen=True):
    """Something a person may want to know; never needed to go on.

    Args:
        about: a kind (`Pod`), an effect (`Bind`), or `Lease`.
        what: one word to count by: `relisted`, `duplicate`, `unreadable`, `forbidden` …
        text: a sentence.
    """

    level: Level
    about: str
    what: str
    text: str = ""


class Actions(Struct):
    """What a host is to do now: carry out, give up, hand to the core, write down."""

    requests: list[tuple[Number, Request]]
    abandoned: list[Number]
    events: list[Event]
    remarks: list[Remark]


# ── in ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Response(Struct, frozen=True):
    """An answer; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""


class Chunk(Struct, frozen=True):
    """The next bytes of a stream."""

    data: bytes


class Closed(Struct, frozen=True):
    """A stream has ended, for whatever reason."""

    why: str = ""


class Unanswered(Struct, frozen=True):
    """There will be no answer.

    Args:
        applied: `no` only where the request surely never reached the server: no connection could be made.
    """

    why: str
    applied: Literal["no", "unknown"] = "unknown"


Reply: TypeAlias = Response | Chunk | Closed | Unanswered
Heir: TypeAlias = Callable[[Any, Instant], None]  # gets each Reply to a request, and when it came


# ── between ──────────────────────────────────────────────────────────────────────────────────────────────────


class Exchange:
    """Numbers requests, remembers who waits for their answers, and collects what a host must do."""

    def __init__(self) -> None:
        self._last = 0
        self._open: dict[Number, tuple[Request, Heir]] = {}
        self._actions = Actions([], [], [], [])

    def __len__(self) -> int:
        """How many requests are under way."""
        return len(self._open)

    def send(self, request: Request, heir: Heir) -> Number:
        """Ask something; `heir` is told everything that comes back."""
        self._last += 1
        number = Number(self._last)
        self._open[number] = (request, heir)
        self._actions.requests.append((number, request))
        return number

    def abandon(self, number: Number) -> None:
        """Whatever comes back is of no interest any more."""
        if self._open.pop(number, None) is not None:
            self._actions.abandoned.append(number)

    def tell(self, event: Event) -> None:
        self._actions.events.append(event)

    def remark(self, level: Level, about: str, what: str, text: str = "") -> None:
        self._actions.remarks.append(Remark(level, about, what, text))

    def receive(self, number: Number, reply: Reply, now: Instant) -> None:
        """Hand what came back to whoever asked.  Late answers to what was abandoned go nowhere."""
        waiting = self._open.get(number)
        if waiting is None:
            return
        request, heir = waiting
        more = isinstance(reply, Chunk) or (isinstance(reply, Response) and request.streams and reply.status == 200)
        if not more:
            del self._open[number]
        heir(reply, now)

    def take(self) -> Actions:
        """Everything to be done since the last time."""
        actions, self._actions = self._actions, Actions([], [], [], [])
        return actions
