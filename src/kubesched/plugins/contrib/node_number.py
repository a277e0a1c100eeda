"""NodeNumber: pod7 would like to be on node7, and takes its time to get there."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from kubesched.api.time import seconds
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.status import SKIP, SUCCESS, Status, Wait
from kubesched.framework.tools import Tools


class NodeNumberArgs(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Arguments of NodeNumber.

    Args:
        wait_timeout_seconds: how long a placed pod may be held back before it is turned down.
    """

    wait_timeout_seconds: Annotated[int, Meta(ge=1, le=900)] = 10


class _Digit(NamedTuple):
    """What the pod's name ends in."""

    value: int


class NodeNumber:
    """Prefer the node whose name ends in the pod's last digit, and bind after as many seconds.

    What it does:  pre_score notes the digit the pod's name ends in; score gives 10 to a node that ends in the same;
                   permit holds the pod back for as many seconds as the node's digit says, then lets it go.
    Answers:       a score of 0 or 10. A pod whose name ends in no digit is indifferent (Skip). A node whose name
                   ends in none is not waited for.
    Args:          waitTimeoutSeconds, how long permit waits at most (10).
    Wakes on:      nothing: it never turns a pod down.
    Tiers:         pre_score, score, permit.
    """

    name = "NodeNumber"

    def __init__(self, args: NodeNumberArgs, tools: Tools) -> None:
        self._timeout = seconds(args.wait_timeout_seconds)
        self.tools = tools

    def pre_score(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        digit = last_digit(pod.name)
        if digit is None:
            return SKIP
        cycle.put(_Digit(digit))
        return SUCCESS

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        noted = cycle.find(_Digit)  # not there where a configuration leaves pre_score out
        digit = last_digit(pod.name) if noted is None else noted.value
        return 10 if digit is not None and last_digit(node.name) == digit else 0

    def permit(self, cycle: Cycle, pod: PodInfo, node: str) -> Status | Wait:
        digit = last_digit(node)
        if digit is None:
            return SUCCESS
        self.tools.allow_after(pod, seconds(digit))
        return Wait(self._timeout)


def last_digit(name: str) -> int | None:
    """The digit a name ends in, if it does."""
    last = name[-1:]
    return int(last) if last.isascii() and last.isdecimal() else None
