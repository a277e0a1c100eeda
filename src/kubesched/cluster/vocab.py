"""Strings to small integers, so that a question about five thousand nodes is asked once per distinct answer.

A cluster has thousands of nodes but dozens of zones, taint sets and resources.  A Vocab numbers the distinct
ones in the order they are first seen; a column of numbers then stands for a column of values, and what has
been decided per value is broadcast to the rows by indexing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)

ABSENT = -1


class Vocab(Generic[V]):
    """Numbers values 0, 1, 2 … in the order of their first appearance; never forgets one."""

    __slots__ = ("_code", "values")

    def __init__(self, *values: V) -> None:
        self.values: list[V] = []
        self._code: dict[V, int] = {}
        for value in values:
            self.add(value)

    def add(self, value: V) -> int:
        """The number of a value, given out now if it is new."""
        code = self._code.get(value)
        if code is None:
            code = self._code[value] = len(self.values)
            self.values.append(value)
        return code

    def find(self, value: V) -> int:
        """The number of a value, or ABSENT."""
        return self._code.get(value, ABSENT)

    def __contains__(self, value: V) -> bool:
        return value in self._code

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[V]:
        return iter(self.values)
