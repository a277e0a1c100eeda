"""Recorded clusters with something wrong in them: both tiers still agree, with boards and without, and nobody raises.

What kube-scheduler would say of them nobody has recorded; that one tier is the other's sentence about all nodes
holds all the same.  A field is dropped, given twice, given another field's value, or something no field would have.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kubesched.api.objects import KINDS, Invalid, Pod, read_or_invalid
from kubesched.cluster.podinfo import PodInfo
from kubesched.testing.parity import Answer, Case, Recording, compare, read_recordings

DATA = Path(__file__).parent / "data"
SEEDS = 25  # per part
NAMES = ("n0", "n1", "default", "topology.kubernetes.io/zone", "kubernetes.io/hostname", "a/b/c", "ä", "x" * 64)
WORDS = ("Exists", "In", "Gt", "Lt", "Equal", "DoesNotExist", "NoSchedule", "PreferNoSchedule", "Always", "0.0.0.0")
AMOUNTS = (0, 1, -1, "0", "-1", "1m", "0.0001", "1e3", 2**31 - 1, "4Ei")
ODD = (*NAMES, *WORDS, *AMOUNTS, "", None, True)


@pytest.fixture(scope="module")
def recorded() -> list[Recording]:
    """A few of every family."""
    files = sorted(DATA.glob("*.jsonl.gz"))
    return [one for file in files for one in itertools.islice(read_recordings(file), 0, None, 20)]


@pytest.fixture(scope="module")
def values(recorded: list[Recording]) -> dict[str, list[Any]]:
    """By the name of a field, what it says in the recordings."""
    said: dict[str, list[Any]] = defaultdict(list)
    for one in recorded:
        for parent, key in places([one.case.objects, one.case.pods]):
            if isinstance(key, str) and not isinstance(parent[key], (dict, list)):
                said[key].append(parent[key])
    return said


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Everything in a tree, as its parent and where in it."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], (dict, list)):
            yield from places(tree[key])


def copied(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: copied(value) for key, value in tree.items()}
    return [copied(value) for value in tree] if isinstance(tree, list) else tree


def spoil(luck: Random, tree: Any, values: dict[str, list[Any]]) -> None:
    """Change one thing."""
    parent, key = luck.choice(list(places(tree)))
    value = parent[key]
    match luck.randrange(4):
        case 0:
            del parent[key]
        case 1 if isinstance(value, list) and value:
            value.append(copied(luck.choice(value)))
        case 1 | 2 if isinstance(value, dict) and value:
            value[luck.choice((*NAMES, "cpu", "memory", "pods", "app"))] = copied(luck.choice(list(value.values())))
        case _ if not isinstance(value, (dict, list)):
            parent[key] = luck.choice(values.get(key, ODD) if luck.random() < 0.5 else ODD)


def spoilt(luck: Random, case: Case, values: dict[str, list[Any]]) -> Case:
    """The case with a few things wrong, but for objects that cannot be read at all: those never reach a plugin."""
    objects, pods = copied(case.objects), copied(case.pods)
    for _ in range(luck.choice((1, 1, 2, 4))):
        spoil(luck, luck.choice([objects, pods]), values)
    asked = [pod for pod in pods if is_readable(pod, "Pod")]
    for i, pod in enumerate(asked):
        pod["metadata"] |= {"uid": f"asked-{i}", "name": f"asked-{i}"}
        pod.setdefault("spec", {})["schedulerName"] = case.pods[0]["spec"].get("schedulerName", "default-scheduler")
    return Case(case.id, [obj for obj in objects if is_readable(obj, obj.get("kind"))], asked, case.config)


def is_readable(raw: Any, kind: Any) -> bool:
    if kind not in KINDS or not isinstance(raw.get("metadata"), dict):
        return False
    obj = read_or_invalid(raw, KINDS[kind])
    if isinstance(obj, Pod):
        try:
            PodInfo(obj).measure()
        except ValueError:
            return False
    return not isinstance(obj, Invalid) and bool(obj.name)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 6))])
def test_tiers_and_boards_agree_where_something_is_wrong(
    recorded: list[Recording], values: dict[str, list[Any]], part: int
) -> None:
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        luck = Random(seed)
        case = spoilt(luck, luck.choice(recorded).case, values)
        compared = compare(Recording(case, Answer([])), ("scalar", "vector"), boards=True)
        assert not compared.tiers_disagree, (seed, case.id, str(compared.tiers_disagree[0]))
        assert not compared.boards_differ, (seed, case.id, str(compared.boards_differ[0]))
