"""A run has a figure only if its pods are where they belong."""

from __future__ import annotations

import pytest

from kubesched.bench.throughput import WrongOutcome, loaded, measure, percentile, place_all, quickest, verify
from kubesched.bench.workload import WORKLOADS, Placement, nodes_of, pods_of

NODES, PODS = 30, 24


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_is_placed_by_its_rule_with_all_nodes_scored(workload: str) -> None:
    figures = measure(WORKLOADS[workload], NODES, PODS)
    assert (figures.workload, figures.nodes, figures.pods, figures.placed) == (workload, NODES, PODS, PODS)
    assert figures.percentage_of_nodes_scored == 100
    assert figures.boards
    assert 0 < figures.p50_us <= figures.p99_us
    assert figures.seconds > 0 < figures.cpu_us_a_pod


def test_progress_is_told_pod_by_pod() -> None:
    told: list[int] = []
    measure(WORKLOADS["basic"], NODES, PODS, progress=told.append)
    assert told == [1] * PODS


def test_without_boards_there_are_none() -> None:
    assert not measure(WORKLOADS["basic"], NODES, 5, boards=False).boards


def test_pods_that_find_no_place_leave_no_figure() -> None:
    with pytest.raises(WrongOutcome, match=r"workload antiaffinity: 3 of 8 pods found no place"):
        measure(WORKLOADS["antiaffinity"], 5, 8)


def test_a_pod_in_the_wrong_place_leaves_no_figure() -> None:
    core = loaded(WORKLOADS["nodeaffinity"], NODES, PODS)
    place_all(core)
    uid, tracked = next(iter(core.mirror.placed.items()))
    core.mirror.placed[uid] = tracked._replace(node="node-2")  # which is in zc
    with pytest.raises(WrongOutcome, match=r"workload nodeaffinity: 1 pods are in zc"):
        verify(core, WORKLOADS["nodeaffinity"], PODS)


# ── the rules themselves: each finds what is wrong ───────────────────────────────────────────────────────────

ALL_ON_ONE = ["node-0"] * 120
IN_ONE_ZONE = [f"node-{3 * (i % 10)}" for i in range(24)]
ONE_EACH = [f"node-{i}" for i in range(24)]
WRONG = {
    "basic": ALL_ON_ONE,
    "spread": IN_ONE_ZONE,
    "softspread": ["node-0"] * 24,
    "antiaffinity": ["node-0", *ONE_EACH[:-1]],
    "affinity": ONE_EACH,
    "prefaffinity": ONE_EACH,
    "nodeaffinity": ONE_EACH,
    "mixed": ["node-2"] * 24,
    "unique": ALL_ON_ONE,
}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_workload_finds_what_is_wrong(workload: str) -> None:
    places = WRONG[workload]
    pods = pods_of(WORKLOADS[workload], len(places))
    assert list(WORKLOADS[workload].check(Placement(nodes_of(NODES), list(zip(pods, places, strict=True)))))


@pytest.mark.parametrize(("laps", "percent", "expected"), [([5, 1, 3], 50, 3), ([5, 1, 3], 99, 5), ([4], 50, 4)])
def test_a_percentile_is_one_of_the_laps(laps: list[int], percent: int, expected: int) -> None:
    assert percentile(laps, percent) == expected


def test_a_pod_is_as_quick_as_in_its_quickest_run() -> None:
    assert quickest([[5_000, 1_000], [2_000, 3_000]]) == 1.5
