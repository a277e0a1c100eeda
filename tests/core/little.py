"""The smallest plugins that do something, for tests of what happens around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubesched.framework.events import Action, Hint
from kubesched.framework.hooks import Nomination
from kubesched.framework.status import SUCCESS, Status, Wait, unschedulable
from kubesched.framework.tools import Tools


class Fit:
    """A pod needs as much cpu as it asks for, and a node that is open."""

    def filter(self, cycle, pod, node) -> Status:
        if node.unschedulable:
            return unschedulable("node(s) were closed")
        free = node.allocatable("cpu") - node.requested("cpu")
        return SUCCESS if pod.requests.get("cpu", 0) <= free else unschedulable("Insufficient cpu")

    def events_to_register(self) -> Iterable[Hint]:
        return (
            Hint("Pod", Action.DELETE | Action.UPDATE_POD_SCALE_DOWN),
            Hint("Node", Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_TAINT),
        )


class Ledger:
    """Writes down every reserve, unreserve and post_bind, as `hook pod node`."""

    def __init__(self, name: str = "Ledger") -> None:
        self.name = name
        self.lines: list[str] = []

    def reserve(self, cycle, pod, node) -> Status:
        self.lines.append(f"reserve {pod.name} {node}")
        return SUCCESS

    def unreserve(self, cycle, pod, node) -> None:
        self.lines.append(f"unreserve {pod.name} {node}")

    def post_bind(self, cycle, pod, node) -> None:
        self.lines.append(f"post_bind {pod.name} {node}")


class Patience:
    """Asks for patience with every pod, or with those named."""

    tools: Tools

    def __init__(self, timeout: Any, *pods: str, name: str = "Patience") -> None:
        self.name = name
        self.timeout = timeout
        self.pods = pods

    def permit(self, cycle, pod, node) -> Status | Wait:
        return Wait(self.timeout) if not self.pods or pod.name in self.pods else SUCCESS


class Steps:
    """A pre_bind made of a generator function."""

    def __init__(self, course: Callable[..., Any], name: str = "Steps") -> None:
        self.name = name
        self.course = course

    def pre_bind(self, cycle, pod, node) -> Any:
        return self.course(cycle, pod, node)


class Binder:
    """A bind made of a generator function."""

    def __init__(self, course: Callable[..., Any], name: str = "Binder") -> None:
        self.name = name
        self.course = course

    def bind(self, cycle, pod, node) -> Any:
        return self.course(cycle, pod, node)


class Evictor:
    """Makes room by evicting every pod of lower priority from the first node; holds the preemptor back meanwhile."""

    tools: Tools

    def post_filter(self, cycle, pod, rejected) -> Nomination | Status:
        for node in cycle.nodes:
            victims = tuple(other for other in node.pods if other.priority < pod.priority)
            if victims:
                return Nomination(node.name, victims)
        return unschedulable("nobody to evict")

    def pre_enqueue(self, pod) -> Status:
        return unschedulable("evictions are under way") if self.tools.preempting(pod) else SUCCESS

    def events_to_register(self) -> Iterable[Hint]:
        return (Hint("Pod", Action.DELETE),)
