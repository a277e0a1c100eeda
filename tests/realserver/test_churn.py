"""Pods come and go, something breaks all the time, and nothing is lost, sold twice, or forgotten.

Here for half a minute; `make churn` does it with 500 nodes and 5,000 pods for ten.
"""

from __future__ import annotations

import json
import os
import statistics
from pathlib import Path

import pytest
import yaml
from tests.realserver.churn import USERS, Churn, Size
from tests.realserver.harness import Options, RealCluster
from tests.realserver.history import JSON_STORAGE
from tests.realserver.scene import LEASE, Scene
from tests.realserver.witness import written_without_the_lease

SIZE = Size(
    nodes=int(os.environ.get("KUBESCHED_CHURN_NODES", "50")),
    pods=int(os.environ.get("KUBESCHED_CHURN_PODS", "400")),
    seconds=float(os.environ.get("KUBESCHED_CHURN_SECONDS", "30")),
    fault_every=float(os.environ.get("KUBESCHED_CHURN_FAULT_EVERY", "5")),
)
SEED = int(os.environ.get("KUBESCHED_CHURN_SEED", "1"))
GROWTH_AT_MOST = 1.10  # since its second fifth, of whoever led for a quarter of the time: what fills is full by then
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["create", "update"], "resources": [
            {"group": "", "resources": ["pods/binding"]}, {"group": "coordination.k8s.io", "resources": ["leases"]},
        ]},
        {"level": "None"},
    ],
}  # fmt: skip


@pytest.mark.slow
def test_pods_come_and_go_while_everything_breaks(
    real_binaries: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(POLICY))
    flags = {**JSON_STORAGE, "audit-policy-file": str(policy)}
    users = {user: ["system:masters"] for user in USERS}
    options = Options(authorization="AlwaysAllow", users=users, audit="Metadata", apiserver_flags=flags)
    with RealCluster(tmp_path / "cluster", options) as cluster, Scene(cluster, tmp_path) as scene:
        churn = Churn(scene, SIZE, SEED)
        churn.run()
        said = [one.log.read_text() for seat in churn.seats for one in seat.all]
        led = {pid: sizes for seat in churn.seats for pid, sizes in seat.memory.items()}
        growth = [memory_growth(sizes) for sizes in led.values() if len(sizes) >= SIZE.seconds / 4]
        with capsys.disabled():
            print(f"\n{json.dumps(figures(churn, growth), indent=1)}")
        assert scene.witness.problems == []
        assert written_without_the_lease(cluster.audit_events(), LEASE) == []
        assert sum(sum(seat.rescued.values()) for seat in churn.seats) == 0
        assert not [line for text in said for line in text.splitlines() if line.startswith("Traceback")]
        assert not [text for text in said if "Something is wrong inside" in text]
        assert all(grown <= GROWTH_AT_MOST for grown, _ in growth)


def memory_growth(sizes: list[float]) -> tuple[float, list[float]]:
    """By how much a leader grew, once it had led for a fifth of its time; MiB in each fifth."""
    fifth = max(1, len(sizes) // 5)
    fifths = [statistics.median(sizes[at : at + fifth]) for at in range(0, len(sizes), fifth)][:5]
    return round(fifths[-1] / fifths[min(1, len(fifths) - 1)], 3), [round(mib, 1) for mib in fifths]


def figures(churn: Churn, growth: list[tuple[float, list[float]]]) -> dict[str, object]:
    witness = churn.scene.witness
    return {
        "size": churn.size._asdict(),
        "pods created": churn.crowd.created,
        "bindings": len(witness.bound),
        "leaders": len([holder for holder, _ in witness.holders if holder]),
        "faults": dict(churn.struck),
        "violations": len(witness.problems),
        "rescued by the flush": sum(sum(seat.rescued.values()) for seat in churn.seats),
        "memory of leaders: growth, and MiB in each fifth": growth,
        "processes": sum(len(seat.all) for seat in churn.seats),
    }
