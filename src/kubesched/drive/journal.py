"""The journal: every event a core was given, when, and what it answered.  JSON lines, to be read by people too.

    {"journal": 1, "seed": 7, "config": {…}}                        the head: how to build the same core
    {"n": 1, "at": "2026-01-01T00:00:00.000000000Z", "event": {…}}  written before the event is folded in
    {"n": 1, "effects": [{…}]}                                      written after; absent where there were none

`replay` folds the events into a fresh core and compares what it answers.  A file that ends in the middle of a
line is what a crash leaves: everything before counts.  Any other damage is an error that names the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec
from msgspec import Struct

from kubesched.api.time import Instant, format_nano, parse_rfc3339
from kubesched.core.core import Core
from kubesched.core.messages import AnyEffect, Event
from kubesched.framework.errors import KubeschedError

VERSION = 1


class JournalError(KubeschedError):
    """A journal that cannot be used; says which file and line."""


class Head(Struct, frozen=True):
    """How to build the core that wrote the journal."""

    journal: int = VERSION
    seed: int = 0
    config: dict[str, Any] = {}
    wait_for: tuple[str, ...] = ()


class Entry(Struct, frozen=True):
    """One event, and what was answered; None where the journal does not say."""

    number: int
    at: Instant
    event: Event
    effects: bytes | None


class _EventLine(Struct, frozen=True):
    n: int
    at: str
    event: Event


class _Line(Struct, frozen=True):
    n: int
    event: msgspec.Raw = msgspec.Raw()  # empty where the line is not one of an event
    effects: msgspec.Raw = msgspec.Raw()


_encode = msgspec.json.Encoder(order="sorted").encode


class Journal:
    """Writes a journal, line by line.  Use as a context manager, or close it."""

    def __init__(self, path: Path | str, head: Head) -> None:
        self.path = Path(path)
        self._file: IO[bytes] = self.path.open("wb")
        self._number = 0
        self._write(_encode(head))

    def append(self, now: Instant, event: Event) -> None:
        """Write an event down, before anything is made of it."""
        self._number += 1
        self._write(_encode(_EventLine(self._number, format_nano(now), event)))

    def answer(self, effects: Sequence[AnyEffect]) -> None:
        """Write down what was made of the latest event."""
        if effects:
            self._write(b'{"n":%d,"effects":%s}' % (self._number, encode_effects(effects)))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: bytes) -> None:
        self._file.write(line + b"\n")


def encode_effects(effects: Sequence[AnyEffect]) -> bytes:
    """Effects as a journal writes them; equal effects are equal bytes."""
    return _encode(effects)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────


def read(path: Path | str) -> tuple[Head, Iterator[Entry]]:
    """The head of a journal, and its entries one by one.  Raises JournalError."""
    lines = _lines(Path(path))
    number, first = next(lines, (0, b""))
    if not first:
        raise JournalError(f"{path}: the file is empty; a journal begins with a head")
    try:
        head = msgspec.json.decode(first, type=Head)
    except msgspec.ValidationError as error:
        raise JournalError(f"{path}:{number}: not the head of a journal: {error}") from None
    except msgspec.DecodeError as error:
        raise JournalError(f"{path}:{number}: not JSON: {error}") from None
    if b'"journal"' not in first or head.journal != VERSION:
        raise JournalError(f"{path}:1: not a journal that this version can read (expected journal: {VERSION})")
    return head, _entries(path, lines)


def _entries(path: Path | str, lines: Iterator[tuple[int, bytes]]) -> Iterator[Entry]:
    waiting: tuple[int, Instant, Event] | None = None
    for number, line in lines:
        try:
            parsed = msgspec.json.decode(line, type=_Line)
            if bytes(parsed.event):
                if waiting is not None:
                    yield Entry(*waiting, effects=b"[]")
                told = msgspec.json.decode(line, type=_EventLine)
                waiting = (told.n, parse_rfc3339(told.at), told.event)
            elif waiting is not None and bytes(parsed.effects) and parsed.n == waiting[0]:
                yield Entry(*waiting, effects=bytes(parsed.effects))
                waiting = None
            else:
                raise JournalError(f"{path}:{number}: effects of event {parsed.n}, which does not stand before them")
        except (msgspec.DecodeError, ValueError) as error:
            raise JournalError(f"{path}:{number}: {error}") from None
    if waiting is not None:
        yield Entry(*waiting, effects=None)  # the writer may have died before it could write the answer


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    return  # cut in the middle: what a crash leaves
                if line.strip():
                    yield number, line
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}") from None


class Divergence(KubeschedError):
    """The same event got another answer than the journal says."""


def replay(
    entries: Iterator[Entry],
    core: Core,
    *,
    until: Instant | None = None,
    seen: Callable[[Entry, Sequence[AnyEffect]], None] | None = None,
) -> int:
    """Fold a journal into a fresh core; returns how many events.  Raises Divergence.

    Args:
        until: stop before the first event later than this.
        seen: told of every event and of what the core answered.
    """
    count = 0
    for entry in entries:
        if until is not None and entry.at > until:
            break
        effects = core.handle(entry.event, entry.at)
        count += 1
        answered = encode_effects(effects)
        if entry.effects is not None and answered != entry.effects:
            raise Divergence(
                f"event {entry.number} at {format_nano(entry.at)} has another outcome than the journal says\n"
                f"  journal: {entry.effects.decode()}\n  replay:  {answered.decode()}"
            )
        if seen is not None:
            seen(entry, effects)
    return count
