"""Nodes that are not well: their condition becomes taints, and a kubelet that is silent becomes a condition.

    Ready False / Unknown            node.kubernetes.io/not-ready / unreachable: NoSchedule, and NoExecute
    MemoryPressure, DiskPressure …   node.kubernetes.io/memory-pressure …: NoSchedule
    spec.unschedulable               node.kubernetes.io/unschedulable: NoSchedule
    Lease not renewed for 50 s       Ready Unknown

Taints anybody else has put on a node stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from kubesched.actors.conditions import condition, find_condition, with_conditions
from kubesched.actors.controller import Controller
from kubesched.actors.messages import Effect, Seen, change
from kubesched.actors.node_agent import LEASE_NAMESPACE, LEASES
from kubesched.actors.view import Key
from kubesched.api.time import Duration, Instant, format_rfc3339, parse_rfc3339, seconds

Json = dict[str, Any]

PATIENCE: Duration = seconds(50)
_DOMAIN = "node.kubernetes.io/"
_LOST = {"False": "not-ready", "Unknown": "unreachable"}
_CONDITIONS = {
    ("MemoryPressure", "True"): "memory-pressure",
    ("DiskPressure", "True"): "disk-pressure",
    ("PIDPressure", "True"): "pid-pressure",
    ("NetworkUnavailable", "True"): "network-unavailable",
}
_OURS = frozenset((*_LOST.values(), *_CONDITIONS.values(), "unschedulable"))
_SILENT = ("NodeStatusUnknown", "Kubelet stopped posting node status.")


class NodeLifecycle(Controller):
    """Watches over nodes and their Leases."""

    watches: ClassVar[tuple[str, ...]] = ("nodes", LEASES)

    def concerned(self, seen: Seen) -> Iterable[Key]:
        meta = seen.last["metadata"]
        if seen.resource == LEASES:
            # A renewal is no reason to look: whoever waits for one too long looks then.
            first = seen.old is None and meta["namespace"] == LEASE_NAMESPACE
            return [Key("nodes", "", meta["name"])] if first else []
        return [Key("nodes", "", meta["name"])] if seen.new is not None else []

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        node = self.view.at(key)
        if node is None:
            return
        if self._is_silent(key, now):
            ready = find_condition(node, "Ready")
            if ready is None or ready.get("status") != "Unknown":
                told = with_conditions(node, [condition("Ready", "Unknown", now, *_SILENT)])
                yield change("nodes", node, {"status": {"conditions": told}}, subresource="status")
                return  # the taints follow when this has been seen
        taints = (node.get("spec") or {}).get("taints") or []
        wanted = self._wanted(node)
        kept = [taint for taint in taints if not _is_ours(taint) or _name_of(taint) in wanted]
        have = {_name_of(taint) for taint in kept}
        new = [_taint(*name, now) for name in wanted if name not in have]
        if new or len(kept) != len(taints):
            yield change("nodes", node, {"spec": {"taints": [*kept, *new] or None}})

    def _is_silent(self, key: Key, now: Instant) -> bool:
        """Whether the node has a Lease that nobody renews."""
        lease = self.view.get(LEASES, LEASE_NAMESPACE, key.name)
        renewed = None if lease is None else (lease.get("spec") or {}).get("renewTime")
        if not renewed:
            return False
        due = Instant(parse_rfc3339(renewed) + PATIENCE)
        if now < due:
            self.wake(key, due)
            return False
        return True

    def _wanted(self, node: Json) -> dict[tuple[str, str], None]:
        """(key, effect) of the taints this node deserves."""
        found: list[tuple[str, str]] = []
        ready = find_condition(node, "Ready")
        lost = None if ready is None else _LOST.get(ready.get("status", ""))
        if ready is None:  # its kubelet has not spoken yet: the taint it came with stays, if it came with one
            new = _DOMAIN + "not-ready", "NoSchedule"
            found += [new for taint in (node.get("spec") or {}).get("taints") or () if _name_of(taint) == new]
        elif lost is not None:
            found += [(_DOMAIN + lost, "NoSchedule"), (_DOMAIN + lost, "NoExecute")]
        for one in (node.get("status") or {}).get("conditions") or ():
            name = _CONDITIONS.get((one.get("type"), one.get("status")))
            if name is not None:
                found.append((_DOMAIN + name, "NoSchedule"))
        if (node.get("spec") or {}).get("unschedulable"):
            found.append((_DOMAIN + "unschedulable", "NoSchedule"))
        return dict.fromkeys(found)


def _name_of(taint: Json) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")


def _is_ours(taint: Json) -> bool:
    domain, slash, name = taint.get("key", "").partition("/")
    return domain + slash == _DOMAIN and name in _OURS


def _taint(key: str, effect: str, now: Instant) -> Json:
    taint = {"key": key, "effect": effect}
    return taint | {"timeAdded": format_rfc3339(now)} if effect == "NoExecute" else taint
