"""Plugins for drawn schedulers: a probe for the judge, and some that hold, refuse or break.

A configuration names them as `kubesched.fuzz.plugins:Probe`.
"""

from __future__ import annotations

from typing import Any, cast
from zlib import crc32

from msgspec import Struct

from kubesched.api.time import milliseconds
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.status import SUCCESS, Status, Wait, unschedulable
from kubesched.framework.tools import Tools

PROBE = "Probe"


class Probe:
    """Tells the judge of every reservation, and of how it ended."""

    name = PROBE

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    def reserve(self, cycle: Cycle, pod: PodInfo, node: str) -> Status:
        self.tools.note("reserved", uid=pod.uid)
        return SUCCESS

    def unreserve(self, cycle: Cycle, pod: PodInfo, node: str) -> None:
        self.tools.note("unreserved", uid=pod.uid)

    def post_bind(self, cycle: Cycle, pod: PodInfo, node: str) -> None:
        self.tools.note("bound", uid=pod.uid)


class PatienceArgs(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Of a hundred pods: how many are held, how many of those are refused, and how many never get an answer."""

    held: int = 50
    refused: int = 20
    forgotten: int = 10
    after: int = 1_000
    at_most: int = 5_000


class Patience:
    """Holds pods at permit, lets most of them go after a while, refuses some, forgets about some."""

    name = "Patience"

    def __init__(self, args: PatienceArgs, tools: Tools) -> None:
        self.args, self.tools = args, tools
        self._asked: dict[str, int] = {}

    def permit(self, cycle: Cycle, pod: PodInfo, node: str) -> Status | Wait:
        times = self._asked[pod.uid] = self._asked.get(pod.uid, 0) + 1
        if crc32(pod.key.encode()) % 100 >= self.args.held or times > 1:
            return SUCCESS
        fate = crc32(f"{pod.key}/fate".encode()) % 100
        if fate < self.args.refused:
            self.tools.reject_after(pod, milliseconds(self.args.after), "not this time")
        elif fate >= self.args.refused + self.args.forgotten:
            self.tools.allow_after(pod, milliseconds(self.args.after))
        return Wait(milliseconds(self.args.at_most))


class Moody:
    """Raises, or answers nonsense, for pods with the label `mood`."""

    name = "Moody"

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        match pod.labels.get("mood"):
            case "raises":
                raise RuntimeError("not today")
            case "nonsense":
                nonsense: Any = 17
                return cast("Status", nonsense)
            case "refuses":
                return unschedulable("not in the mood")
        return SUCCESS

    def reserve(self, cycle: Cycle, pod: PodInfo, node: str) -> Status:
        if pod.labels.get("mood") == "reserve":
            raise RuntimeError("not there")
        return SUCCESS

    def unreserve(self, cycle: Cycle, pod: PodInfo, node: str) -> None:
        if pod.labels.get("mood") == "unreserve":
            raise RuntimeError("not back")
