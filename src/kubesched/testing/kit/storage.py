"""The theme of storage: claims, volumes, classes, drivers, and what a node may attach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kubesched.testing.builders import ZONE
from kubesched.testing.kit.dice import Dice
from kubesched.testing.kit.themes import NAMES, Words

Json = dict[str, Any]

DRIVER = "csi.example.com"
CLAIMS, VOLUMES, ZONES, SIZES = ("c0", "c1", "c2"), ("v0", "v1", "v2"), ("za", "zb"), ("1Gi", "2Gi", "4Gi")
CLASSES = ("made", "there", "made", "there", "made", "there", "there", "now", "missing")


def node(dice: Dice, words: Words) -> Json:
    return {"metadata": {"labels": {ZONE: dice.pick(ZONES)}}} if dice.pick((True, True, False)) else {}


def pod(dice: Dice, words: Words) -> Json:
    volumes: list[Json] = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dice.some(CLAIMS, 2)
    ]
    if dice.chance(4):
        disk = {"pdName": "disk", "readOnly": dice.chance(2)}
        volumes.append(
            dice.pick(
                (
                    {"name": "inline", "gcePersistentDisk": disk},
                    {"name": "inline", "awsElasticBlockStore": {"volumeID": "vol-1"}},
                )
            )
        )
    return {"spec": {"volumes": volumes}}


def _meta(name: str, namespace: str = "", **more: Any) -> Json:
    where = {"namespace": namespace} if namespace else {}
    return {"name": name, **where, "uid": f"uid-of-{name}", **more}


def _volume_of(claim: str) -> str:
    """The one volume a claim may be bound to, so that no two claims have the same."""
    return dict(zip(CLAIMS, VOLUMES, strict=True))[claim]


def _claim(dice: Dice, name: str) -> Json:
    own = _volume_of(name)
    volume = dice.pick(("", own, "", own, "", own, "", "gone"))
    notes = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    if not volume and dice.chance(8):
        notes = {"volume.kubernetes.io/selected-node": dice.pick(NAMES)}
    modes = dice.pick((["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteOncePod"]))
    spec = {"accessModes": modes, "resources": {"requests": {"storage": dice.pick(SIZES)}}}
    spec["storageClassName"] = dice.pick(CLASSES)
    if volume:
        spec["volumeName"] = volume
    return {"kind": "PersistentVolumeClaim", "metadata": _meta(name, "default", annotations=notes), "spec": spec}


def _volume(dice: Dice, name: str) -> Json:
    spec: Json = {
        "capacity": {"storage": dice.pick(SIZES)},
        "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
        "storageClassName": dice.pick(CLASSES),
    }
    labels = {}
    if dice.chance(2):
        spec["csi"] = {"driver": DRIVER, "volumeHandle": name}
    if dice.chance(3):
        here = {"key": ZONE, "operator": "In", "values": [dice.pick(ZONES)]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    if dice.chance(2):
        labels[ZONE] = dice.pick((*ZONES, "za__zb"))
    if dice.chance(6):
        owner = dice.pick(CLAIMS)
        spec["claimRef"] = {"namespace": "default", "name": owner, "uid": f"uid-of-{owner}"}
    status = {"phase": dice.pick(("Available", "Available", "Available", "Bound"))}
    return {"kind": "PersistentVolume", "metadata": _meta(name, labels=labels), "spec": spec, "status": status}


def _class(dice: Dice, name: str) -> Json:
    provisioner = "kubernetes.io/no-provisioner" if name == "there" else DRIVER
    raw: Json = {"kind": "StorageClass", "metadata": _meta(name), "provisioner": provisioner}
    raw["volumeBindingMode"] = "Immediate" if name == "now" else "WaitForFirstConsumer"
    if name == "made" and dice.chance(4):
        allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": [dice.pick(ZONES)]}]}]
        raw["allowedTopologies"] = allowed
    return raw


def _csi_node(dice: Dice, name: str) -> Json:
    count = dice.pick((None, 0, 1, 2))
    driver = {"name": DRIVER, **({} if count is None else {"allocatable": {"count": count}})}
    return {"kind": "CSINode", "metadata": _meta(name), "spec": {"drivers": [driver]}}


def _capacity(dice: Dice) -> Json:
    raw: Json = {"kind": "CSIStorageCapacity", "metadata": _meta("room", "kube-system"), "storageClassName": "made"}
    topology = dice.pick(({}, {"matchLabels": {ZONE: "za"}}))
    return {**raw, "capacity": dice.pick(SIZES), "nodeTopology": topology}


def more(dice: Dice, words: Words, names: Sequence[str]) -> list[Json]:
    objects = [_class(dice, name) for name in ("made", "there", "now") if not dice.chance(10)]
    objects += [_claim(dice, name) for name in CLAIMS if not dice.chance(10)]
    objects += [_volume(dice, name) for name in VOLUMES if not dice.chance(6)]
    objects += [_csi_node(dice, name) for name in names if dice.chance(2)]
    if dice.chance(2):
        driver = {"kind": "CSIDriver", "metadata": _meta(DRIVER), "spec": {"storageCapacity": dice.chance(2)}}
        objects += [driver, *([] if dice.chance(3) else [_capacity(dice)])]
    if names and dice.chance(4):
        source = {"persistentVolumeName": dice.pick(VOLUMES)}
        spec = {"attacher": DRIVER, "nodeName": dice.pick(names), "source": source}
        objects.append({"kind": "VolumeAttachment", "metadata": _meta("attached"), "spec": spec})
    return objects


def shared_once(pods: Sequence[Json], others: Sequence[Json]) -> list[Json]:
    """Pods without the volumes they cannot have: a ReadWriteOncePod claim has one user."""
    alone = {
        raw["metadata"]["name"] for raw in others if "ReadWriteOncePod" in raw.get("spec", {}).get("accessModes", ())
    }
    kept: list[Json] = []
    for raw in pods:
        volumes = raw["spec"].get("volumes", ())
        wanted = [one for one in volumes if one["name"] in CLAIMS]
        taken = {one["name"] for other in kept for one in other["spec"].get("volumes", ())} & alone
        if any(one["name"] in taken for one in wanted):
            left = [one for one in volumes if one["name"] not in taken]
            raw = {**raw, "spec": {**raw["spec"], "volumes": left}}
        kept.append(raw)
    return kept


def in_use(raw: Json, there: Iterable[Json]) -> bool:
    """Whether Kubernetes keeps an object from going: a claim of a pod on a node, a volume claimed or attached."""
    return (raw["kind"], raw["metadata"]["name"]) in {use for other in there for use in _uses(other)}


def _uses(raw: Json) -> Iterator[tuple[str, str]]:
    kind, spec = raw["kind"], raw.get("spec", {})
    if kind == "Pod" and spec.get("nodeName"):
        yield from (("PersistentVolumeClaim", volume["name"]) for volume in spec.get("volumes", ()))
    if kind == "PersistentVolumeClaim":
        yield "PersistentVolume", spec.get("volumeName", "")
    if kind == "VolumeAttachment":
        yield "PersistentVolume", spec["source"]["persistentVolumeName"]


def change(dice: Dice, words: Words, raw: Json) -> Json:
    """What others may change about storage: a claim is bound, a volume freed, a limit raised, a class widened."""
    kind = raw["kind"]
    if kind == "Node":
        return {"metadata": {"labels": {ZONE: dice.pick((*ZONES, None))}}}
    if kind == "PersistentVolumeClaim":
        bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        freed = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}}
        return dice.pick(({"metadata": bound, "spec": {"volumeName": _volume_of(raw["metadata"]["name"])}}, freed))
    if kind == "PersistentVolume":
        labels = {"metadata": {"labels": {ZONE: dice.pick((*ZONES, None))}}}
        return dice.pick((labels, {"spec": {"claimRef": None}, "status": {"phase": "Available"}}))
    if kind == "StorageClass":
        return {"allowedTopologies": None} if raw.get("allowedTopologies") else {}
    if kind == "CSINode":
        return {"spec": _csi_node(dice, "")["spec"]}
    if kind == "CSIDriver":
        return {"spec": {"storageCapacity": dice.chance(2)}}
    if kind == "CSIStorageCapacity":
        return {"capacity": dice.pick(SIZES)}
    return {}
