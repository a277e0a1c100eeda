"""ReplicaSets and ReplicationControllers: as many pods as they say, no more, no fewer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from kubesched.actors.controller import Controller, owner_key
from kubesched.actors.messages import Effect, Seen, change, delete
from kubesched.actors.pods import (
    BURST,
    available_later,
    claim,
    create_pod,
    is_active,
    is_available,
    is_ready,
    pod_from,
    ranked_for_deletion,
)
from kubesched.actors.view import Key, key_of, orphaned
from kubesched.api.time import Instant
from kubesched.apiserver.validation import selects

Json = dict[str, Any]

REPLICASETS, CONTROLLERS = "apps/replicasets", "replicationcontrollers"
_KINDS = {"ReplicaSet": REPLICASETS, "ReplicationController": CONTROLLERS}


class ReplicaSets(Controller):
    """Keeps the number of pods."""

    watches: ClassVar[tuple[str, ...]] = (REPLICASETS, CONTROLLERS, "pods")

    def concerned(self, seen: Seen) -> Iterable[Key]:
        if seen.resource != "pods":
            return [key_of(seen.resource, seen.last)]
        keys = [key for obj in (seen.old, seen.new) if obj is not None for key in owner_key(obj, _KINDS)]
        if seen.new is not None and orphaned(seen.new):
            keys += self._who_may_adopt(seen.new)
        return dict.fromkeys(keys)

    def _who_may_adopt(self, pod: Json) -> list[Key]:
        meta = pod["metadata"]
        if not meta.get("labels"):
            return []
        return [
            key_of(resource, owner)
            for resource in (REPLICASETS, CONTROLLERS)
            for owner in self.view.all(resource)
            if owner["metadata"]["namespace"] == meta["namespace"] and selects(selector_of(owner), meta["labels"])
        ]

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        owner = self.view.at(key)
        if owner is None:
            return
        pods, effects = claim(self.view, "pods", owner, selector_of(owner))
        yield from effects
        active = [pod for pod in pods if is_active(pod)]
        spec = owner["spec"]
        if "deletionTimestamp" not in owner["metadata"]:
            yield from self._count(owner, active, replicas_of(owner))
        patience = spec.get("minReadySeconds") or 0
        later = available_later(active, patience, now)
        if later is not None:
            self.wake(key, later)
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        status = {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(_has_labels(pod, labels) for pod in active),
            "readyReplicas": sum(is_ready(pod) for pod in active),
            "availableReplicas": sum(is_available(pod, patience, now) for pod in active),
            "observedGeneration": owner["metadata"].get("generation", 1),
        }
        yield from changed_status(key.resource, owner, status)

    def _count(self, owner: Json, active: list[Json], wanted: int) -> Iterator[Effect]:
        missing = wanted - len(active)
        template = owner["spec"].get("template") or {}
        for _ in range(min(missing, BURST)):
            yield create_pod(pod_from(template, owner, prefix=f"{owner['metadata']['name']}-"))
        if missing < 0:
            for pod in ranked_for_deletion(active)[: min(-missing, BURST)]:
                yield delete("pods", pod)


def _has_labels(pod: Json, labels: Json) -> bool:
    return labels.items() <= (pod["metadata"].get("labels") or {}).items()


def replicas_of(owner: Json) -> int:
    """How many are wanted; one where nothing is said."""
    found = owner["spec"].get("replicas")
    return 1 if found is None else int(found)


def selector_of(owner: Json) -> Json | None:
    """The selector as a LabelSelector; a ReplicationController's is a plain map, or its template's labels."""
    selector: Json | None = owner["spec"].get("selector")
    if owner.get("kind") == "ReplicationController":
        labels = ((owner["spec"].get("template") or {}).get("metadata") or {}).get("labels")
        return {"matchLabels": selector or labels or {}}
    return selector


def changed_status(resource: str, obj: Json, status: Json) -> Iterator[Effect]:
    """The change of a status, where there is any."""
    told = obj.get("status") or {}
    different = {name: value for name, value in status.items() if told.get(name, _nothing_like(value)) != value}
    if different:
        yield change(resource, obj, {"status": different}, subresource="status")


def _nothing_like(value: Any) -> Any:
    """What a field that is not there means."""
    return 0 if isinstance(value, int) else None
