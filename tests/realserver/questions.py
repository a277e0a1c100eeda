"""Clusters drawn from a seed, put on an API server, for a scheduler to decide about one pod.

The parts come from the recorded cases: the nodes of one, pods on nodes of two, the pod to place of a third.  So every
seed asks something that was not recorded, and it stays the kind of thing that was.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from tests.realserver.client import Client

from kubesched.api.kinds import KNOWN
from kubesched.testing.parity import Case, read_recordings

Json = dict[str, Any]

DATA = Path(__file__).parents[1] / "parity" / "data"
NOT_ASKED_TOGETHER = ("volumes",)  # a claim, its volume and its class belong together: taken whole
NAMESPACES: tuple[Json, ...] = tuple(
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"team-{team}", "labels": {"team": team}}}
    for team in "ab"
)
ASKED = "asked"
_NOT_SENT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers")


class Question(NamedTuple):
    """A cluster, and pods of which to place one: the API server may refuse some."""

    objects: list[Json]
    pods: list[Json]
    config: Json | None


@cache
def _recorded() -> dict[str, list[Case]]:
    return {
        file.name.partition(".")[0]: [one.case for one in read_recordings(file)]
        for file in sorted(DATA.glob("*.jsonl.gz"))
    }


def draw(seed: int) -> Question:
    """The same question for the same seed."""
    luck = Random(f"question {seed}")
    family = luck.choice(sorted(_recorded()))
    cases = _recorded()[family]
    base, other, third = (luck.choice(cases) for _ in range(3))
    if family in NOT_ASKED_TOGETHER:
        other = third = base
    base, other, third = copy.deepcopy((base, other, third))
    nodes = [raw for raw in base.objects if raw["kind"] == "Node"]
    for raw in nodes:
        # Of an image that nodes report in different sizes, kube-scheduler keeps the one it heard of first.
        raw["status"].pop("images", None)
    rest = [raw for raw in base.objects if raw["kind"] not in ("Namespace", "Node", "Pod")]
    placed = [raw for case in (base, other) for raw in case.objects if raw["kind"] == "Pod"]
    if other is not base:
        placed = luck.sample(placed, len(placed) // 2)
    names = [raw["metadata"]["name"] for raw in nodes]
    for number, raw in enumerate(placed):
        raw["metadata"]["name"] = f"there-{number}"
        if raw["spec"]["nodeName"] not in names:
            raw["spec"]["nodeName"] = luck.choice(names)
        # No two the same: between victims alike kube-scheduler would choose by chance.
        raw["status"] = {"phase": "Running", "startTime": f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00Z"}
    pods = luck.sample(third.pods, len(third.pods)) + luck.sample(base.pods, len(base.pods))
    for raw in pods:
        raw["metadata"]["name"] = ASKED
    return Question([*NAMESPACES, *rest, *nodes, *placed], pods, base.config)


# ── on the API server ────────────────────────────────────────────────────────────────────────────────────────


def put(client: Client, objects: Iterable[Json]) -> None:
    """Create them, claims before the volumes that name them; what the API server refuses is left out."""
    order = ("Namespace", "Node", "StorageClass", "CSINode", "PersistentVolumeClaim")
    uids: dict[tuple[str, str], str] = {}
    for raw in sorted(objects, key=lambda raw: order.index(raw["kind"]) if raw["kind"] in order else len(order)):
        body, kind = sendable(raw), KNOWN[raw["kind"]]
        owner = body.get("spec", {}).get("claimRef")
        if owner is not None:
            owner["uid"] = uids.get((owner["namespace"], owner["name"]), owner["uid"])
        namespace = body["metadata"].get("namespace", "")
        answer = client.request("POST", kind.path(namespace), body)
        if answer.status != 201:
            continue
        name = body["metadata"]["name"]
        uids[namespace, name] = answer.json["metadata"]["uid"]
        if body.get("status"):
            client.patch(kind.path(namespace, name, "status"), {"status": body["status"]})


def sendable(raw: Json) -> Json:
    """An object without what only the API server may say."""
    meta = {name: value for name, value in raw["metadata"].items() if name not in _NOT_SENT}
    return {**raw, "metadata": meta}


def gathered(client: Client) -> list[Json]:
    """Everything a scheduler reads, as the API server has it."""
    return [
        {**raw, "kind": kind.name, "apiVersion": kind.api_version}
        for kind in KNOWN.values()
        for raw in client.get(kind.path())["items"]
    ]


def clear(client: Client) -> None:
    """Remove all of it but namespaces, which nobody here would empty."""
    for raw in gathered(client):
        kind, meta = KNOWN[raw["kind"]], raw["metadata"]
        if kind.name != "Namespace":
            path = kind.path(meta.get("namespace", ""), meta["name"])
            client.request("DELETE", path, {"gracePeriodSeconds": 0})
