"""Growing the corpus: `python -m tests.corpus.grow` changes good inputs until every kind of refusal has been met.

Everything is drawn from a seed, so the same tree grows the same files.  A change is kept when what it is refused with,
names and numbers aside, has not been seen more than a few times.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import yaml
from tests.corpus.judging import HERE, TAKEN, verdict

ANSWERS = HERE / "answers.tsv"
WANTED = {"pods": 330, "nodes": 130, "volumes": 110, "claims": 90, "configs": 170, "frames": 170, "journals": 100}
ALIKE_AT_MOST = 8  # refusals with the same words
TRIES = 40  # times as many as are wanted
SUFFIX = {"configs": "yaml", "journals": "jsonl", "frames": "txt"}

DEEP: Any = {}
for _ in range(70):
    DEEP = {"a": DEEP}

WEIRD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**25, 1.5, -0.0, 1e308),
    *("", " ", "0", "-1", "1e999", "x" * 300, "\u202e", "\x00", "\x1b[31m", "\ud7ff", "a/b/c", "../.."),
    *("NaN", "Infinity", "1.5.5", "0x10", "1Zi", "9" * 40, "1m" * 20, "5 Gi", "١", "½"),
    *([], {}, [None], [[]], [{}], {"": ""}, {"a": None}, ["a"] * 200, DEEP),
    *("In", "Exists", "NoSchedule", "DoNotSchedule", "2026-13-40T25:61:61Z", "2026-01-01", "9999999999s", "-5h"),
)

META = {"name": "a", "namespace": "default", "uid": "u-1", "resourceVersion": "5", "labels": {"app": "web"}}
SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
TERM = {"topologyKey": "zone", "labelSelector": SELECTOR, "namespaces": ["default"]}
NODE_TERM = {"matchExpressions": [{"key": "disk", "operator": "Gt", "values": ["1"]}]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CONTAINER = {
    "name": "c",
    "image": "app:1",
    "resources": {"requests": {"cpu": "100m", "memory": "1Gi", "example.com/gpu": "1"}, "limits": {"cpu": "1"}},
    "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP", "hostIP": "10.0.0.1"}],
    "restartPolicy": "Always",
}
POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": META,
    "spec": {
        "containers": [CONTAINER],
        "initContainers": [CONTAINER],
        "nodeSelector": {"disk": "ssd"},
        "priority": 7,
        "preemptionPolicy": "Never",
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": "gpu", "operator": "Equal", "value": "1", "effect": "NoExecute", "tolerationSeconds": 3}
        ],
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [NODE_TERM]},
                PREFERRED: [{"weight": 1, "preference": NODE_TERM}],
            },
            "podAffinity": {REQUIRED: [TERM], PREFERRED: [{"weight": 5, "podAffinityTerm": TERM}]},
            "podAntiAffinity": {REQUIRED: [TERM]},
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": SELECTOR}
        ],
        "schedulingGates": [{"name": "example.com/gate"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        "overhead": {"cpu": "10m"},
        "terminationGracePeriodSeconds": 30,
    },
    "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "No"}]},
}
NODE = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {"name": "n", "uid": "u-2", "resourceVersion": "6", "labels": {"zone": "a"}},
    "spec": {"unschedulable": False, "taints": [{"key": "gpu", "value": "1", "effect": "NoSchedule"}]},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/gpu": "2", "ephemeral-storage": "1Ti"},
        "images": [{"names": ["app:1"], "sizeBytes": 1000}],
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
        "declaredFeatures": ["A"],
    },
}
VOLUME = {
    "kind": "PersistentVolume",
    "apiVersion": "v1",
    "metadata": {"name": "v", "uid": "u-3", "resourceVersion": "7"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": "u-4"},
        "storageClassName": "fast",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [NODE_TERM]}},
        "csi": {"driver": "example.com", "volumeHandle": "h"},
    },
    "status": {"phase": "Available"},
}
CLAIM = {
    "kind": "PersistentVolumeClaim",
    "apiVersion": "v1",
    "metadata": {**META, "name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "volumeName": "v",
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
        "selector": SELECTOR,
    },
    "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}},
}
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "parallelism": 16,
    "leaderElection": {"leaderElect": True, "leaseDuration": "15s", "resourceName": "s"},
    "clientConnection": {"qps": 50, "burst": 100},
    "percentageOfNodesToScore": 50,
    "podInitialBackoffSeconds": 1,
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {
                "score": {"enabled": [{"name": "NodeResourcesFit", "weight": 2}], "disabled": [{"name": "*"}]},
                "multiPoint": {"enabled": [{"name": "NodeName"}]},
            },
            "pluginConfig": [
                {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "LeastAllocated"}}},
                {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 1}},
                {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 600}},
            ],
        }
    ],
    "extenders": [{"urlPrefix": "https://127.0.0.1:1", "filterVerb": "f", "weight": 1, "httpTimeout": "1s"}],
}


def journals() -> list[bytes]:
    """The journal of a small run, to begin with."""
    from tempfile import TemporaryDirectory

    from kubesched.fuzz.drawing import draw
    from kubesched.fuzz.play import play

    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        play(draw(3, "small"), journal=path)
        return path.read_bytes().splitlines()[:9]


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from places(value, (*path, key))


def changed(tree: Any, luck: Random) -> Any:
    """The same with one to three places that hold something else."""
    tree = copy.deepcopy(tree)
    for _ in range(luck.choice((1, 1, 1, 2, 3))):
        where = luck.choice([path for path in places(tree) if path] or [()])
        if not where:
            return luck.choice(WEIRD)
        inner = tree
        for key in where[:-1]:
            inner = inner[key]
        match luck.randrange(8):
            case 0:
                del inner[where[-1]]
            case 1 if isinstance(inner, dict):
                inner[luck.choice(("unknown", "name", "kind", "key", "spec"))] = luck.choice(WEIRD)
            case _:
                inner[where[-1]] = luck.choice(WEIRD)
    return tree


def torn(text: bytes, luck: Random) -> bytes:
    """Bytes that were harmed on their way."""
    at = luck.randrange(max(1, len(text)))
    match luck.randrange(6):
        case 0:
            return text[:at]
        case 1:
            dirt = luck.choice((b"\x00", b"\xff", b"{", b'"', b"NaN", b"\n", b"\xef\xbb\xbf", b"&a *a "))
            return text[:at] + dirt + text[at:]
        case 2:
            return text[at:]
        case 3:
            return text[:at] + text[at : at + 20] * 3 + text[at:]
        case 4:
            return text.replace(b":", luck.choice((b"", b"::", b"=")), 1)
    return b"[" * 2000 + text


def trees(tree: Any, encode: Callable[[Any], bytes]) -> Callable[[Random], bytes]:
    return lambda luck: torn(encode(tree), luck) if luck.random() < 0.15 else encode(changed(tree, luck))


def as_json(tree: Any) -> bytes:
    return json.dumps(tree, ensure_ascii=False).encode(errors="surrogatepass")


def as_yaml(tree: Any) -> bytes:
    return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False).encode(errors="surrogatepass")


def frames(luck: Random) -> bytes:
    obj = changed(POD, luck) if luck.random() < 0.5 else POD
    status = {"kind": "Status", "code": luck.choice((410, 500, 429, "x", -1)), "reason": luck.choice(WEIRD)}
    frame = {"type": luck.choice(("ADDED", "DELETED", "BOOKMARK", "ERROR", "Added", 7)), "object": obj}
    if frame["type"] == "ERROR" or luck.random() < 0.1:
        frame["object"] = status
    line = as_json(changed(frame, luck) if luck.random() < 0.3 else frame)
    return (torn(line, luck) if luck.random() < 0.3 else line) + b"\n"


def journal(lines: list[bytes]) -> Callable[[Random], bytes]:
    def grown(luck: Random) -> bytes:
        kept = list(lines)
        at = luck.randrange(len(kept))
        match luck.randrange(4):
            case 0:
                kept[at] = torn(kept[at], luck)
            case 1:
                kept[at] = as_json(changed(json.loads(kept[at]), luck))
            case 2:
                kept.insert(at, luck.choice(kept))
            case _:
                del kept[at]
        return b"\n".join(kept) + b"\n"

    return grown


def alike(words: str) -> str:
    """What two refusals have in common: all but names, numbers and places."""
    return re.sub(r"[\d.]+|'[^']*'|\"[^\"]*\"|\$[^ ]*", "·", words)[:160]


def grow() -> None:
    makers: dict[str, Callable[[Random], bytes]] = {
        "pods": trees(POD, as_json),
        "nodes": trees(NODE, as_json),
        "volumes": trees(VOLUME, as_json),
        "claims": trees(CLAIM, as_json),
        "configs": trees(CONFIG, as_yaml),
        "frames": frames,
        "journals": journal(journals()),
    }
    answers = []
    for folder, make in makers.items():
        answers += sorted(grown(folder, make))
    ANSWERS.write_text("".join(f"{name}\t{words}\n" for name, words in answers), encoding="utf-8")


def grown(folder: str, make: Callable[[Random], bytes]) -> Iterator[tuple[str, str]]:
    place = HERE / folder
    place.mkdir(exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    luck, seen, kept, number = Random(f"corpus/{folder}"), Counter[str](), set[bytes](), 0
    for _ in range(WANTED[folder] * TRIES):
        data = make(luck)
        path = place / f"{number:04}.{SUFFIX.get(folder, 'json')}"
        path.write_bytes(data)
        words = one_line(verdict(path))
        if words == TAKEN or data in kept or seen[alike(words)] >= ALIKE_AT_MOST or len(data) > 8_000:
            path.unlink()
            continue
        seen[alike(words)] += 1
        kept.add(data)
        yield f"{folder}/{path.name}", words
        number += 1
        if number == WANTED[folder]:
            return


def one_line(words: str) -> str:
    """As it stands in the list of answers."""
    return words.encode("unicode_escape").decode("ascii")


if __name__ == "__main__":
    grow()
