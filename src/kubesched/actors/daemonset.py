"""DaemonSets: one pod on every node that wants it.

A pod is made for its node: a node affinity names it, and the scheduler does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar

from kubesched.actors.controller import Controller, owner_key
from kubesched.actors.messages import Effect, Seen, delete
from kubesched.actors.pods import (
    BURST,
    amount,
    available_later,
    claim,
    create_pod,
    is_active,
    is_available,
    is_ready,
    phase_of,
    pod_from,
)
from kubesched.actors.replicaset import changed_status
from kubesched.actors.revisions import (
    HASH,
    REVISIONS,
    forget_revisions,
    hash_of,
    hash_on,
    keep_revision,
    revisions_of,
)
from kubesched.actors.view import Key, View, key_of
from kubesched.api.objects import Node, Pod, read
from kubesched.api.selectors import untolerated
from kubesched.api.time import Instant
from kubesched.cluster.podinfo import PodInfo

Json = dict[str, Any]

DAEMONSETS = "apps/daemonsets"
_KINDS = {"DaemonSet": DAEMONSETS}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_DOMAIN = "node.kubernetes.io/"
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


class DaemonSets(Controller):
    """Keeps a pod on every node."""

    watches: ClassVar[tuple[str, ...]] = (DAEMONSETS, REVISIONS, "nodes", "pods")

    def __init__(self, view: View | None = None) -> None:
        super().__init__(view)
        self._read: dict[str, tuple[Json, Node]] = {}

    def concerned(self, seen: Seen) -> Iterable[Key]:
        if seen.resource == DAEMONSETS:
            return [key_of(DAEMONSETS, seen.last)]
        if seen.resource == "nodes":
            if seen.new is None:
                self._read.pop(seen.last["metadata"]["name"], None)
            if seen.old is not None and seen.new is not None and _place(seen.old) == _place(seen.new):
                return []
            return [key_of(DAEMONSETS, one) for one in self.view.all(DAEMONSETS)]
        return dict.fromkeys(key for obj in (seen.old, seen.new) if obj is not None for key in owner_key(obj, _KINDS))

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        owner = self.view.at(key)
        if owner is None:
            return
        pods, effects = claim(self.view, "pods", owner, owner["spec"].get("selector"))
        yield from effects
        spread = Spread(owner, map(self._node, self.view.all("nodes")), pods, now)
        later = available_later(pods, spread.patience, now)
        if later is not None:
            self.wake(key, later)
        if "deletionTimestamp" not in owner["metadata"]:
            known = revisions_of(self.view, owner)
            yield from keep_revision(known, owner)
            yield from forget_revisions(known, owner, {hash_on(pod) for pod in pods})
            yield from islice(spread.repair(), BURST)
            yield from spread.renew()
        yield from changed_status(DAEMONSETS, owner, spread.status())

    def _node(self, raw: Json) -> Node:
        """The view of a node, made once for every version of it."""
        name = raw["metadata"]["name"]
        known = self._read.get(name)
        if known is None or known[0] is not raw:
            known = self._read[name] = (raw, read(raw, Node))
        return known[1]


class Spread:
    """A DaemonSet over its nodes."""

    def __init__(self, owner: Json, nodes: Iterable[Node], pods: list[Json], now: Instant) -> None:
        self.owner, self.now = owner, now
        self.patience = owner["spec"].get("minReadySeconds") or 0
        self.hash = hash_of(owner)
        probe = self._pod("")
        info = PodInfo(read(probe, Pod))
        self.wants: dict[str, bool] = {}  # node → a new pod belongs there
        self.keeps: dict[str, bool] = {}  # node → a pod that is there may stay
        for node in nodes:
            name = node.metadata.name
            fits = info.wants_node(node.metadata.labels, name)
            taints, tolerations = node.spec.taints, info.pod.spec.tolerations
            self.wants[name] = fits and untolerated(taints, tolerations) is None
            self.keeps[name] = fits and untolerated(taints, tolerations, ("NoExecute",)) is None
        self.on: dict[str, list[Json]] = {}
        for pod in sorted(pods, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"])):
            self.on.setdefault(target_of(pod), []).append(pod)

    def _pod(self, node: str) -> Json:
        """The pod of a node; of none in particular where it is not named."""
        name = self.owner["metadata"]["name"]
        pod = pod_from(self.owner["spec"].get("template") or {}, self.owner, prefix=f"{name}-")
        pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), HASH: self.hash}
        spec = pod["spec"]
        given = list(spec.get("tolerations") or ())
        more = _TOLERATED + ((("network-unavailable", "NoSchedule"),) if spec.get("hostNetwork") else ())
        made = ({"key": _DOMAIN + name, "operator": "Exists", "effect": effect} for name, effect in more)
        spec["tolerations"] = [*given, *(one for one in made if one not in given)]
        if node:
            spec["affinity"] = _pinned(spec.get("affinity") or {}, node)
        return pod

    def repair(self) -> Iterator[Effect]:
        """A pod where one is missing, none where none belongs."""
        for node, wanted in self.wants.items():
            there = self.on.get(node, [])
            yield from (delete("pods", pod) for pod in there if phase_of(pod) in ("Failed", "Succeeded"))
            alive = [pod for pod in there if is_active(pod)]
            if not there and wanted:
                yield create_pod(self._pod(node))
            elif not self.keeps[node]:
                yield from (delete("pods", pod) for pod in alive)
            else:
                yield from (delete("pods", pod) for pod in alive[1:])
        for node, pods in self.on.items():
            if node and node not in self.wants:
                yield from (delete("pods", pod) for pod in pods if is_active(pod))

    def renew(self) -> Iterator[Effect]:
        """Replace pods of older versions, a few at a time."""
        strategy = self.owner["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        rolling = strategy.get("rollingUpdate") or {}
        wanted = [node for node, wants in self.wants.items() if wants]
        room = max(1, amount(rolling.get("maxUnavailable", 1), len(wanted), up=True))
        alive = {node: [pod for pod in self.on.get(node, []) if is_active(pod)] for node in wanted}
        room -= sum(not any(self._available(pod) for pod in pods) for pods in alive.values())
        for pods in alive.values():
            for pod in pods:
                if hash_on(pod) == self.hash:
                    continue
                if not self._available(pod):
                    yield delete("pods", pod)
                elif room > 0:
                    room -= 1
                    yield delete("pods", pod)

    def _available(self, pod: Json) -> bool:
        return is_available(pod, self.patience, self.now)

    def status(self) -> Json:
        wanted = [node for node, wants in self.wants.items() if wants]
        first = {node: pods[0] for node in wanted if (pods := [p for p in self.on.get(node, []) if is_active(p)])}
        strays = sum(
            any(is_active(pod) for pod in pods) for node, pods in self.on.items() if not self.wants.get(node, False)
        )
        available = sum(self._available(pod) for pod in first.values())
        return {
            "currentNumberScheduled": len(first),
            "desiredNumberScheduled": len(wanted),
            "numberMisscheduled": strays,
            "numberReady": sum(is_ready(pod) for pod in first.values()),
            "numberAvailable": available,
            "numberUnavailable": len(wanted) - available,
            "updatedNumberScheduled": sum(hash_on(pod) == self.hash for pod in first.values()),
            "observedGeneration": self.owner["metadata"].get("generation", 1),
        }


def _place(node: Json) -> tuple[Any, Any]:
    """What decides whether a pod belongs on a node."""
    return node["metadata"].get("labels"), (node.get("spec") or {}).get("taints")


def _pinned(affinity: Json, node: str) -> Json:
    """An affinity to this node and no other; what else was required of nodes has been looked at already."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = ((affinity.get("nodeAffinity") or {}).get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    pinned = [{**term, "matchFields": [*(term.get("matchFields") or ()), field]} for term in terms]
    nodes = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: {"nodeSelectorTerms": pinned}}
    return {**affinity, "nodeAffinity": nodes}


def target_of(pod: Json) -> str:
    """The node a pod is on, or was made for."""
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""
