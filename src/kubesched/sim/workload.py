"""Pods that come and go by themselves: when they arrive, how big they are, how long they live.

Every number is drawn from the scenario's seed and the workload's own name, so that one workload more or less
leaves the others as they were.  A pod's lifetime begins when it is bound, and ends with its deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, Literal

from msgspec import Struct

from kubesched.api.quantity import parse_milli, resource_amount
from kubesched.api.time import Duration
from kubesched.config.faults import shown
from kubesched.sim.fields import Fields, Json, amount_of, described, duration_of
from kubesched.sim.shorthand import COUNT_MAX, PRIORITY_MAX, PRIORITY_MIN, pod_of, pod_template

# ── numbers yet to be drawn ──────────────────────────────────────────────────────────────────────────────────


class Choice(Struct, frozen=True):
    """One of these, each as likely as the others."""

    values: tuple[int, ...]

    def draw(self, luck: Random) -> int:
        return self.values[0] if len(self.values) == 1 else luck.choice(self.values)


class Between(Struct, frozen=True):
    """Any from low to high."""

    low: int
    high: int

    def draw(self, luck: Random) -> int:
        return luck.randint(self.low, self.high)


class Around(Struct, frozen=True):
    """Exponentially distributed, with this mean: many short ones, few long ones."""

    mean: int

    def draw(self, luck: Random) -> int:
        return max(1, round(luck.expovariate(1 / self.mean)))


Draw = Choice | Between | Around


class Workload(Struct, frozen=True, kw_only=True):
    """Pods after one template, arriving one after the other.

    Args:
        gap: from one arrival to the next; drawn for each.
        start: when the first gap begins; an `every` workload's first pod arrives right then.
        end: no arrivals after that.
    """

    name: str
    template: Json
    gap: Draw
    rhythm: Literal["every", "poisson"] = "every"
    count: int | None = None
    start: Duration = Duration(0)
    end: Duration | None = None
    requests: Mapping[str, Draw] = {}
    priority: Draw | None = None
    lifetime: Draw | None = None

    def arrivals(self, seed: int) -> Arrivals:
        return Arrivals(self, Random(f"{seed}/workload/{self.name}"))


class Arrivals:
    """A workload as it happens."""

    def __init__(self, workload: Workload, luck: Random) -> None:
        self.workload, self._luck = workload, luck
        self._arrived = 0
        self._at = workload.start

    def next(self) -> tuple[Duration, Json, Duration | None] | None:
        """When the next pod arrives, the pod, and how long it will live; None where no more come."""
        workload, luck = self.workload, self._luck
        if workload.count is not None and self._arrived >= workload.count:
            return None
        if self._arrived or workload.rhythm == "poisson":
            self._at = Duration(self._at + workload.gap.draw(luck))
        if workload.end is not None and self._at > workload.end:
            return None
        requests = {name: _text(name, draw.draw(luck)) for name, draw in workload.requests.items()}
        priority = None if workload.priority is None else workload.priority.draw(luck)
        lifetime = None if workload.lifetime is None else Duration(workload.lifetime.draw(luck))
        pod = pod_of(workload.template, f"{workload.name}-{self._arrived}", requests, priority)
        self._arrived += 1
        return self._at, pod, lifetime


def _text(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == "cpu" else str(amount)


# ── as a person writes it ────────────────────────────────────────────────────────────────────────────────────


def workload_of(fields: Fields, endless: bool) -> Workload:
    """A workload of a scenario.  Faults are left with the fields.

    Args:
        endless: whether the scenario itself has no end.
    """
    name = fields.name("name")
    every, poisson = "every" in fields, "poisson" in fields
    if every == poisson:
        fields.fault("", "needs either every or poisson", "every: 2s, or poisson: 2s for a mean of two seconds")
    gap = _draw(fields, "every", _duration, "a duration", Choice((1,)))
    mean = fields.duration("poisson", least=1)
    count = fields.integer("count", 0, 1, COUNT_MAX) or None
    end = fields.duration("end")
    if endless and count is None and end is None:
        fields.fault("", "never ends", "give it a count or an end, or the scenario an until")
    pod = fields.inner("pod")
    if "pod" not in fields:
        fields.fault("pod", "a template for the pods is required", "pod: {cpu: 1}")
    workload = Workload(
        name=name,
        template=pod_template(pod),
        gap=Around(mean or 1) if poisson else gap,
        rhythm="poisson" if poisson else "every",
        count=count,
        start=fields.duration("start") or Duration(0),
        end=end,
        requests=_requests(pod),
        priority=_draw(pod, "priority", _priority, "an integer", None),
        lifetime=_draw(pod, "lifetime", _duration, "a duration", None),
    )
    pod.done()
    fields.done()
    return workload


def _requests(pod: Fields) -> dict[str, Draw]:
    draws: dict[str, Draw | None] = {
        "cpu": _draw(pod, "cpu", partial(_amount, "cpu"), "a quantity", None),
        "memory": _draw(pod, "memory", partial(_amount, "memory"), "a quantity", None),
    }
    extended = Fields(pod.mapping("resources"), pod.at("resources"), pod.faults)
    for name in extended.present:
        draws[name] = _draw(extended, name, partial(_amount, name), "a quantity", None)
    return {name: draw for name, draw in draws.items() if draw is not None}


def _draw(fields: Fields, key: str, convert: Callable[[Any], int | None], wanted: str, default: Any) -> Any:
    """A number, a list to choose from, {from: …, to: …}, or {mean: …}."""
    value = fields.raw(key)
    if value is None:
        return default
    if isinstance(value, Mapping):
        return _distribution(fields.inner(key), convert, wanted, default)
    values = value if isinstance(value, list) else [value]
    if not values:
        fields.fault(key, "has nothing to choose from")
    drawn = []
    for i, each in enumerate(values):
        path = f"{key}[{i}]" if isinstance(value, list) else key
        number = _converted(fields, path, convert, wanted, each)
        if number is not None:
            drawn.append(number)
    return Choice(tuple(drawn)) if drawn else default


def _distribution(fields: Fields, convert: Callable[[Any], int | None], wanted: str, default: Any) -> Any:
    low, high, mean = (
        None if fields.raw(key) is None else _converted(fields, key, convert, wanted, fields.raw(key))
        for key in ("from", "to", "mean")
    )
    fields.done()
    if "mean" in fields and not ("from" in fields or "to" in fields):
        if mean is not None and mean <= 0:
            fields.fault("mean", "must be positive")
        return Around(mean) if mean else default
    if "mean" in fields or "from" not in fields or "to" not in fields:
        fields.fault("", "must have from and to, or mean", "{from: 1, to: 4} or {mean: 30s}")
        return default
    if low is None or high is None:
        return default
    if low > high:
        fields.fault("from", "must not be more than to")
        return default
    return Between(low, high)


def _converted(fields: Fields, path: str, convert: Callable[[Any], int | None], wanted: str, value: Any) -> int | None:
    try:
        number = convert(value)
    except ValueError as error:
        fields.fault(path, str(error))
        return None
    if number is None:
        fields.fault(path, f"must be {wanted}, not {described(value)}")
    return number


def _duration(value: Any) -> int | None:
    duration = duration_of(value)
    if duration is not None and duration <= 0:
        raise ValueError(f"must be positive, not {shown(value)}")
    return duration


def _amount(resource: str, value: Any) -> int:
    text = amount_of(resource, value)
    return parse_milli(text) if resource == "cpu" else resource_amount(resource, text)


def _priority(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    if not PRIORITY_MIN <= value <= PRIORITY_MAX:
        raise ValueError(f"must be an integer from {PRIORITY_MIN:,} to {PRIORITY_MAX:,}")
    return value
