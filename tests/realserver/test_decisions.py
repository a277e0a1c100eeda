"""The real kube-scheduler and kubesched are asked the same, and decide the same.

Questions are drawn from a seed.  Each cluster is put on the real API server; kubesched decides by what the API server
then has, and kube-scheduler is started on it.  Where the pod goes must be one of kubesched's best nodes; where it goes
nowhere, the sentence, the promised node and the victims must be the same.

    KUBESCHED_DECISION_SEEDS=100-160 python -m pytest tests/realserver/test_decisions.py

asks as many more as you like.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.realserver.client import Client
from tests.realserver.harness import Options, RealCluster
from tests.realserver.process import wait_until
from tests.realserver.questions import ASKED, Json, clear, draw, gathered, put, sendable

from kubesched.api.kinds import KNOWN
from kubesched.testing.parity import Case, decide

_FIRST, _, _LAST = os.environ.get("KUBESCHED_DECISION_SEEDS", "1-10").partition("-")
SEEDS = range(int(_FIRST), int(_LAST or _FIRST) + 1)
# No class has to be there for a priority or an overhead, and nobody waits for controllers that do not run here.
WITHOUT = ("ServiceAccount", "TaintNodesByCondition", "Priority", "RuntimeClass", "StorageObjectInUseProtection")
PODS = KNOWN["Pod"]
SELECTED = "volume.kubernetes.io/selected-node"


@pytest.fixture(scope="module")
def cluster(real_binaries: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A cluster for these tests alone, for its nodes are everybody's."""
    with RealCluster(tmp_path_factory.mktemp("decisions"), Options(admission_off=WITHOUT)) as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_kube_scheduler_decides_the_same(cluster: RealCluster, seed: int) -> None:
    client, question = cluster.client(), draw(seed)
    put(client, question.objects)
    scheduler = cluster.start_scheduler(question.config)
    try:
        objects = gathered(client)
        decided, made = _first_decision(client, question.pods)
        ours = [decide(Case(str(seed), objects, [made], question.config), tier).decisions[0] for tier in TIERS]
        for own in ours:
            _agree(client, decided, own)
    finally:
        scheduler.stop()
        clear(client)


TIERS: tuple[Any, ...] = ("scalar", "vector")


def _first_decision(client: Client, wanted: list[Json]) -> tuple[Json, Json]:
    """Create the first that may be made; it as kube-scheduler has decided about it, and as it was made."""
    asked = (client.request("POST", PODS.path(raw["metadata"]["namespace"]), sendable(raw)) for raw in wanted)
    made = next(answer.json for answer in asked if answer.status == 201)
    namespace = made["metadata"]["namespace"]
    version = made["metadata"]["resourceVersion"]
    if made["spec"].get("volumes"):
        # Nobody makes volumes here: of a pod that waits for one, its claim says where it is to be made.
        wait_until(lambda: _is_decided(client, namespace), timeout=30, what="kube-scheduler to decide")
        return {**client.get(PODS.path(namespace, ASKED)), "selected": _selected(client)}, made
    for event in client.watch(PODS.path(namespace), resourceVersion=version, fieldSelector=f"metadata.name={ASKED}"):
        seen: Json = event["object"]
        if seen["spec"].get("nodeName") or _sentence(seen):
            return seen, made
    raise AssertionError(f"kube-scheduler has not decided about {made}")


def _is_decided(client: Client, namespace: str) -> bool:
    seen = client.get(PODS.path(namespace, ASKED))
    return bool(seen["spec"].get("nodeName") or _sentence(seen) or _selected(client))


def _selected(client: Client) -> str:
    """The node for which a volume has been asked."""
    claims = client.get(KNOWN["PersistentVolumeClaim"].path())["items"]
    return next(filter(None, (raw["metadata"].get("annotations", {}).get(SELECTED) for raw in claims)), "")


def _sentence(pod: Json) -> str:
    conditions = pod.get("status", {}).get("conditions", ())
    return next((str(one.get("message", "")) for one in conditions if one["type"] == "PodScheduled"), "")


def _agree(client: Client, decided: Json, ours: Json) -> None:
    chosen = decided["spec"].get("nodeName") or decided.get("selected")
    assert bool(chosen) == bool(ours.get("chosen")), (chosen, _sentence(decided), ours)
    if chosen:
        assert chosen in ours["best"], ours
        return
    assert _sentence(decided) == ours.get("message", ours.get("error"))
    promise = ours.get("postFilter", {})
    assert decided["status"].get("nominatedNodeName") == promise.get("nominatedNode")
    victims = promise.get("victims", [])
    wait_until(lambda: len(_leaving(client)) >= len(victims), timeout=20, what=f"{victims} to be evicted")
    assert _leaving(client) == victims


def _leaving(client: Client) -> list[str]:
    pods = [raw["metadata"] for raw in client.get(PODS.path())["items"]]
    return sorted(f"{meta['namespace']}/{meta['name']}" for meta in pods if "deletionTimestamp" in meta)
