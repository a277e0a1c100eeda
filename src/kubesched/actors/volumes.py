"""Volumes: claims find one, or get one made.

    static        the smallest volume that is large enough and otherwise as the claim wants it
    Immediate     made as soon as the claim is there, by the provisioner of its class
    WaitForFirstConsumer   made when the scheduler has named a node (volume.kubernetes.io/selected-node), where that
                           node is: in its zone, or on the node itself where it has none
    reclaim       when the claim goes, the volume goes with it (Delete) or is kept for whoever looks at it (Retain)

No storage stands behind any of it; every provisioner but kubernetes.io/no-provisioner is played.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from kubesched.actors.controller import Controller
from kubesched.actors.messages import Create, Effect, Seen, change, delete
from kubesched.actors.view import Key, key_of
from kubesched.api import quantity
from kubesched.api.time import Instant
from kubesched.apiserver.validation import selects

Json = dict[str, Any]

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storage.k8s.io/storageclasses"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
BIND_COMPLETED, BOUND_BY_US = "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"
PROVISIONER_NAMES = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


class Volumes(Controller):
    """Binds claims to volumes."""

    watches: ClassVar[tuple[str, ...]] = (CLAIMS, VOLUMES, CLASSES, "nodes")

    def concerned(self, seen: Seen) -> Iterable[Key]:
        if seen.resource == CLAIMS:
            keys = [key_of(CLAIMS, seen.last)]
            name = (seen.last.get("spec") or {}).get("volumeName")
            return [*keys, Key(VOLUMES, "", name)] if name else keys
        if seen.resource == VOLUMES:
            keys = [key_of(VOLUMES, seen.last)]
            claim = (seen.last.get("spec") or {}).get("claimRef")
            if claim:
                return [*keys, Key(CLAIMS, claim.get("namespace", ""), claim.get("name", ""))]
            return [*keys, *self._waiting()]
        return self._waiting() if seen.resource == CLASSES and seen.new is not None else []

    def _waiting(self) -> list[Key]:
        return [key_of(CLAIMS, claim) for claim in self.view.all(CLAIMS) if not _is_bound(claim)]

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        obj = self.view.at(key)
        if obj is None:
            return
        yield from self._volume(obj) if key.resource == VOLUMES else self._claim(obj)

    # claims ------------------------------------------------------------------------------------------

    def _claim(self, claim: Json) -> Iterator[Effect]:
        if "deletionTimestamp" in claim["metadata"]:
            return
        name = claim["spec"].get("volumeName")
        if name:
            volume = self.view.get(VOLUMES, "", name)
            if volume is None:
                if _is_bound(claim):
                    yield change(CLAIMS, claim, {"status": {"phase": "Lost"}}, subresource="status")
                return
            yield from _tie(volume, claim)
            return
        volume = self._promised(claim)
        if volume is None and not self._must_wait(claim):
            volume = self._match(claim)
        if volume is not None:
            yield from _tie(volume, claim)
        else:
            yield from self._provision(claim)

    def _promised(self, claim: Json) -> Json | None:
        """A volume that names this claim already: the scheduler's choice, or a volume made for it."""
        meta = claim["metadata"]
        for volume in self.view.all(VOLUMES):
            ref = volume["spec"].get("claimRef") or {}
            if (ref.get("namespace"), ref.get("name")) == (meta["namespace"], meta["name"]):
                if ref.get("uid") in (None, "", meta["uid"]):
                    return volume
        return None

    def _class_of(self, claim: Json) -> Json | None:
        name = claim["spec"].get("storageClassName")
        return self.view.get(CLASSES, "", name) if name else None

    def _must_wait(self, claim: Json) -> bool:
        """Whether the scheduler is to choose first."""
        found = self._class_of(claim)
        if found is None or found.get("volumeBindingMode") != "WaitForFirstConsumer":
            return False
        return SELECTED_NODE not in (claim["metadata"].get("annotations") or {})

    def _match(self, claim: Json) -> Json | None:
        """The smallest free volume that will do."""
        fitting = [volume for volume in self.view.all(VOLUMES) if _fits(volume, claim)]
        return min(fitting, key=lambda volume: (_size(volume), volume["metadata"]["name"]), default=None)

    def _provision(self, claim: Json) -> Iterator[Effect]:
        found = self._class_of(claim)
        if found is None or found.get("provisioner") in (None, "", NO_PROVISIONER):
            return
        notes = claim["metadata"].get("annotations") or {}
        provisioner = found["provisioner"]
        if any(notes.get(name) != provisioner for name in PROVISIONER_NAMES):
            names = dict.fromkeys(PROVISIONER_NAMES, provisioner)
            yield change(CLAIMS, claim, {"metadata": {"annotations": names}})
        if self._must_wait(claim):
            return
        node = self.view.get("nodes", "", notes.get(SELECTED_NODE, ""))
        yield Create(VOLUMES, _volume_for(claim, found, node))

    # volumes -----------------------------------------------------------------------------------------

    def _volume(self, volume: Json) -> Iterator[Effect]:
        if "deletionTimestamp" in volume["metadata"]:
            return
        phase = (volume.get("status") or {}).get("phase")
        ref = volume["spec"].get("claimRef")
        if not ref:
            yield from _say(volume, phase, "Available")
            return
        claim = self.view.get(CLAIMS, ref.get("namespace", ""), ref.get("name", ""))
        if claim is None or (ref.get("uid") and claim["metadata"]["uid"] != ref["uid"]):
            if not ref.get("uid"):
                yield from _say(volume, phase, "Available")  # kept for a claim that is still to come
            elif volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                yield from _say(volume, phase, "Released")
                yield delete(VOLUMES, volume)
            else:
                yield from _say(volume, phase, "Released")


def _is_bound(claim: Json) -> bool:
    return bool((claim.get("status") or {}).get("phase") == "Bound")


def _say(volume: Json, phase: str | None, wanted: str) -> Iterator[Effect]:
    if phase != wanted:
        yield change(VOLUMES, volume, {"status": {"phase": wanted}}, subresource="status")


def _tie(volume: Json, claim: Json) -> Iterator[Effect]:
    """Volume and claim name each other, and both say that they are bound."""
    meta, spec = claim["metadata"], claim["spec"]
    ref = volume["spec"].get("claimRef") or {}
    if ref.get("uid") not in (None, "", meta["uid"]):
        return  # somebody else's
    if ref.get("uid") != meta["uid"]:
        wanted = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": meta["namespace"]}
        wanted |= {"name": meta["name"], "uid": meta["uid"]}
        tied: Json = {} if ref else {"annotations": {BOUND_BY_US: "yes"}}
        yield change(VOLUMES, volume, {"metadata": tied, "spec": {"claimRef": wanted}})
    yield from _say(volume, (volume.get("status") or {}).get("phase"), "Bound")
    if spec.get("volumeName") != volume["metadata"]["name"]:
        notes = {BIND_COMPLETED: "yes", BOUND_BY_US: "yes"}
        body = {"metadata": {"annotations": notes}, "spec": {"volumeName": volume["metadata"]["name"]}}
        yield change(CLAIMS, claim, body)
    if not _is_bound(claim):
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes"),
            "capacity": volume["spec"].get("capacity"),
        }
        yield change(CLAIMS, claim, {"status": status}, subresource="status")


def _size(volume: Json) -> int:
    return quantity.parse_units((volume["spec"].get("capacity") or {}).get("storage", "0"))


def _wanted_size(claim: Json) -> int:
    return quantity.parse_units(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def _fits(volume: Json, claim: Json) -> bool:
    spec, wants = volume["spec"], claim["spec"]
    if spec.get("claimRef") or "deletionTimestamp" in volume["metadata"]:
        return False
    if (volume.get("status") or {}).get("phase") not in ("Available", "Pending", None, ""):
        return False
    if (spec.get("storageClassName") or "") != (wants.get("storageClassName") or ""):
        return False
    if (spec.get("volumeMode") or "Filesystem") != (wants.get("volumeMode") or "Filesystem"):
        return False
    if not set(wants.get("accessModes") or ()) <= set(spec.get("accessModes") or ()):
        return False
    selector = wants.get("selector")
    if selector and not selects(selector, volume["metadata"].get("labels") or {}):
        return False
    return _size(volume) >= _wanted_size(claim)


def _volume_for(claim: Json, storage_class: Json, node: Json | None) -> Json:
    """What a provisioner makes."""
    meta, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{meta['uid']}"
    made: Json = {
        "capacity": {"storage": (spec["resources"].get("requests") or {}).get("storage", "1Gi")},
        "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class["metadata"]["name"],
        "volumeMode": spec.get("volumeMode") or "Filesystem",
        **_source(storage_class["provisioner"], name),
        "claimRef": {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        },
    }
    if storage_class.get("mountOptions"):
        made["mountOptions"] = storage_class["mountOptions"]
    if node is not None:
        labels = node["metadata"].get("labels") or {}
        key = ZONE if ZONE in labels else HOSTNAME
        term = {"key": key, "operator": "In", "values": [labels.get(key, node["metadata"]["name"])]}
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
    notes = {PROVISIONED_BY: storage_class["provisioner"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": notes},
        "spec": made,
    }


def _source(provisioner: str, name: str) -> Json:
    """Where the volume is: with a CSI driver, whose name has no slash, or in a directory, as of other provisioners."""
    if "/" in provisioner:
        return {"hostPath": {"path": f"/volumes/{name}", "type": "DirectoryOrCreate"}}
    return {"csi": {"driver": provisioner, "volumeHandle": name}}
