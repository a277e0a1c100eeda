"""StatefulSets: pods with names and volumes of their own, in order.

web-0, web-1, …: with OrderedReady each is made when the one before is available and removed from the last; with
Parallel all at once.  A new template goes from the last pod to the first, down to the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from kubesched.actors.controller import Controller, owner_key
from kubesched.actors.messages import Create, Effect, Seen, delete
from kubesched.actors.pods import (
    available_later,
    claim,
    create_pod,
    is_active,
    is_available,
    is_ready,
    phase_of,
    pod_from,
)
from kubesched.actors.replicaset import changed_status, replicas_of
from kubesched.actors.revisions import (
    HASH,
    REVISIONS,
    forget_revisions,
    hash_of,
    hash_on,
    keep_revision,
    revision_name,
    revisions_of,
)
from kubesched.actors.view import Key, key_of
from kubesched.api.time import Instant

Json = dict[str, Any]

STATEFULSETS = "apps/statefulsets"
CLAIMS = "persistentvolumeclaims"
POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
_KINDS = {"StatefulSet": STATEFULSETS}


class StatefulSets(Controller):
    """Keeps pods in order."""

    watches: ClassVar[tuple[str, ...]] = (STATEFULSETS, REVISIONS, CLAIMS, "pods")

    def concerned(self, seen: Seen) -> Iterable[Key]:
        if seen.resource == STATEFULSETS:
            return [key_of(STATEFULSETS, seen.last)]
        if seen.resource == CLAIMS:
            return []
        return dict.fromkeys(key for obj in (seen.old, seen.new) if obj is not None for key in owner_key(obj, _KINDS))

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        owner = self.view.at(key)
        if owner is None:
            return
        pods, effects = claim(self.view, "pods", owner, owner["spec"].get("selector"))
        yield from effects
        known = revisions_of(self.view, owner)
        row = Row(owner, pods, known, now)
        later = available_later(pods, row.patience, now)
        if later is not None:
            self.wake(key, later)
        if "deletionTimestamp" not in owner["metadata"]:
            yield from keep_revision(known, owner)
            yield from forget_revisions(known, owner, {hash_on(pod) for pod in pods})
            yield from self._walk(owner, row)
        yield from changed_status(STATEFULSETS, owner, row.status())

    def _walk(self, owner: Json, row: Row) -> Iterator[Effect]:
        """The next step, or with Parallel all steps there are."""
        for effect in row.steps():
            if isinstance(effect, Create):
                yield from self._claims(owner, effect.obj)
            yield effect

    def _claims(self, owner: Json, pod: Json) -> Iterator[Effect]:
        """The volumes of a pod outlive it: they are made once, and found again."""
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            name = f"{template['metadata']['name']}-{pod['metadata']['name']}"
            namespace = owner["metadata"]["namespace"]
            if self.view.get(CLAIMS, namespace, name) is None:
                labels = {**(owner["spec"].get("selector") or {}).get("matchLabels", {})}
                meta = {**template["metadata"], "name": name, "namespace": namespace}
                meta["labels"] = {**labels, **(template["metadata"].get("labels") or {})}
                made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta}
                yield Create(CLAIMS, {**made, "spec": template["spec"]})


class Row:
    """The pods of a StatefulSet by their number."""

    def __init__(self, owner: Json, pods: list[Json], known: list[Json], now: Instant) -> None:
        self.owner, self.spec, self.pods, self.now = owner, owner["spec"], pods, now
        self.patience = self.spec.get("minReadySeconds") or 0
        self.first = (self.spec.get("ordinals") or {}).get("start") or 0
        self.numbers = range(self.first, self.first + replicas_of(owner))
        self.at = {number: pod for pod in pods if (number := number_of(owner, pod)) is not None}
        self.hash = hash_of(owner)
        told = owner.get("status") or {}
        self.current: str = told.get("currentRevision") or revision_name(owner)
        strategy = self.spec.get("updateStrategy") or {}
        rolling = strategy.get("rollingUpdate") or {}
        self.partition = 1 << 31 if strategy.get("type") == "OnDelete" else rolling.get("partition") or 0
        self.parallel = self.spec.get("podManagementPolicy") == "Parallel"
        before = next((one for one in known if one["metadata"]["name"] == self.current), None)
        self.before: Json | None = None if before is None else before["data"]["spec"]["template"]

    def steps(self) -> Iterator[Effect]:
        """What to do next, in order; only the first of it unless pods need not wait for each other."""
        settled = True
        for number in self.numbers:
            pod = self.at.get(number)
            if pod is None:
                yield create_pod(self._pod(number))
                settled = False
            elif phase_of(pod) in ("Failed", "Succeeded"):
                yield delete("pods", pod)
                settled = False
            elif not self._available(pod) or not is_active(pod):
                settled = False
            if not settled and not self.parallel:
                return
        surplus = sorted((number for number in self.at if number not in self.numbers), reverse=True)
        for number in surplus:
            if is_active(self.at[number]):
                yield delete("pods", self.at[number])
            if not self.parallel:
                return
        if settled or self.parallel:
            yield from self._renew()

    def _renew(self) -> Iterator[Effect]:
        """The last pod of an older version goes, when all behind it are well."""
        for number in reversed(self.numbers):
            pod = self.at.get(number)
            if pod is None or number < self.partition:
                return
            if hash_on(pod) != self.hash:
                if is_active(pod):
                    yield delete("pods", pod)
                return
            if not self._available(pod):
                return

    def _available(self, pod: Json) -> bool:
        return is_available(pod, self.patience, self.now)

    def _pod(self, number: int) -> Json:
        name = f"{self.owner['metadata']['name']}-{number}"
        template, version = self.spec.get("template") or {}, self.hash
        if number < self.partition and self.before is not None:  # below the partition nothing is new
            template, version = self.before, self.current.rpartition("-")[2]
        pod = pod_from(template, self.owner, name=name)
        meta, spec = pod["metadata"], pod["spec"]
        meta["labels"] = {**(meta.get("labels") or {}), HASH: version, POD_NAME: name, POD_INDEX: str(number)}
        spec["hostname"] = name
        if self.spec.get("serviceName"):
            spec["subdomain"] = self.spec["serviceName"]
        claims = [one["metadata"]["name"] for one in self.spec.get("volumeClaimTemplates") or ()]
        mine = [{"name": claim, "persistentVolumeClaim": {"claimName": f"{claim}-{name}"}} for claim in claims]
        if mine:
            names = {volume["name"] for volume in mine}
            spec["volumes"] = [*mine, *(v for v in spec.get("volumes") or () if v.get("name") not in names)]
        return pod

    def status(self) -> Json:
        update = revision_name(self.owner)
        alive = [pod for pod in self.pods if is_active(pod)]
        updated = sum(hash_on(pod) == self.hash for pod in alive)
        done = updated == len(alive) == len(self.numbers) and all(self._available(pod) for pod in alive)
        current = update if done else self.current
        of_current = current.rpartition("-")[2]
        return {
            "replicas": len(alive),
            "readyReplicas": sum(is_ready(pod) for pod in alive),
            "availableReplicas": sum(self._available(pod) for pod in alive),
            "currentReplicas": sum(hash_on(pod) == of_current for pod in alive),
            "updatedReplicas": updated,
            "currentRevision": current,
            "updateRevision": update,
            "collisionCount": 0,
            "observedGeneration": self.owner["metadata"].get("generation", 1),
        }


def number_of(owner: Json, pod: Json) -> int | None:
    """The number of a pod, by its name."""
    head, _, tail = pod["metadata"]["name"].rpartition("-")
    return int(tail) if head == owner["metadata"]["name"] and tail.isdecimal() else None
