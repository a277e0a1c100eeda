"""Pods whose node is no place for them any more: taints with NoExecute, and nodes that are gone.

A pod that does not tolerate a NoExecute taint is deleted at once; one that tolerates it for so many seconds, when
they are over, unless the taint goes first.  A pod on a node that does not exist is deleted after a while, since no
kubelet will ever do it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from kubesched.actors.conditions import condition, find_condition, with_conditions
from kubesched.actors.controller import Controller
from kubesched.actors.messages import Effect, Seen, change, delete
from kubesched.actors.view import Key, View, key_of
from kubesched.api.objects import Pod, Taint, read
from kubesched.api.selectors import tolerates
from kubesched.api.time import Duration, Instant, parse_rfc3339, seconds

Json = dict[str, Any]

QUARANTINE: Duration = seconds(40)


class Evictions(Controller):
    """Watches taints of nodes, and pods on them."""

    watches: ClassVar[tuple[str, ...]] = ("nodes", "pods")

    def __init__(self, view: View | None = None) -> None:
        super().__init__(view)
        self._missing: dict[str, Instant] = {}  # node → since when it has been missing

    def concerned(self, seen: Seen) -> Iterable[Key]:
        if seen.resource == "pods":
            return [key_of("pods", seen.new)] if seen.new is not None and _node_of(seen.new) else []
        name = seen.last["metadata"]["name"]
        if seen.old is not None and seen.new is not None and _no_execute(seen.old) == _no_execute(seen.new):
            return []
        self._missing.pop(name, None)
        return [key_of("pods", pod) for pod in self.view.pods_on(name)]

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        pod = self.view.at(key)
        if pod is None:
            return
        node = self.view.get("nodes", "", _node_of(pod))
        if node is None:
            yield from self._orphaned(key, pod, now)
        elif "deletionTimestamp" not in pod["metadata"]:
            taints = _no_execute(node)
            due = _last_moment(pod, taints, now) if taints else None
            if due is not None and due > now:
                self.wake(key, due)
            elif due is not None:
                yield from _evict(pod, now)

    def _orphaned(self, key: Key, pod: Json, now: Instant) -> Iterator[Effect]:
        due = Instant(self._missing.setdefault(_node_of(pod), now) + QUARANTINE)
        if now < due:
            self.wake(key, due)
        else:
            yield delete("pods", pod, grace=0)


def _node_of(pod: Json) -> str:
    node: str = (pod.get("spec") or {}).get("nodeName") or ""
    return node


def _no_execute(node: Json) -> list[Json]:
    return [taint for taint in (node.get("spec") or {}).get("taints") or () if taint.get("effect") == "NoExecute"]


def _last_moment(pod: Json, taints: list[Json], now: Instant) -> Instant | None:
    """Until when a pod may stay; None for ever."""
    tolerations = read(pod, Pod).spec.tolerations
    moments: list[Instant] = []
    for raw in taints:
        taint = Taint(key=raw.get("key", ""), value=raw.get("value", ""), effect=raw["effect"])
        mine = [one for one in tolerations if tolerates([one], taint)]
        if not mine:
            return now
        spans = [one.toleration_seconds for one in mine if one.toleration_seconds is not None]
        if spans:
            added = parse_rfc3339(raw["timeAdded"]) if raw.get("timeAdded") else now
            moments.append(Instant(added + seconds(max(0, min(spans)))))
    return min(moments, default=None)


def _evict(pod: Json, now: Instant) -> Iterator[Effect]:
    if find_condition(pod, "DisruptionTarget") is None:
        message = "Taint manager: deleting due to NoExecute taint"
        reason = condition("DisruptionTarget", "True", now, "DeletionByTaintManager", message, lastProbeTime=None)
        body = {"status": {"conditions": with_conditions(pod, [reason])}}
        yield change("pods", pod, body, subresource="status")
    yield delete("pods", pod)
