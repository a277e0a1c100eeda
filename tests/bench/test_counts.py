"""What a pod costs, counted rather than timed: the counts of fixed workloads may shrink, and may not grow.

Whoever makes one smaller writes the new one down here; whoever makes one larger had better have a reason.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest

from kubesched.bench.throughput import loaded, place_all
from kubesched.bench.workload import WORKLOADS
from kubesched.core.board import board
from kubesched.core.core import Core
from kubesched.telemetry.laps import wrap_hooks

NODES, PODS = 300, 200
OF_ONE = {"filter", "score"}  # hooks about one node
OF_ALL = {"filter_all", "score_all"}

LIMITS = {  # hook calls, rows asked about, and calls of functions: per pod
    "basic": (10, 30, 500),
    "spread": (12, 71, 775),
    "softspread": (13, 34, 585),
    "antiaffinity": (11, 47, 700),
    "affinity": (14, 138, 800),
    "prefaffinity": (14, 48, 665),
    "nodeaffinity": (10, 28, 510),
    "mixed": (30, 542, 1_400),
    "unique": (52, 2_700, 1_540),
}
BLOCKS_KEPT = {"basic": 30, "mixed": 76}  # blocks of memory that a placed pod leaves behind


def counted(workload: str) -> tuple[int, int]:
    """How many hooks were called, and about how many rows."""
    core = loaded(WORKLOADS[workload], NODES, PODS)
    hooks, rows = Counter[str](), Counter[str]()

    def lap(hook: str, took: int, args: tuple[Any, ...], answer: Any) -> None:
        hooks[hook] += 1
        rows[hook] += 1 if hook in OF_ONE else len(args[2]) if hook in OF_ALL else 0

    for profile in core.profiles.values():
        for plugin in profile.plugins:
            wrap_hooks(plugin, lap)
    place_all(core)
    return -(-hooks.total() // PODS), -(-rows.total() // PODS)


def called(workload: str, core: Core | None = None) -> int:
    """How many functions a pod calls, written in Python or not."""
    core = core or loaded(WORKLOADS[workload], NODES, PODS)
    events = Counter[str]()

    def count(frame: FrameType, event: str, arg: object) -> None:
        events[event] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        place_all(core)
    finally:
        sys.setprofile(before)
    return -(-(events["call"] + events["c_call"]) // PODS)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_pod_asks_no_more_than_it_did(workload: str) -> None:
    hooks, rows, _ = LIMITS[workload]
    asked, about = counted(workload)
    assert asked <= hooks
    assert about <= rows


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_pod_calls_no_more_than_it_did(workload: str) -> None:
    assert called(workload) <= LIMITS[workload][2]


@pytest.mark.parametrize("workload", BLOCKS_KEPT)
def test_a_placed_pod_leaves_no_more_behind_than_it_did(workload: str) -> None:
    core = loaded(WORKLOADS[workload], NODES, PODS)
    gc.collect()
    before = sys.getallocatedblocks()
    place_all(core)
    gc.collect()
    assert len(core.mirror.placed) == PODS
    assert (sys.getallocatedblocks() - before) / PODS <= BLOCKS_KEPT[workload]


class Forgetful:
    """A history that keeps nothing, and a shelf for decisions that keeps none."""

    version = 0

    def nothing(self, *args: object) -> None:
        """Not kept."""

    begin = clear = note = add = nothing


def test_keeping_every_decision_in_full_costs_a_twentieth_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = called("basic")
    core = loaded(WORKLOADS["basic"], NODES, PODS)
    monkeypatch.setattr(board, "History", lambda remembered: Forgetful())
    monkeypatch.setattr(core.decisions, "add", Forgetful().add)
    assert kept <= 1.05 * called("basic", core)
