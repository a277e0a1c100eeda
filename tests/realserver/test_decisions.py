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
# Priorities come from classes, claims and volumes are let go, and nobody waits for controllers that do not run here.
WITHOUT = ("ServiceAccount", "TaintNodesByCondition", "Priority", "StorageObjectInUseProtection")
PODS = KNOWN["Pod"]


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
        decided, made = _first_decision(client, question.pod)
        ours = [decide(Case(str(seed), objects, [made], question.config), tier).decisions[0] for tier in TIERS]
        for own in ours:
            _agree(client, decided, own)
    finally:
        scheduler.stop()
        clear(client)


TIERS: tuple[Any, ...] = ("scalar", "vector")


def _first_decision(client: Client, wanted: Json) -> tuple[Json, Json]:
    """Create the pod; it as kube-scheduler has decided about it, and as it was made."""
    namespace = wanted["metadata"]["namespace"]
    made = client.create(PODS.path(namespace), sendable(wanted))
    version = made["metadata"]["resourceVersion"]
    for event in client.watch(PODS.path(namespace), resourceVersion=version, fieldSelector=f"metadata.name={ASKED}"):
        seen: Json = event["object"]
        if seen["spec"].get("nodeName") or _sentence(seen):
            return seen, made
    raise AssertionError(f"kube-scheduler has not decided about {made}")


def _placed(pod: Json) -> str:
    """Its node; or the one that has been chosen and waits for volumes that nobody makes here."""
    promised = "" if _sentence(pod) else pod["status"].get("nominatedNodeName", "")
    return str(pod["spec"].get("nodeName") or promised)


def _sentence(pod: Json) -> str:
    conditions = pod.get("status", {}).get("conditions", ())
    return next((str(one.get("message", "")) for one in conditions if one["type"] == "PodScheduled"), "")


def _agree(client: Client, decided: Json, ours: Json) -> None:
    chosen = _placed(decided)
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
