"""NodeResourcesBalancedAllocation: fill a node evenly, so that what is left can be used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import force_setattr

from kubesched.api.labels import quoted
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Amounts, Mask, Scores
from kubesched.framework.cycle import Cycle
from kubesched.framework.hooks import Signature
from kubesched.framework.profile import MAX_SCORE
from kubesched.framework.status import SKIP, SUCCESS, Status
from kubesched.framework.tools import Tools
from kubesched.plugins.resource_scoring import (
    DEFAULT_RESOURCES,
    Demand,
    ResourceSpec,
    demands,
    load_all,
    signed_requests,
)

_MIDDLE = MAX_SCORE // 2


class NodeResourcesBalancedAllocationArgs(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The arguments of NodeResourcesBalancedAllocation.

    Args:
        resources: which resources are to be used evenly; cpu and memory if none is named.
    """

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def __post_init__(self) -> None:
        if not self.resources:
            force_setattr(self, "resources", DEFAULT_RESOURCES)


def validate_node_resources_balanced_allocation(args: NodeResourcesBalancedAllocationArgs) -> Iterator[tuple[str, str]]:
    """What is wrong with the arguments, as (path, message)."""
    seen: dict[str, None] = {}
    for at, spec in enumerate(args.resources):
        if spec.name in seen:
            yield f"resources[{at}].name", f"Duplicate value: {quoted(spec.name)}"
        seen[spec.name] = None
        if spec.weight != 1:
            yield f"resources[{at}].weight", f"Invalid value: {spec.weight}: must be 1"


class _Demands(Struct, frozen=True):
    """What the score looks at."""

    each: tuple[Demand, ...]


class NodeResourcesBalancedAllocation:
    """Prefer nodes whose resources the pod leaves in better balance than it finds them.

    What it does:  measures how far apart the used shares of cpu, memory and so on are on a node, with the pod
                   and without it.  50 means no difference; more, that the pod evens them out.
                   Pods that request nothing are not scored.
    Answers:       a score from 0 to 100.
    Wakes on:      nothing; it turns no pod down.
    Tiers:         score, score_all.
    Same as:       kube-scheduler NodeResourcesBalancedAllocation, v1.36.
    """

    name = "NodeResourcesBalancedAllocation"
    board: Literal["node", "row"] = "row"

    def __init__(self, args: NodeResourcesBalancedAllocationArgs | None = None, tools: Tools | None = None) -> None:
        self.args = args or NodeResourcesBalancedAllocationArgs()
        self.tools = tools

    def pre_score(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        wanted = self._demands(pod)
        if not any(demand.amount for demand in wanted.each):
            return SKIP
        cycle.put(wanted)
        return SUCCESS

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        wanted = cycle.find(_Demands) or self._demands(pod)
        after: list[float] = []
        before: list[float] = []
        for demand in wanted.each:
            taken, capacity = node.room(demand.resource)
            if capacity != 0:
                after.append(_share(taken + demand.amount, capacity))
                before.append(_share(taken, capacity))
        return _MIDDLE + (_MIDDLE + _balance(after) - _balance(before)) // 2

    def score_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Scores:
        wanted = cycle.find(_Demands) or self._demands(pod)
        loads = [(load_all(nodes, demand, guessed=False), demand.amount) for demand in wanted.each]
        there = [one.capacity != 0 for one, _ in loads]
        after = _balances(len(nodes), [_shares(one.requested, one.capacity) for one, _ in loads], there)
        before = _balances(len(nodes), [_shares(one.requested - amount, one.capacity) for one, amount in loads], there)
        after -= before
        after += _MIDDLE
        after //= 2
        after += _MIDDLE
        return after

    def _demands(self, pod: PodInfo) -> _Demands:
        return _Demands(demands(self.args.resources, pod.requests))

    def sign_pod(self, pod: PodInfo) -> Signature:
        return (signed_requests(pod),)


# ── how even the shares are: 100 less their standard deviation in percent, so 50 at least ────────────────────

Shares: TypeAlias = npt.NDArray[np.float64]


def _share(requested: int, capacity: int) -> float:
    return min(float(requested) / float(capacity), 1.0)


def _balance(shares: Sequence[float]) -> int:
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = 0.0
        for share in shares:
            total += share
        mean = total / len(shares)
        squares = 0.0
        for share in shares:
            squares += (share - mean) * (share - mean)
        deviation = math.sqrt(squares / len(shares))
    return int((1 - deviation) * float(MAX_SCORE))


def _shares(requested: Amounts, capacity: Amounts) -> Shares:
    shares: Shares = np.true_divide(requested, capacity if capacity.all() else np.where(capacity == 0, 1, capacity))
    return np.minimum(shares, 1.0, out=shares)


def _balances(count: int, shares: Sequence[Shares], there: Sequence[Mask]) -> Scores:
    """As `_balance`, for every node; resources that are not there stand aside.

    Terms are added one resource after the other, as in the scalar tier: another order may round otherwise.
    """
    if len(shares) == 2 and all(here.all() for here in there):
        return _balances_of_two(*shares)
    known = np.zeros(count, dtype=np.int64)
    total, squares = np.zeros(count), np.zeros(count)
    first, last = np.zeros(count), np.zeros(count)
    for share, here in zip(shares, there, strict=True):
        first = np.where(here & (known == 0), share, first)
        last = np.where(here, share, last)
        total = np.where(here, total + share, total)
        known = known + here
    mean = total / np.maximum(known, 1)
    for share, here in zip(shares, there, strict=True):
        squares = np.where(here, squares + (share - mean) * (share - mean), squares)
    deviation = np.where(known == 2, np.abs((first - last) / 2), np.sqrt(squares / np.maximum(known, 1)))
    deviation = np.where(known > 1, deviation, 0.0)
    balances: Scores = ((1 - deviation) * float(MAX_SCORE)).astype(np.int64)
    return balances


def _balances_of_two(one: Shares, other: Shares) -> Scores:
    """The same for two resources that every node has, as is usual.  Writes over the first."""
    one -= other
    np.abs(one, out=one)
    one /= 2
    np.subtract(1.0, one, out=one)
    one *= float(MAX_SCORE)
    return one.astype(np.int64)
