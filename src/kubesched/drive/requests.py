"""What an API server makes of a scheduler's effects: each one a request, and its answer.

Whoever performs effects, says when and whether a request arrives at all; here is what it does when it does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from kubesched.api.kinds import Kind
from kubesched.api.objects import Invalid, Object, read_or_invalid
from kubesched.api.time import Instant
from kubesched.apiserver.status import ApiError
from kubesched.apiserver.store import WatchEvent
from kubesched.core.messages import AnyEffect, Bind, Call, Evict, Observed, PatchPod, Publish, ReadPod
from kubesched.framework.steps import Answer, Create, Delete, Failure, Patch

Json = dict[str, Any]


class Cluster(Protocol):
    """What an API server in this process can do.  Raises ApiError where it refuses."""

    @property
    def kinds(self) -> Mapping[str, Kind]: ...

    def get(self, kind: str, namespace: str, name: str) -> Json: ...

    def create(self, obj: Mapping[str, Any]) -> Json: ...

    def patch(
        self, kind: str, namespace: str, name: str, body: Mapping[str, Any], resource_version: str = ""
    ) -> Json: ...

    def delete(self, kind: str, namespace: str, name: str, *, uid: str = "", grace: int | None = None) -> None: ...

    def bind(self, namespace: str, name: str, node: str, uid: str = "", resource_version: str = "") -> Json: ...

    def say(
        self,
        namespace: str,
        name: str,
        uid: str,
        condition: Json | None = None,
        nominated: str | None = None,
        resource_version: str = "",
    ) -> Json: ...

    def evict(self, namespace: str, name: str, uid: str, message: str, grace: int | None = None) -> None: ...


class Requests:
    """Carries effects out in a cluster.

    Args:
        publish: what is done with Events for people; without it `published` keeps them, with their times.
    """

    def __init__(
        self, cluster: Cluster, now: Callable[[], Instant], publish: Callable[[Publish], None] | None = None
    ) -> None:
        self.cluster, self._now = cluster, now
        self.published: list[tuple[Instant, Publish]] = []
        self._tell = publish or self._keep
        self._performers: dict[type[AnyEffect], Callable[[Any], Answer]] = {
            Bind: self._bind,
            PatchPod: self._patch_pod,
            ReadPod: self._read_pod,
            Evict: self._evict,
            Publish: self._publish,
            Call: self._call,
        }

    def carry_out(self, effect: AnyEffect) -> Answer:
        """Do it now, and say what the API server says."""
        try:
            return self._performers[type(effect)](effect)
        except ApiError as error:
            return Answer(failure=Failure(error.reason, error.message, error.code))

    def _bind(self, effect: Bind) -> Answer:
        namespace, name = split(effect.pod)
        return self._answer("Pod", self.cluster.bind(namespace, name, effect.node, effect.uid, effect.resource_version))

    def _patch_pod(self, effect: PatchPod) -> Answer:
        namespace, name = split(effect.pod)
        condition = None if effect.condition is None else msgspec.to_builtins(effect.condition)
        nominated, version = effect.nominated_node_name, effect.resource_version
        return self._answer("Pod", self.cluster.say(namespace, name, effect.uid, condition, nominated, version))

    def _read_pod(self, effect: ReadPod) -> Answer:
        return self._answer("Pod", self.cluster.get("Pod", *split(effect.pod)))

    def _evict(self, effect: Evict) -> Answer:
        namespace, name = split(effect.pod)
        grace = None if effect.grace is None else effect.grace // 1_000_000_000
        self.cluster.evict(namespace, name, effect.uid, effect.message, grace)
        return Answer()

    def _publish(self, effect: Publish) -> Answer:
        self._tell(effect)
        return Answer()

    def _keep(self, effect: Publish) -> None:
        self.published.append((self._now(), effect))

    def _call(self, effect: Call) -> Answer:
        match effect.step:
            case Patch(kind, key, body, version, _):
                return self._answer(kind, self.cluster.patch(kind, *split(key), body, version))
            case Create(kind, _, body):
                return self._answer(kind, self.cluster.create({**body, "kind": kind}))
            case Delete(kind, key, uid):
                self.cluster.delete(kind, *split(key), uid=uid)
                return Answer()
            case _:
                unreachable = Failure("Unreachable", "extenders are not asked in a played cluster", applied="no")
                return Answer(failure=unreachable)

    def observed(self, kind: str, event: WatchEvent) -> Observed:
        """A line of a watch as the core is told it."""
        return Observed(self.view(kind, event.obj), gone=event.type == "DELETED")

    def view(self, kind: str, obj: dict[str, Any]) -> Object:
        """An object of the store as the core sees it."""
        read: Any = read_or_invalid(obj, self.cluster.kinds[kind].view)
        checked: Object = read
        return checked

    def _answer(self, kind: str, obj: dict[str, Any]) -> Answer:
        seen = self.view(kind, obj)
        return Answer(obj=None if isinstance(seen, Invalid) else seen)


def split(key: str) -> tuple[str, str]:
    """Namespace and name; no namespace where there is none."""
    namespace, _, name = key.rpartition("/")
    return namespace, name
