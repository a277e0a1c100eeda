"""Disruption budgets: how many of their pods may be missed at this moment.

The numbers that evictions and preemption look at.  `kubectl drain` waits for them, and a scheduler chooses victims by
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from kubesched.actors.conditions import condition, with_conditions
from kubesched.actors.controller import Controller
from kubesched.actors.messages import Effect, Seen
from kubesched.actors.pods import amount, is_active, is_ready, phase_of
from kubesched.actors.replicaset import changed_status, replicas_of
from kubesched.actors.view import Key, controller_of, key_of
from kubesched.api.time import Duration, Instant, minutes, parse_rfc3339
from kubesched.apiserver.validation import selects

Json = dict[str, Any]

BUDGETS = "policy/poddisruptionbudgets"
_FORGIVEN_AFTER: Duration = minutes(2)
_SCALED = {
    "ReplicaSet": "apps/replicasets",
    "ReplicationController": "replicationcontrollers",
    "StatefulSet": "apps/statefulsets",
}


class Disruption(Controller):
    """Counts for budgets."""

    watches: ClassVar[tuple[str, ...]] = (BUDGETS, "pods")

    def concerned(self, seen: Seen) -> Iterable[Key]:
        if seen.resource == BUDGETS:
            return [key_of(BUDGETS, seen.last)]
        meta = seen.last["metadata"]
        return [
            key_of(BUDGETS, budget)
            for budget in self.view.all(BUDGETS)
            if budget["metadata"]["namespace"] == meta["namespace"]
        ]

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        budget = self.view.at(key)
        if budget is None:
            return
        spec = budget["spec"]
        pods = [
            pod
            for one in self.view.within(key.namespace)
            if one.resource == "pods"
            and (pod := self.view.at(one)) is not None
            and selects(spec.get("selector"), pod["metadata"].get("labels") or {})
            and phase_of(pod) not in ("Succeeded", "Failed")
        ]
        disrupted = self._disrupted(key, budget, pods, now)
        healthy = sum(is_ready(pod) and is_active(pod) and pod["metadata"]["name"] not in disrupted for pod in pods)
        expected, desired = self._wanted(spec, pods)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        reason = "SufficientPods" if allowed else "InsufficientPods"
        generation = budget["metadata"].get("generation", 1)
        found = condition(
            "DisruptionAllowed", "True" if allowed else "False", now, reason, observedGeneration=generation
        )
        status: Json = {
            "expectedPods": expected,
            "desiredHealthy": desired,
            "currentHealthy": healthy,
            "disruptionsAllowed": allowed,
            "observedGeneration": generation,
            "conditions": with_conditions(budget, [found]),
        }
        granted = (budget.get("status") or {}).get("disruptedPods") or {}
        stale = {name: None for name in granted if name not in disrupted}
        if stale:
            status["disruptedPods"] = stale
        yield from changed_status(BUDGETS, budget, status)

    def _disrupted(self, key: Key, budget: Json, pods: list[Json], now: Instant) -> dict[str, None]:
        """Pods whose eviction was granted and who are not gone yet; those that never go are forgiven."""
        there = {pod["metadata"]["name"]: pod for pod in pods}
        found: dict[str, None] = {}
        for name, stamp in ((budget.get("status") or {}).get("disruptedPods") or {}).items():
            due = Instant(parse_rfc3339(stamp) + _FORGIVEN_AFTER)
            if name in there and "deletionTimestamp" not in there[name]["metadata"] and now < due:
                found[name] = None
                self.wake(key, due)
        return found

    def _wanted(self, spec: Json, pods: list[Json]) -> tuple[int, int]:
        """How many pods there should be, and how many of them have to be well."""
        least = spec.get("minAvailable")
        most = spec.get("maxUnavailable")
        if isinstance(least, int):
            return len(pods), least
        expected = self._expected(pods)
        if least is not None:
            return expected, amount(least, expected, up=True)
        if most is not None:
            return expected, max(0, expected - amount(most, expected, up=True))
        return len(pods), 1

    def _expected(self, pods: list[Json]) -> int:
        """The sum of what the owners of the pods want."""
        owners: dict[str, int] = {}
        alone = 0
        for pod in pods:
            ref = controller_of(pod)
            resource = _SCALED.get(ref["kind"]) if ref is not None else None
            owner = self.view.get(resource, pod["metadata"]["namespace"], ref["name"]) if ref and resource else None
            if owner is None:
                alone += 1
            else:
                owners[owner["metadata"]["uid"]] = replicas_of(owner)
        return sum(owners.values()) + alone
