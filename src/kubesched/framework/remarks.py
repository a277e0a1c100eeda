"""What was remarked in the course of an attempt, by plugins and by the core; a part of the Decision.

A remark is kept once, however many nodes it was made about, and only so many are kept: a plugin that has
something to say about each of five thousand nodes must not fill the memory of the decisions before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from kubesched.framework.tools import Note

MOST = 100

Remark: TypeAlias = str | Note
"""A sentence of the core, or a plugin's note."""


class Remarks:
    """The remarks of one attempt, in the order they were made."""

    __slots__ = ("_kept", "_more")

    def __init__(self) -> None:
        self._kept: dict[Remark, None] = {}
        self._more = 0

    def add(self, remark: Remark) -> None:
        if remark in self._kept:
            return
        if len(self._kept) < MOST:
            self._kept[remark] = None
        else:
            self._more += 1

    def of_the_core(self) -> list[str]:
        """Without the plugins' notes, which have log lines of their own."""
        return [remark for remark in self._kept if isinstance(remark, str)]

    def __iter__(self) -> Iterator[str]:
        yield from map(str, self._kept)
        if self._more:
            yield f"and {self._more:,} more"
