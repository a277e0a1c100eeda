"""From how full a node would be to how good that is: the scoring strategies of NodeResourcesFit.

A strategy judges each resource by itself, from 0 to 100; the node's score is the weighted mean.  Each says it
twice, of one node and of all nodes at once.

Capacities of more than 92 petabytes, or the like, leave an int64 when multiplied by 100.  kube-scheduler scores
by what remains after the overflow; here they are computed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct

from kubesched.cluster.types import Amounts, Mask, Scores
from kubesched.framework.profile import MAX_SCORE
from kubesched.plugins.resource_scoring import Load, LoadAll

_EXACT_MAX = (2**63 - 1) // MAX_SCORE
_SHAPE_SCORE_MAX = 10  # the scores of a shape go to 10, those of a plugin to 100


class UtilizationShapePoint(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """At this utilization, in percent, this score, from 0 to 10."""

    utilization: int = 0
    score: int = 0


def validate_shape(shape: Sequence[UtilizationShapePoint], path: str) -> Iterator[tuple[str, str]]:
    """What is wrong with a shape, as (path, message)."""
    if not shape:
        yield path, "Required value: at least one point must be specified"
        return
    for at in range(1, len(shape)):
        if shape[at - 1].utilization >= shape[at].utilization:
            message = f"Invalid value: {shape[at].utilization}: values must be sorted in increasing order"
            yield f"{path}[{at}].utilization", message
            break
    for at, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield f"{path}[{at}].utilization", f"Invalid value: {point.utilization}: not in valid range [0, 100]"
        if not 0 <= point.score <= _SHAPE_SCORE_MAX:
            message = f"Invalid value: {point.score}: not in valid range [0, {_SHAPE_SCORE_MAX}]"
            yield f"{path}[{at}].score", message


# ── judging one resource ─────────────────────────────────────────────────────────────────────────────────────


class Strategy(Protocol):
    """How good it is that so much of a capacity is requested.  The capacity is never 0.

    `by_shape`: a resource that scores 0 does not count in the mean, and the mean is rounded, not cut off.
    """

    by_shape: bool

    def one(self, requested: int, capacity: int) -> int: ...
    def all(self, requested: Amounts, capacity: Amounts) -> Scores: ...


class LeastAllocated:
    """The emptier the better: the share that stays free."""

    by_shape = False

    def one(self, requested: int, capacity: int) -> int:
        return 0 if requested > capacity else _percent(capacity - requested, capacity)

    def all(self, requested: Amounts, capacity: Amounts) -> Scores:
        return _percents(np.maximum(capacity - requested, 0), capacity)


class MostAllocated:
    """The fuller the better: the share that is taken."""

    by_shape = False

    def one(self, requested: int, capacity: int) -> int:
        return _percent(min(requested, capacity), capacity)

    def all(self, requested: Amounts, capacity: Amounts) -> Scores:
        return _percents(np.minimum(requested, capacity), capacity)


class RequestedToCapacityRatio:
    """As a shape says: points of utilization and score, with straight lines between them."""

    by_shape = True

    def __init__(self, shape: Sequence[UtilizationShapePoint]) -> None:
        points = [(point.utilization, point.score * MAX_SCORE // _SHAPE_SCORE_MAX) for point in shape]
        self._curve = [broken_linear(points, utilization) for utilization in range(101)]
        self._curve_all: Scores = np.array(self._curve, dtype=np.int64)

    def one(self, requested: int, capacity: int) -> int:
        return self._curve[_percent(min(requested, capacity), capacity)]

    def all(self, requested: Amounts, capacity: Amounts) -> Scores:
        scores: Scores = self._curve_all[_percents(np.minimum(requested, capacity), capacity)]
        return scores


def broken_linear(points: Sequence[tuple[int, int]], at: int) -> int:
    """The height at `at` of the line through the points; level before the first and after the last."""
    for index, (x, y) in enumerate(points):
        if at <= x:
            if index == 0:
                return y
            x_before, y_before = points[index - 1]
            return y_before + _toward_zero((y - y_before) * (at - x_before), x - x_before)
    return points[-1][1]


def _toward_zero(part: int, whole: int) -> int:
    """Go's division, for whole > 0."""
    return part // whole if part >= 0 else -(-part // whole)


def _percent(part: int, whole: int) -> int:
    return part * MAX_SCORE // whole


def _percents(part: Amounts, whole: Amounts) -> Scores:
    if int(whole.max(initial=0)) > _EXACT_MAX:
        return np.array([_percent(p, w) for p, w in zip(part.tolist(), whole.tolist(), strict=True)], dtype=np.int64)
    percents: Scores = part * MAX_SCORE // whole
    return percents


# ── judging a node ───────────────────────────────────────────────────────────────────────────────────────────


def mean_score(strategy: Strategy, loads: Iterable[Load]) -> int:
    """The weighted mean over the resources the node has; 0 where it has none."""
    total = weights = 0
    for requested, capacity, weight in loads:
        if capacity == 0:
            continue
        score = strategy.one(requested, capacity)
        if score > 0 or not strategy.by_shape:
            total += score * weight
            weights += weight
    if weights == 0:
        return 0
    return math.floor(float(total) / float(weights) + 0.5) if strategy.by_shape else total // weights


def mean_scores(strategy: Strategy, count: int, loads: Iterable[LoadAll]) -> Scores:
    """As `mean_score`, for `count` nodes."""
    total: Scores = np.zeros(count, dtype=np.int64)
    weights: Scores | int = 0
    for requested, capacity, weight in loads:
        if not strategy.by_shape and capacity.all():  # every node has it, as is usual
            total += strategy.all(requested, capacity) * weight
            weights = weights + weight
            continue
        counts: Mask = capacity != 0
        scores = strategy.all(requested, np.where(counts, capacity, 1))
        if strategy.by_shape:
            counts = counts & (scores > 0)
        total += np.where(counts, scores * weight, 0)
        weights = weights + np.where(counts, weight, 0)
    divisor = np.where(weights == 0, 1, weights) if isinstance(weights, np.ndarray) else np.int64(weights or 1)
    # Where the divisor would be 0 the total is, too.
    if strategy.by_shape:
        return np.floor(total.astype(np.float64) / divisor.astype(np.float64) + 0.5).astype(np.int64)
    mean: Scores = total // divisor
    return mean
