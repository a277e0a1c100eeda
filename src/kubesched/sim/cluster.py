"""The API server of virtual time: the embedded server's store, and the verbs a scheduler and a scenario need.

No HTTP and no schema: objects are plain dictionaries, kept whole.  What matters to a scheduler is the real thing:
resource versions, preconditions, bindings that only take while the pod is still free, and watches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any

from kubesched.api.kinds import KNOWN, Kind
from kubesched.api.time import Instant, format_rfc3339
from kubesched.apiserver import status
from kubesched.apiserver.patch_merge import merge_patch
from kubesched.apiserver.status import ApiError
from kubesched.apiserver.store import DeleteOptions, GraceRule, Preconditions, Store, Watch, pod_grace

Json = dict[str, Any]

WATCHED = tuple(sorted(KNOWN))


class Cluster:
    """Objects, and what may be done to them.  Raises ApiError where a real API server would refuse.

    Args:
        kinds: what is kept besides the kinds every scheduler knows.
    """

    def __init__(self, now: Callable[[], int], luck: Random, kinds: Iterable[Kind] = ()) -> None:
        self._now = now
        self.kinds: Mapping[str, Kind] = {**KNOWN, **{kind.name: kind for kind in kinds}}
        self.store = Store(now=now, luck=luck)
        self.grace: GraceRule | None = None  # set where a kubelet is played: pods then go gracefully

    # ── any object ───────────────────────────────────────────────────────────────────────────────────────────

    def create(self, obj: Mapping[str, Any]) -> Json:
        """Store a new object; a pod without a namespace is in `default`."""
        kind = self._kind(obj)
        _check_json(obj, kind)
        meta = dict(obj.get("metadata") or {})
        if not self.kinds[kind].namespaced:
            meta.pop("namespace", None)
        else:
            meta.setdefault("namespace", "default")
        meta.pop("resourceVersion", None)
        return self.store.create(self.resource_of(kind), {**obj, "metadata": meta}).obj

    def find(self, kind: str, namespace: str, name: str) -> Json | None:
        found = self.store.find(self.resource_of(kind), self._place(kind, namespace), name)
        return None if found is None else found.obj

    def get(self, kind: str, namespace: str, name: str) -> Json:
        return self.store.get(self.resource_of(kind), self._place(kind, namespace), name).obj

    def list(self, kind: str, namespace: str | None = None) -> list[Json]:
        return [stored.obj for stored in self.store.list(self.resource_of(kind), namespace).items]

    def patch(self, kind: str, namespace: str, name: str, body: Mapping[str, Any], resource_version: str = "") -> Json:
        """Merge a change into an object (RFC 7386)."""
        _check_json(body, "patch")
        return self._change(
            kind, namespace, name, lambda old: merge_patch(old, body), Preconditions(None, resource_version or None)
        )

    def delete(self, kind: str, namespace: str, name: str, *, uid: str = "", grace: int | None = None) -> None:
        options = DeleteOptions(grace_period_seconds=grace, preconditions=Preconditions(uid) if uid else None)
        rule = self.grace if kind == "Pod" else None
        self.store.delete(self.resource_of(kind), self._place(kind, namespace), name, options, grace=rule)

    def watch(self, kind: str, on_ready: Callable[[], None]) -> Watch:
        return self.store.watch(self.resource_of(kind), on_ready=on_ready)

    # ── pods ─────────────────────────────────────────────────────────────────────────────────────────────────

    def bind(self, namespace: str, name: str, node: str, uid: str = "", resource_version: str = "") -> Json:
        """What a POST to a pod's binding does, and when it refuses."""

        def bound(pod: Json) -> Json:
            spec, meta = pod.get("spec") or {}, pod["metadata"]
            if meta.get("deletionTimestamp"):
                raise status.conflict(
                    "pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host"
                )
            if spec.get("nodeName"):
                why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
                raise status.conflict("pods/binding", name, why)
            if spec.get("schedulingGates"):
                raise status.conflict("pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")
            scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": self._stamp()}
            said = {k: v for k, v in (pod.get("status") or {}).items() if k != "nominatedNodeName"}
            said["conditions"] = _with_condition(said.get("conditions"), scheduled)
            return {**pod, "spec": {**spec, "nodeName": node}, "status": said}

        return self._change("Pod", namespace, name, bound, Preconditions(uid or None, resource_version or None))

    def say(
        self,
        namespace: str,
        name: str,
        uid: str,
        condition: Json | None = None,
        nominated: str | None = None,
        resource_version: str = "",
    ) -> Json:
        """Patch a pod's status: a condition, the node it was promised, or both."""

        def told(pod: Json) -> Json:
            said = dict(pod.get("status") or {})
            if condition is not None:
                said["conditions"] = _with_condition(said.get("conditions"), condition)
            if nominated:
                said["nominatedNodeName"] = nominated
            elif nominated == "":
                said.pop("nominatedNodeName", None)
            return {**pod, "status": said}

        return self._change("Pod", namespace, name, told, Preconditions(uid or None, resource_version or None))

    def evict(self, namespace: str, name: str, uid: str, message: str, grace: int | None = None) -> None:
        """Say why a pod has to go, and delete it."""
        reason = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": message}
        self.say(namespace, name, uid, {**reason, "lastTransitionTime": self._stamp()})
        self.delete("Pod", namespace, name, uid=uid, grace=grace)

    def _change(
        self, kind: str, namespace: str, name: str, change: Callable[[Json], Json], only_if: Preconditions
    ) -> Json:
        return self.store.guaranteed_update(
            self.resource_of(kind), self._place(kind, namespace), name, change, preconditions=only_if
        ).obj

    def resource_of(self, kind: str) -> str:
        """Where the store keeps a kind: `pods`, `apps/replicasets`."""
        return self._known(kind).resource

    def _kind(self, obj: Mapping[str, Any]) -> str:
        return self._known(obj.get("kind")).name

    def _known(self, kind: object) -> Kind:
        if not isinstance(kind, str) or kind not in self.kinds:
            known = ", ".join(sorted(self.kinds))
            remedy = "a kind of your own is kept where a plugin says that it reads it"
            raise ApiError(
                400, "BadRequest", f"kind: {kind!r} is not a kind this cluster keeps; it keeps {known}; {remedy}"
            )
        return self.kinds[kind]

    def _place(self, kind: str, namespace: str) -> str:
        return (namespace or "default") if self._known(kind).namespaced else ""

    def _stamp(self) -> str:
        return format_rfc3339(Instant(self._now()))


def die_gracefully(cluster: Cluster) -> None:
    """From now on a deleted pod stays until its kubelet lets it go."""
    cluster.grace = pod_grace


_DEPTH_MAX = 64
_INTEGER_MAX = (1 << 63) - 1


def _check_json(value: Any, path: str, depth: int = 0) -> None:
    """Refuse what JSON cannot say: an API server would never have heard of it, and no journal could tell of it."""
    problem = ""
    match value:
        case None | bool():
            pass
        case int() if abs(value) > _INTEGER_MAX:
            problem = "the integer does not fit 64 bits; write it as a string"
        case int():
            pass
        case float() if value - value != 0:
            problem = f"{value} is not a number"
        case float():
            pass
        case str():
            if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
                problem = "the text has half a character (a lone surrogate)"
        case Mapping() | list() | tuple() if depth >= _DEPTH_MAX:
            problem = f"nested deeper than {_DEPTH_MAX} levels"
        case Mapping():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise ApiError(400, "BadRequest", f"{path}: the key {key!r} is not a string")
                _check_json(key, path, depth + 1)
                _check_json(item, f"{path}.{key}", depth + 1)
        case list() | tuple():
            for i, item in enumerate(value):
                _check_json(item, f"{path}[{i}]", depth + 1)
        case _:
            problem = f"{type(value).__name__} is not a JSON value"
    if problem:
        raise ApiError(400, "BadRequest", f"{path}: {problem}")


def _with_condition(conditions: list[Json] | None, condition: Json) -> list[Json]:
    kept = [c for c in conditions or [] if c.get("type") != condition["type"]]
    return [*kept, condition]
