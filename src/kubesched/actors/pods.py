"""What controllers of pods have in common: which pods are theirs, how a pod is made, which one goes first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubesched.actors.conditions import find_condition, is_true
from kubesched.actors.messages import Create, Effect, change
from kubesched.actors.view import View, owners_of
from kubesched.api.time import Duration, Instant, parse_rfc3339, seconds
from kubesched.apiserver.validation import selects

Json = dict[str, Any]

BURST = 50  # pods made or deleted in one go; the rest follows as soon as these have been seen
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def is_active(pod: Json) -> bool:
    """Whether a pod counts: it has not ended, and is not about to."""
    return phase_of(pod) not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def phase_of(pod: Json) -> str:
    phase: str = (pod.get("status") or {}).get("phase") or "Pending"
    return phase


def is_ready(pod: Json) -> bool:
    return is_true(pod, "Ready")


def available_at(pod: Json, min_ready_seconds: int) -> Instant | None:
    """When a pod counts as available, or None while it is not ready."""
    found = find_condition(pod, "Ready")
    if found is None or found.get("status") != "True":
        return None
    if not min_ready_seconds:
        return Instant(0)
    return Instant(parse_rfc3339(found["lastTransitionTime"]) + seconds(min_ready_seconds))


def owner_reference(owner: Json) -> Json:
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from(template: Json, owner: Json, *, name: str = "", prefix: str = "") -> Json:
    """A pod as its owner's template has it."""
    given = template.get("metadata") or {}
    meta: Json = {"name": name} if name else {"generateName": prefix}
    meta["namespace"] = owner["metadata"]["namespace"]
    meta.update({field: given[field] for field in ("labels", "annotations", "finalizers") if given.get(field)})
    meta["ownerReferences"] = [owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": dict(template.get("spec") or {})}


def create_pod(pod: Json) -> Create:
    return Create("pods", pod)


def claim(view: View, resource: str, owner: Json, selector: Json | None) -> tuple[list[Json], list[Effect]]:
    """The objects an owner controls; orphans that its selector means are adopted, strays let go."""
    meta = owner["metadata"]
    mine: list[Json] = []
    effects: list[Effect] = []
    for obj in view.controlled(resource, meta["uid"]):
        if selects(selector, obj["metadata"].get("labels") or {}) or "deletionTimestamp" in meta:
            mine.append(obj)
        else:
            kept = [ref for ref in owners_of(obj) if ref.get("uid") != meta["uid"]]
            effects.append(change(resource, obj, {"metadata": {"ownerReferences": kept}}))
    if "deletionTimestamp" in meta or not selector:
        return mine, effects
    for obj in view.orphans(resource, meta["namespace"]):
        fits = selects(selector, obj["metadata"].get("labels") or {})
        if fits and "deletionTimestamp" not in obj["metadata"] and (resource != "pods" or is_active(obj)):
            refs = [*owners_of(obj), owner_reference(owner)]
            effects.append(change(resource, obj, {"metadata": {"ownerReferences": refs}}))
            mine.append(obj)
    return mine, effects


def ranked_for_deletion(pods: Iterable[Json]) -> list[Json]:
    """Pods in the order in which they go: first those that would be missed least."""
    crowd: dict[str, int] = {}
    pods = list(pods)
    for pod in pods:
        node = _node_of(pod)
        crowd[node] = crowd.get(node, 0) + 1
    # Kept from kube-controller-manager (ActivePodsWithRanks), as far as what it looks at exists here.
    return sorted(
        pods,
        key=lambda pod: (
            bool(_node_of(pod)),
            {"Pending": 0, "Unknown": 1, "Running": 2}.get(phase_of(pod), 0),
            is_ready(pod),
            _deletion_cost(pod),
            -crowd[_node_of(pod)],
            _reversed(pod["metadata"]["creationTimestamp"]),
            pod["metadata"]["name"],
        ),
    )


def _node_of(pod: Json) -> str:
    node: str = (pod.get("spec") or {}).get("nodeName") or ""
    return node


def _deletion_cost(pod: Json) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _reversed(stamp: str) -> int:
    """Younger pods go first."""
    return -parse_rfc3339(stamp)


def amount(value: Any, total: int, *, up: bool) -> int:
    """An IntOrString: a number, or a percentage of the total."""
    if isinstance(value, str) and value.endswith("%"):
        share = int(value[:-1]) * total
        return -(-share // 100) if up else share // 100
    return int(value)


def is_available(pod: Json, min_ready_seconds: int, now: Instant) -> bool:
    at = available_at(pod, min_ready_seconds)
    return at is not None and at <= now


def available_later(pods: Iterable[Json], min_ready_seconds: int, now: Instant) -> Instant | None:
    """When the next of these pods becomes available by the passing of time alone."""
    moments = [at for pod in pods if (at := available_at(pod, min_ready_seconds)) is not None and at > now]
    return min(moments, default=None)


def since(stamp: str | None, now: Instant) -> Duration:
    """How long ago a moment was."""
    return Duration(now - parse_rfc3339(stamp)) if stamp else Duration(0)
