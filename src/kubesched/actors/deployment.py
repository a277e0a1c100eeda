"""Deployments: one ReplicaSet for every version of the template, and a careful walk from the old ones to the new.

The rules are those of kube-controller-manager: never more pods than replicas + maxSurge, never fewer available ones
than replicas - maxUnavailable; pods that do not work anyway go first.  A template that was there before gets its old
ReplicaSet back, which is what `kubectl rollout undo` stands on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar
from zlib import crc32

import msgspec

from kubesched.actors.conditions import condition, find_condition, with_conditions
from kubesched.actors.controller import Controller, owner_key
from kubesched.actors.messages import Create, Effect, Seen, change, delete
from kubesched.actors.pods import amount, claim, is_active, owner_reference
from kubesched.actors.replicaset import REPLICASETS, changed_status, replicas_of
from kubesched.actors.view import Key, key_of
from kubesched.api.time import Instant, parse_rfc3339, seconds

Json = dict[str, Any]

DEPLOYMENTS = "apps/deployments"
HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = frozenset(("kubectl.kubernetes.io/last-applied-configuration", REVISION, DESIRED, MAXIMUM))
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_PROGRESS = ("updatedReplicas", "readyReplicas", "availableReplicas")
_KINDS = {"Deployment": DEPLOYMENTS}
_encode = msgspec.json.Encoder(order="sorted").encode


class Deployments(Controller):
    """Rolls out."""

    watches: ClassVar[tuple[str, ...]] = (DEPLOYMENTS, REPLICASETS, "pods")

    def concerned(self, seen: Seen) -> Iterable[Key]:
        if seen.resource == DEPLOYMENTS:
            return [key_of(DEPLOYMENTS, seen.last)]
        if seen.resource == "pods":
            return self._waiting_for(seen) if seen.new is None else []
        return dict.fromkeys(
            key for obj in (seen.old, seen.new) if obj is not None for key in owner_key(obj, _KINDS)
        )

    def _waiting_for(self, seen: Seen) -> Iterable[Key]:
        """A Recreate deployment goes on when the last old pod is gone."""
        for key in owner_key(seen.last, {"ReplicaSet": REPLICASETS}):
            owner = self.view.at(key)
            if owner is not None:
                yield from owner_key(owner, _KINDS)

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        deployment = self.view.at(key)
        if deployment is None:
            return
        sets, effects = claim(self.view, REPLICASETS, deployment, deployment["spec"].get("selector"))
        yield from effects
        rollout = Rollout(deployment, sets)
        if "deletionTimestamp" not in deployment["metadata"]:
            yield from self._roll(rollout, now)
        yield from self._tell(key, rollout, now)

    # the walk ----------------------------------------------------------------------------------------

    def _roll(self, rollout: Rollout, now: Instant) -> Iterator[Effect]:
        if rollout.spec.get("paused"):
            if len(rollout.alive) == 1:
                yield from _scale(rollout, rollout.alive[0], rollout.replicas)
            return
        if rollout.recreates:
            yield from self._recreate(rollout)
        else:
            yield from self._rolling(rollout)
        yield from _forget(rollout)

    def _recreate(self, rollout: Rollout) -> Iterator[Effect]:
        busy = [one for one in rollout.old if replicas_of(one)]
        if busy:
            for one in busy:
                yield from _scale(rollout, one, 0)
            return
        if any(is_active(pod) or "deletionTimestamp" in pod["metadata"] for pod in self._pods_of(rollout.old)):
            return
        yield from _grow(rollout, rollout.replicas)

    def _pods_of(self, sets: Sequence[Json]) -> Iterator[Json]:
        for one in sets:
            yield from self.view.controlled("pods", one["metadata"]["uid"])

    def _rolling(self, rollout: Rollout) -> Iterator[Effect]:
        new = rollout.new
        have = 0 if new is None else replicas_of(new)
        if new is not None and have > rollout.replicas:
            yield from _scale(rollout, new, rollout.replicas)
            return
        room = rollout.replicas + rollout.surge - rollout.total
        more = max(0, min(room, rollout.replicas - have))
        if new is None or more:
            yield from _grow(rollout, have + more)
            return
        yield from _annotate(rollout, new)
        yield from _shrink(rollout)

    # the account of it -------------------------------------------------------------------------------

    def _tell(self, key: Key, rollout: Rollout, now: Instant) -> Iterator[Effect]:
        status, deadline = rollout.status(now)
        if deadline is not None:
            self.wake(key, deadline)
        yield from changed_status(DEPLOYMENTS, rollout.deployment, status)
        if rollout.new is not None:
            revision = (rollout.new["metadata"].get("annotations") or {}).get(REVISION)
            told = (rollout.deployment["metadata"].get("annotations") or {}).get(REVISION)
            if revision and revision != told:
                body = {"metadata": {"annotations": {REVISION: revision}}}
                yield change(DEPLOYMENTS, rollout.deployment, body)


class Rollout:
    """A Deployment and its ReplicaSets, and the numbers between them."""

    def __init__(self, deployment: Json, sets: Sequence[Json]) -> None:
        self.deployment, self.spec = deployment, deployment["spec"]
        sets = sorted(sets, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))
        self.template: Json = self.spec.get("template") or {}
        same = [one for one in sets if _bare(one["spec"].get("template") or {}) == _bare(self.template)]
        self.new: Json | None = same[0] if same else None
        self.old = [one for one in sets if one is not self.new]
        self.all = sets
        self.alive = [one for one in sets if replicas_of(one)] or ([self.new] if self.new is not None else [])
        self.replicas = replicas_of(deployment)
        self.total = sum(replicas_of(one) for one in sets)
        strategy = self.spec.get("strategy") or {}
        self.recreates = strategy.get("type") == "Recreate"
        rolling = strategy.get("rollingUpdate") or {}
        self.surge = 0 if self.recreates else amount(rolling.get("maxSurge", "25%"), self.replicas, up=True)
        missing = 0 if self.recreates else amount(rolling.get("maxUnavailable", "25%"), self.replicas, up=False)
        # Kept from kube-controller-manager: with neither, nothing could ever move.
        self.missing = min(1 if not self.surge and not missing else missing, self.replicas)

    @property
    def least(self) -> int:
        """How many pods have to be available all the time."""
        return self.replicas - self.missing

    def revision(self) -> str:
        """The number of the next version."""
        return str(max((_revision(one) for one in self.old), default=0) + 1)

    def status(self, now: Instant) -> tuple[Json, Instant | None]:
        """The status, and when a rollout that makes no progress is to be given up."""
        updated = _told(self.new, "replicas")
        available = sum(_told(one, "availableReplicas") for one in self.all)
        total = sum(_told(one, "replicas") for one in self.all)
        status: Json = {
            "observedGeneration": self.deployment["metadata"].get("generation", 1),
            "replicas": total,
            "updatedReplicas": updated,
            "readyReplicas": sum(_told(one, "readyReplicas") for one in self.all),
            "availableReplicas": available,
            "unavailableReplicas": max(0, max(self.total, self.replicas) - available),
        }
        complete = self.new is not None and updated == total == available == self.replicas
        progressing, deadline = self._progressing(complete, status, now)
        enough = available >= self.least
        found = condition(
            "Available",
            "True" if enough else "False",
            now,
            "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
            "Deployment has minimum availability." if enough else "Deployment does not have minimum availability.",
        )
        was = find_condition(self.deployment, "Available")
        same = was is not None and was.get("status") == found["status"]
        found["lastUpdateTime"] = (was if was is not None and same else found).get("lastUpdateTime", _stamp(found))
        status["conditions"] = with_conditions(self.deployment, (found, progressing))
        return status, deadline

    def _progressing(self, complete: bool, status: Json, now: Instant) -> tuple[Json, Instant | None]:
        name = "" if self.new is None else self.new["metadata"]["name"]
        was = find_condition(self.deployment, "Progressing")
        told = self.deployment.get("status") or {}
        moved = any(status[field] != told.get(field, 0) for field in _PROGRESS)
        moved = moved or status["replicas"] < told.get("replicas", 0)
        fresh = condition("Progressing", "True", now)
        fresh["lastUpdateTime"] = fresh["lastTransitionTime"]
        if complete:
            message = f'ReplicaSet "{name}" has successfully progressed.'
            fresh |= {"reason": "NewReplicaSetAvailable", "message": message}
            return (was if was is not None and _says_the_same(was, fresh) else fresh), None
        limit = seconds(self.spec.get("progressDeadlineSeconds") or 600)
        if was is not None and not moved and was.get("reason") != "NewReplicaSetAvailable":
            due = Instant(parse_rfc3339(was.get("lastUpdateTime") or was["lastTransitionTime"]) + limit)
            if self.spec.get("paused") or was.get("status") == "False":
                return was, None
            if now < due:
                return was, due
            message = f'ReplicaSet "{name}" has timed out progressing.'
            return {**fresh, "status": "False", "reason": "ProgressDeadlineExceeded", "message": message}, None
        if self.new is None:
            fresh |= {"reason": "NewReplicaSetCreated", "message": "Created new replica set"}
        else:
            fresh |= {"reason": "ReplicaSetUpdated", "message": f'ReplicaSet "{name}" is progressing.'}
        return fresh, Instant(now + limit)


def _stamp(condition: Json) -> str:
    stamp: str = condition["lastTransitionTime"]
    return stamp


def _says_the_same(was: Json, now: Json) -> bool:
    return all(was.get(field) == now[field] for field in ("status", "reason", "message"))


def _told(one: Json | None, field: str) -> int:
    return 0 if one is None else int((one.get("status") or {}).get(field) or 0)


def _revision(one: Json) -> int:
    text = (one["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def _bare(template: Json) -> bytes:
    """A template without the hash, to be compared."""
    meta = dict(template.get("metadata") or {})
    meta["labels"] = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH}
    meta.pop("creationTimestamp", None)
    meta = {key: value for key, value in meta.items() if value}
    return _encode({**template, "metadata": meta})


def template_hash(template: Json) -> str:
    """A short name for a template, of letters that make no words."""
    number, text = crc32(_bare(template)), ""
    while number:
        number, digit = divmod(number, len(_LETTERS))
        text += _LETTERS[digit]
    return text or _LETTERS[0]


def _notes(rollout: Rollout) -> Json:
    """The annotations that a Deployment leaves on the ReplicaSet of its present version."""
    own = rollout.deployment["metadata"].get("annotations") or {}
    return {
        **{key: value for key, value in own.items() if key not in _NOT_COPIED},
        DESIRED: str(rollout.replicas),
        MAXIMUM: str(rollout.replicas + rollout.surge),
    }


def _grow(rollout: Rollout, replicas: int) -> Iterator[Effect]:
    """Bring the new ReplicaSet to a size; make it where there is none."""
    if rollout.new is not None:
        yield from _annotate(rollout, rollout.new)
        yield from _scale(rollout, rollout.new, replicas)
        return
    meta = rollout.deployment["metadata"]
    name = template_hash(rollout.template)
    given = rollout.template.get("metadata") or {}
    labels = {**(given.get("labels") or {}), HASH: name}
    selector = rollout.spec.get("selector") or {}
    chosen = {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: name}}
    spec: Json = {
        "replicas": replicas,
        "selector": chosen,
        "template": {**rollout.template, "metadata": {**given, "labels": labels}},
    }
    if rollout.spec.get("minReadySeconds"):
        spec["minReadySeconds"] = rollout.spec["minReadySeconds"]
    made = {
        "name": f"{meta['name']}-{name}",
        "namespace": meta["namespace"],
        "labels": labels,
        "annotations": {**_notes(rollout), REVISION: rollout.revision()},
        "ownerReferences": [owner_reference(rollout.deployment)],
    }
    yield Create(REPLICASETS, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": made, "spec": spec})


def _scale(rollout: Rollout, one: Json, replicas: int) -> Iterator[Effect]:
    if replicas_of(one) != replicas:
        notes = {DESIRED: str(rollout.replicas), MAXIMUM: str(rollout.replicas + rollout.surge)}
        yield change(REPLICASETS, one, {"metadata": {"annotations": notes}, "spec": {"replicas": replicas}})


def _annotate(rollout: Rollout, new: Json) -> Iterator[Effect]:
    """The present version has the highest number, even where it was there before."""
    told = new["metadata"].get("annotations") or {}
    wanted = _notes(rollout)
    highest = max((_revision(one) for one in rollout.old), default=0)
    if _revision(new) <= highest:
        wanted[REVISION] = str(highest + 1)
    different = {key: value for key, value in wanted.items() if told.get(key) != value}
    if different:
        yield change(REPLICASETS, new, {"metadata": {"annotations": different}})


def _shrink(rollout: Rollout) -> Iterator[Effect]:
    """Take pods off the old ReplicaSets, as many as may be missed."""
    assert rollout.new is not None
    left = {one["metadata"]["uid"]: replicas_of(one) for one in rollout.old}
    unavailable = replicas_of(rollout.new) - _available(rollout.new)
    room = rollout.total - rollout.least - unavailable
    if room <= 0:
        return
    for one in rollout.old:  # those that do not work are missed by nobody
        count = min(room, replicas_of(one) - _available(one))
        left[one["metadata"]["uid"]] -= count
        room -= count
    spare = max(0, sum(map(_available, rollout.all)) - rollout.least)
    for one in rollout.old:
        count = min(spare, left[one["metadata"]["uid"]])
        left[one["metadata"]["uid"]] -= count
        spare -= count
    for one in rollout.old:
        yield from _scale(rollout, one, left[one["metadata"]["uid"]])


def _available(one: Json) -> int:
    """How many pods of a ReplicaSet work, as far as it is to keep them: its status may be older than its size."""
    return min(replicas_of(one), _told(one, "availableReplicas"))


def _forget(rollout: Rollout) -> Iterator[Effect]:
    """Old versions that nobody will go back to."""
    limit = rollout.spec.get("revisionHistoryLimit")
    idle = [one for one in rollout.old if not replicas_of(one) and not _told(one, "replicas")]
    idle = [one for one in idle if "deletionTimestamp" not in one["metadata"]]
    surplus = len(idle) - (10 if limit is None else int(limit))
    if surplus > 0:
        for one in sorted(idle, key=_revision)[:surplus]:
            yield delete(REPLICASETS, one)
