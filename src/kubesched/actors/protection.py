"""Volumes and claims that are in use do not vanish: who takes their finalizers off, and when.

The API server puts them on; a claim loses its own when it is being deleted and no pod uses it any more, a volume when
it is being deleted and not bound any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from kubesched.actors.controller import Controller
from kubesched.actors.messages import Effect, Seen, change
from kubesched.actors.pods import phase_of
from kubesched.actors.view import Key, key_of
from kubesched.actors.volumes import CLAIMS, VOLUMES
from kubesched.api.time import Instant

Json = dict[str, Any]

PODGROUPS = "scheduling.k8s.io/podgroups"
FINALIZERS = {
    CLAIMS: "kubernetes.io/pvc-protection",
    VOLUMES: "kubernetes.io/pv-protection",
    PODGROUPS: "scheduling.k8s.io/podgroup-protection",
}


class Protection(Controller):
    """Lets go of what nobody uses."""

    watches: ClassVar[tuple[str, ...]] = (*FINALIZERS, "pods")

    def concerned(self, seen: Seen) -> Iterable[Key]:
        if seen.resource != "pods":
            return [key_of(seen.resource, seen.new)] if seen.new is not None else []
        if seen.new is not None and phase_of(seen.new) not in ("Succeeded", "Failed"):
            return []
        meta = seen.last["metadata"]
        keys = [Key(CLAIMS, meta["namespace"], name) for name in claims_of(seen.last)]
        group = group_of(seen.last)
        return [*keys, Key(PODGROUPS, meta["namespace"], group)] if group else keys

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        obj = self.view.at(key)
        if obj is None or "deletionTimestamp" not in obj["metadata"] or self._is_used(key, obj):
            return
        held = obj["metadata"].get("finalizers") or []
        if FINALIZERS[key.resource] in held:
            kept = [name for name in held if name != FINALIZERS[key.resource]]
            yield change(key.resource, obj, {"metadata": {"finalizers": kept or None}})

    def _is_used(self, key: Key, obj: Json) -> bool:
        if key.resource == VOLUMES:
            return bool((obj.get("status") or {}).get("phase") == "Bound")
        pods = [self.view.at(one) for one in self.view.within(key.namespace) if one.resource == "pods"]
        alive = [pod for pod in pods if pod is not None and phase_of(pod) not in ("Succeeded", "Failed")]
        if key.resource == CLAIMS:
            return any(key.name in claims_of(pod) for pod in alive)
        return any(group_of(pod) == key.name for pod in alive)


def claims_of(pod: Json) -> list[str]:
    """The claims a pod uses."""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    named = [volume["persistentVolumeClaim"]["claimName"] for volume in volumes if volume.get("persistentVolumeClaim")]
    ephemeral = [f"{pod['metadata']['name']}-{volume['name']}" for volume in volumes if volume.get("ephemeral")]
    return named + ephemeral


def group_of(pod: Json) -> str:
    found = ((pod.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName")
    return str(found or "")
