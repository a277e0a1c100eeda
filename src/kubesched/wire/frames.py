"""A watch is lines of JSON, and the network cuts them wherever it likes: put them together again.

Lines are split in the chunks as they come, and the tail is kept as pieces until its end arrives: a line of three
megabytes in small chunks is copied once.  A line that never ends must not eat all memory, so there is a limit.
"""

from __future__ import annotations

LINE_BYTES_MAX = 8 << 20


class LineTooLong(ValueError):
    """A line longer than any object an API server may send."""


class Lines:
    """Whole lines out of chunks."""

    __slots__ = ("_bytes_max", "_pieces", "_size")

    def __init__(self, bytes_max: int = LINE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines a chunk completes, without their ends and without empty ones.  Raises LineTooLong."""
        head, *rest = data.split(b"\n")
        self._pieces.append(head)
        self._size += len(head)
        if not rest:
            self._check(self._size)
            return []
        self._check(self._size)
        lines = [b"".join(self._pieces), *rest[:-1]]
        self._pieces, self._size = [rest[-1]], len(rest[-1])
        self._check(max(len(line) for line in (*lines, rest[-1])))
        return [line for line in lines if line.strip()]

    @property
    def tail(self) -> int:
        """How many bytes wait for the end of their line."""
        return self._size

    def _check(self, size: int) -> None:
        if size > self._bytes_max:
            raise LineTooLong(f"a line of the watch is longer than {self._bytes_max} bytes")
