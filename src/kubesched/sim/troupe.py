"""The rest of a cluster, played in virtual time: the same kubelets and controllers as in an embedded cluster.

News reach the actors as late as they reach a scheduler; what they write is written at once.  Their alarms are entries
of the agenda, so a rollout that takes minutes is over in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from kubesched.actors.cast import cast
from kubesched.actors.company import Actor, Company
from kubesched.actors.kubelet import Stages
from kubesched.api.kinds import CustomResource, kind_of
from kubesched.api.time import Duration, Instant
from kubesched.apiserver.patch_merge import merge_patch
from kubesched.apiserver.store import DeleteOptions, Preconditions, Store, pod_grace
from kubesched.sim.seat import Clock

Json = dict[str, Any]


class Deployment(CustomResource, frozen=True):
    group = "apps"


class DaemonSet(CustomResource, frozen=True):
    group = "apps"


class ControllerRevision(CustomResource, frozen=True):
    group = "apps"


class Job(CustomResource, frozen=True):
    group = "batch"


class Lease(CustomResource, frozen=True):
    group = "coordination.k8s.io"


PLAYED = tuple(kind_of(view) for view in (Deployment, DaemonSet, ControllerRevision, Job, Lease))
"""What is kept where actors play, besides the kinds a scheduler reads."""


class Playing(Struct, frozen=True):
    """Who plays in a scenario, and how.

    Args:
        stages: how long things take on a node.
        heartbeat: how often nodes renew their Leases; None for no Leases.
    """

    stages: Stages = Stages()
    heartbeat: Duration | None = None

    def actors(self) -> tuple[Actor, ...]:
        return cast(stages=self.stages, heartbeat=self.heartbeat)


class Hands:
    """Carries out what actors want, on a store without a schema."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create_in(self, resource: str, obj: Json) -> Json:
        return self._store.create(resource, obj).obj

    def change(self, resource: str, namespace: str, name: str, body: Json, uid: str, subresource: str) -> Json:
        only_if = Preconditions(uid or None)
        main = not subresource
        return self._store.guaranteed_update(
            resource,
            namespace,
            name,
            lambda old: merge_patch(old, body),
            preconditions=only_if,
            bump=main and "spec" in body,
        ).obj

    def remove(
        self, resource: str, namespace: str, name: str, *, uid: str, grace: int | None, propagation: str | None
    ) -> None:
        options = DeleteOptions(grace, Preconditions(uid) if uid else None, propagation)
        self._store.delete(resource, namespace, name, options, grace=pod_grace if resource == "pods" else None)

    def finalize(self, name: str) -> None:
        """Nothing holds a namespace here."""


class Troupe:
    """Actors in a simulated world."""

    def __init__(self, store: Store, clock: Clock, actors: Iterable[Actor], delay: Duration) -> None:
        self._clock, self._delay = clock, delay
        self._roused = False
        self._alarm: Instant | None = None
        self.company = Company(store, Hands(store), actors, resources=store.resources, roused=self._rouse)

    def begin(self) -> None:
        """From now on they act."""
        self._rouse()

    def _rouse(self) -> None:
        if not self._roused:
            self._roused = True
            self._clock.at(Instant(self._clock.now() + self._delay), self._act)

    def _act(self) -> None:
        self._roused = False
        now = self._clock.now()
        while self.company.act(now):
            pass
        due = self.company.deadline
        if due is not None and (self._alarm is None or self._alarm <= now or due < self._alarm):
            self._alarm = due
            self._clock.at(due, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._act()
