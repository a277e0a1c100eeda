"""The journal: every event a core was given, when, and what it answered.  JSON lines, to be read by people too.

    {"journal": 1, "seed": 7, "config": {…}}                        the head: how to build the same core
    {"n": 1, "at": "2026-01-01T00:00:00.000000000Z", "event": {…}}  written before the event is folded in
    {"n": 1, "effects": [{…}]}                                      written after; absent where there were none

`replay` folds the events into a fresh core and compares what it answers.  A file that ends in the middle of a
line is what a crash leaves: everything before counts.  Any other damage is an error that names the line.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec
from msgspec import Struct

from kubesched.api.kinds import CustomResource
from kubesched.api.time import Instant, format_nano, parse_rfc3339
from kubesched.core.messages import AnyEffect, Event, Observed
from kubesched.drive.world import Actor
from kubesched.framework.errors import KubeschedError

VERSION = 1
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


class JournalError(KubeschedError):
    """A journal that cannot be written or used; says which file and line, and what to do about it."""

    exit_status = 2


class Head(Struct, frozen=True, omit_defaults=True):
    """How to build the core that wrote the journal.

    Args:
        config: a KubeSchedulerConfiguration; empty for kube-scheduler's default.
        tie: how one of several best nodes is picked.
        features: feature gates that were set, by the names Kubernetes gives them.
        wait_for: kinds whose first complete view is waited for.
        plugins: per profile the names of its plugins, to tell a core that cannot be built from `config` alone.
        parked_max: for how many nanoseconds a pod may sleep; 0 for as long as it may where nothing is said.
    """

    journal: int
    seed: int = 0
    config: dict[str, Any] = {}
    tie: str = "seeded"
    features: dict[str, bool] = {}
    wait_for: tuple[str, ...] = ()
    plugins: dict[str, tuple[str, ...]] = {}
    parked_max: int = 0


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


class _Told(Struct, frozen=True):
    """As much of an event as tells whether it is about a kind of one's own."""

    event: str
    obj: msgspec.Raw = msgspec.Raw()
    gone: bool = False


class _When(Struct, frozen=True):
    at: str


class _Kinded(Struct, frozen=True):
    kind: str = ""


class _Line(Struct, frozen=True):
    n: int
    event: msgspec.Raw = msgspec.Raw()  # empty where the line is not one of an event
    effects: msgspec.Raw = msgspec.Raw()


_encode = msgspec.json.Encoder(order="sorted").encode


def encode_effects(effects: Sequence[AnyEffect]) -> bytes:
    """Effects as a journal writes them; equal effects are equal bytes."""
    return _encode(effects)


def unused(path: Path) -> Path:
    """A place for a journal where none is yet: the path, or with a number behind it."""
    numbered = (path.with_name(f"{path.name}.{number}") for number in count(1))
    return path if not path.exists() else next(one for one in numbered if not one.exists())


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────


class Journal:
    """Writes a journal, line by line.  Use as a context manager, or close it.  Raises JournalError.

    Args:
        flush: hand every line to the operating system at once, so that only its own crash loses any.
    """

    def __init__(self, path: Path | str, head: Head, *, flush: bool = True) -> None:
        self.path = Path(path)
        self._flush = flush
        self._number = 0
        try:
            # Labels and names of a whole cluster are nobody's business but the owner's.
            self._file: IO[bytes] = os.fdopen(os.open(self.path, _WRITE, 0o600), "wb")
        except OSError as error:
            raise JournalError(f"{path}: the journal cannot be written: {_why(error)}") from None
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
        try:
            self._file.close()
        except OSError as error:
            raise JournalError(f"{self.path}: the end of the journal was not written: {_why(error)}") from None

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: bytes) -> None:
        try:
            self._file.write(line + b"\n")
            if self._flush:
                self._file.flush()
        except OSError as error:
            with suppress(OSError):
                self._file.close()  # or what is left in its buffer fails again when nobody listens
            raise JournalError(f"{self.path}: the journal cannot be written on: {_why(error)}") from None


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────

_CUT = "give the whole file, or replay what is before it: head -n {0} FILE > SHORTER"


class Reading:
    """A journal, read entry by entry.  Raises JournalError.

    `cut` is true when the end has been reached and the last line was not complete.  `kinds` are the custom resources
    its events may be about, by name; the core that the head describes knows them.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = path
        self.cut = False
        self.kinds: Mapping[str, type[CustomResource]] = {}
        self._lines = self._read(Path(path))
        self.head = self._head()

    def __iter__(self) -> Iterator[Entry]:
        waiting: _EventLine | None = None
        expected = 1
        for line, text in self._lines:
            parsed = self._decode(line, text, _Line)
            if bytes(parsed.event):
                if parsed.n != expected:
                    raise self._broken(line, f"event {parsed.n} stands where event {expected} was expected", expected)
                if waiting is not None:
                    yield self._entry(line, waiting, b"[]")
                waiting = self._event(line, text, parsed)
                expected += 1
            elif waiting is not None and bytes(parsed.effects) and parsed.n == waiting.n:
                yield self._entry(line, waiting, bytes(parsed.effects))
                waiting = None
            else:
                problem = f"effects of event {parsed.n}, which does not stand before them"
                raise self._broken(line, problem, expected)
        if waiting is not None:  # the writer may have died before it could write the answer
            yield self._entry(0, waiting, None)

    def _event(self, line: int, text: bytes, parsed: _Line) -> _EventLine:
        """An event; its object may be of a kind that only the plugins of this core know."""
        if self.kinds:
            told = self._decode(line, bytes(parsed.event), _Told)
            kind = self._decode(line, bytes(told.obj), _Kinded).kind if told.event == "Observed" else ""
            if kind in self.kinds:
                obj = self._decode(line, bytes(told.obj), self.kinds[kind])
                return _EventLine(parsed.n, self._decode(line, text, _When).at, Observed(obj, told.gone))
        known: _EventLine = self._decode(line, text, _EventLine)
        return known

    def _entry(self, line: int, told: _EventLine, effects: bytes | None) -> Entry:
        try:
            return Entry(told.n, parse_rfc3339(told.at), told.event, effects)
        except ValueError as error:
            raise self._broken(line, str(error), told.n) from None

    def _head(self) -> Head:
        number, first = next(self._lines, (1, b""))
        if not first:
            what = "its only line is cut" if self.cut else "the file is empty"
            remedy = "a journal begins with a head, as `kubesched sim --journal` writes it"
            raise JournalError(f"{self.path}: {what}; {remedy}")
        try:
            head = msgspec.json.decode(first, type=Head)
        except msgspec.ValidationError as error:
            remedy = 'expected {"journal":1, …}: is this a journal?'
            raise JournalError(f"{self.path}:{number}: not the head of a journal: {error} ({remedy})") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise JournalError(f"{self.path}:{number}: not JSON: {error}; a journal begins with a head") from None
        if head.journal != VERSION:
            problem = f"a journal of version {head.journal}; this kubesched reads version {VERSION}"
            raise JournalError(f"{self.path}:{number}: {problem} (replay it with the kubesched that wrote it)")
        return head

    def _decode(self, line: int, text: bytes, kind: type[Any]) -> Any:
        try:
            return msgspec.json.decode(text, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._broken(line, str(error), 0) from None
        except RecursionError:
            raise self._broken(line, "nested too deeply", 0) from None

    def _broken(self, line: int, problem: str, event: int) -> JournalError:
        before = f"; events before it: {event - 1}" if event else ""
        return JournalError(f"{self.path}:{line}: {problem}{before} ({_CUT.format(line - 1)})")

    def _read(self, path: Path) -> Iterator[tuple[int, bytes]]:
        try:
            with path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    if not line.endswith(b"\n"):
                        self.cut = True
                        return
                    if line.strip():
                        yield number, line
        except OSError as error:
            raise JournalError(f"{path}: the journal cannot be read: {_why(error)}") from None


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


# ── replaying ────────────────────────────────────────────────────────────────────────────────────────────────


class Divergence(KubeschedError):
    """The same event got another answer than the journal says."""


def replay(
    entries: Iterator[Entry] | Reading,
    core: Actor,
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
            raise Divergence(_differs(entry, answered))
        if seen is not None:
            seen(entry, effects)
    return count


def _differs(entry: Entry, answered: bytes) -> str:
    """Which event, and the first effects that are not the same."""
    assert entry.effects is not None, "only what is known can differ"
    then, now = (msgspec.json.decode(effects, type=list[msgspec.Raw]) for effects in (entry.effects, answered))
    at = next((i for i, (a, b) in enumerate(zip(then, now, strict=False)) if bytes(a) != bytes(b)), None)
    at = min(len(then), len(now)) if at is None else at
    journal, replayed = (bytes(found[at]).decode() if at < len(found) else "nothing" for found in (then, now))
    what = _named(entry.event)
    return (
        f"event {entry.number} at {format_nano(entry.at)} ({what}) has another outcome than the journal says, "
        f"at its effect {at + 1}\n  journal: {journal}\n  replay:  {replayed}"
    )


def _named(event: Event) -> str:
    told: Mapping[str, Any] = msgspec.to_builtins(event)
    obj = told.get("obj") or {}
    meta = obj.get("metadata") or {}
    name = "/".join(filter(None, (meta.get("namespace"), meta.get("name"))))
    return " ".join(filter(None, (told["event"], obj.get("kind"), name)))
