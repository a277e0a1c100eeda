"""Making a failing run small: what is taken away was not the reason, as long as the same law is still broken.

First luck becomes a list: the requests that went wrong by chance are written down one by one.  Then parts are taken
away, half of them at a time, then a quarter, down to single ones; then everything that has a plain value is tried
with it.  What is left is what somebody has to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from msgspec import structs

from kubesched.fuzz.plan import Custom, Happening, Json, Make, Plan, Weather
from kubesched.fuzz.play import Played, play

T = TypeVar("T")
_PLAYS = 600  # at most, for one failure


class Shrinker:
    """Shrinks one plan."""

    def __init__(self, plan: Plan, law: str, plays: int = _PLAYS) -> None:
        self.plan, self._law, self.left = plan, law, plays

    def shrink(self) -> Plan:
        """The smallest plan found that breaks the same law."""
        self._write_luck_down()
        before = None
        while before != self.plan and self.left > 0:
            before = self.plan
            self._take_away("happenings")
            self._take_away("mishaps")
            self._take_away("cluster")
            self._plainer()
            self._objects()
            self._times()
        return structs.replace(self.plan, broke=self._law)

    def _holds(self, plan: Plan) -> Played | None:
        """The run of a smaller plan, if it still breaks the law."""
        if self.left <= 0:
            return None
        self.left -= 1
        played = play(plan, thorough=1)
        return played if played.broken is not None and played.broken.law == self._law else None

    def _try(self, **changes: Any) -> bool:
        smaller = structs.replace(self.plan, **changes)
        if smaller == self.plan or self._holds(smaller) is None:
            return False
        self.plan = smaller
        return True

    def _write_luck_down(self) -> None:
        played = self._holds(self.plan)
        if played is not None:
            met = structs.replace(self.plan.weather, chances={})
            self._try(mishaps=played.met, weather=met)

    # ── taking away ──────────────────────────────────────────────────────────────────────────────────────────

    def _take_away(self, name: str) -> None:
        """Delta debugging over one of the lists of a plan."""
        chunk = max(1, len(getattr(self.plan, name)) // 2)
        while True:
            start = 0
            while start < len(getattr(self.plan, name)) and self.left > 0:
                items: tuple[Any, ...] = getattr(self.plan, name)
                if not self._try(**{name: items[:start] + items[start + chunk :]}):
                    start += chunk
            if chunk == 1 or self.left <= 0:
                return
            chunk //= 2

    # ── plainer values ───────────────────────────────────────────────────────────────────────────────────────

    def _plainer(self) -> None:
        """Everything that has a usual value is tried with it."""
        for field in Weather.__struct_fields__:
            usual = getattr(Weather(), field)
            if field != "until" and getattr(self.plan.weather, field) != usual:
                self._try(weather=structs.replace(self.plan.weather, **{field: usual}))
        for kind in self.plan.weather.lag:
            lag = {other: value for other, value in self.plan.weather.lag.items() if other != kind}
            self._try(weather=structs.replace(self.plan.weather, lag=lag))
        for field in Custom.__struct_fields__:
            if getattr(self.plan.custom, field) != getattr(Custom(), field):
                self._try(custom=structs.replace(self.plan.custom, **{field: getattr(Custom(), field)}))
        if self.plan.scheduler:
            self._try(scheduler={})
        last = max((happening.at for happening in self.plan.happenings), default=0)
        for until in (last + 1, last + 2_000, last + 10_000):
            if until < self.plan.weather.until and self._try(
                weather=structs.replace(self.plan.weather, until=until)
            ):
                return

    def _objects(self) -> None:
        """Wishes of pods and properties of nodes that do not matter."""
        for at in range(len(self.plan.cluster)):
            for smaller in _smaller(self.plan.cluster[at]):
                if self._try(cluster=_with(self.plan.cluster, at, smaller)):
                    break
        for at in range(len(self.plan.happenings)):
            happening = self.plan.happenings[at]
            if isinstance(happening, Make):
                for smaller in _smaller(happening.obj):
                    made = structs.replace(happening, obj=smaller)
                    if self._try(happenings=_with(self.plan.happenings, at, made)):
                        happening = made

    def _times(self) -> None:
        """Everything as early as it can be."""
        for at in range(len(self.plan.happenings)):
            happening: Happening = self.plan.happenings[at]
            earlier = self.plan.happenings[at - 1].at if at else 0
            for moment in (earlier, earlier + (happening.at - earlier) // 10, happening.at // 1000 * 1000):
                if earlier <= moment < happening.at:
                    moved = structs.replace(happening, at=moment)
                    if self._try(happenings=_with(self.plan.happenings, at, moved)):
                        break


def _with(items: Sequence[T], at: int, item: T) -> tuple[T, ...]:
    return (*items[:at], item, *items[at + 1 :])


def _smaller(obj: Json) -> Iterator[Json]:
    """The same object with one thing less."""
    for part in ("spec", "metadata"):
        inner: Json = obj.get(part) or {}
        for key in inner:
            if key not in ("name", "namespace", "containers", "nodeName"):
                yield {**obj, part: {name: value for name, value in inner.items() if name != key}}
    labels = (obj.get("metadata") or {}).get("labels") or {}
    for key in labels:
        less = {name: value for name, value in labels.items() if name != key}
        yield {**obj, "metadata": {**obj["metadata"], "labels": less}}
