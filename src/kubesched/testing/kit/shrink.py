"""Makes a situation smaller as long as the same rule stays broken, so that what is left is what matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import structs

from kubesched.testing.kit.situation import Json, Situation, Step

_NEEDED = ("kind", "apiVersion", "name", "namespace", "uid")  # an object without them is another object
TRIES_AT_MOST = 600


def smallest(situation: Situation, broken: Callable[[Situation], bool]) -> Situation:
    """The smallest situation found that still breaks the rule."""
    tries = TRIES_AT_MOST
    shrunk = True
    while shrunk:
        shrunk = False
        for smaller in _smaller(situation):
            tries -= 1
            if tries < 0:
                return situation
            if broken(smaller):
                situation, shrunk = smaller, True
                break
    return situation


def _smaller(situation: Situation) -> Iterator[Situation]:
    """A little smaller in every possible way, large cuts first."""
    if situation.twists:
        yield structs.replace(situation, twists=())
        yield from (structs.replace(situation, steps=twist, twists=()) for twist in situation.twists)
    for name in ("steps", "others", "objects"):
        whole = getattr(situation, name)
        for i in range(len(whole) - 1, -1, -1):
            yield structs.replace(situation, **{name: whole[:i] + whole[i + 1 :]})
    for body in _cut(situation.pod):
        yield structs.replace(situation, pod=body)
    for name in ("objects", "others"):
        whole = getattr(situation, name)
        for i, raw in enumerate(whole):
            for body in _cut(raw):
                yield structs.replace(situation, **{name: (*whole[:i], body, *whole[i + 1 :])})
    for i, step in enumerate(situation.steps):
        for body in _cut(step.body):
            smaller: Step = structs.replace(step, body=body)
            yield structs.replace(situation, steps=(*situation.steps[:i], smaller, *situation.steps[i + 1 :]))
    if situation.pick:
        yield structs.replace(situation, pick=0)
        yield structs.replace(situation, pick=situation.pick // 2)


def _cut(raw: Json) -> Iterator[Json]:
    """A document with one field or one item less, outermost first."""
    for path in _paths(raw):
        smaller: Any = msgspec.json.decode(msgspec.json.encode(raw))
        inner = smaller
        for part in path[:-1]:
            inner = inner[part]
        del inner[path[-1]]
        yield smaller


def _paths(raw: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    layer: list[tuple[tuple[Any, ...], Any]] = [((), raw)]
    while layer:
        below = []
        for path, value in layer:
            items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            for name, item in items:
                if name not in _NEEDED and (path or name != "metadata"):
                    found.append((*path, name))
                if name != "labels" or item:
                    below.append(((*path, name), item))
        layer = below
    return found
