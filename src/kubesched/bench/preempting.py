"""How long the search for victims takes when a whole cluster is full.

Every node is filled with pods of low priority; then one pod of high priority comes that fits nowhere.  What is
measured is its one attempt: all filters say no, and the dry run looks for the least missed victims.
"""

from __future__ import annotations

import gc
from time import perf_counter_ns, process_time_ns

from msgspec import Struct

from kubesched.api.time import Instant
from kubesched.assemble import build
from kubesched.bench.throughput import WrongOutcome, tell
from kubesched.bench.workload import nodes_of
from kubesched.core.core import Core
from kubesched.core.messages import Tick
from kubesched.testing.builders import pod

GOAL_MS = 150
_NOW = Instant(1_767_268_800_000_000_000)


class Search(Struct, frozen=True):
    """What came of one search."""

    nodes: int
    pods_a_node: int
    milliseconds: float
    cpu_milliseconds: float
    victims: int


def full(nodes: int, pods_a_node: int) -> Core:
    """A core whose nodes have no cpu left, and one important pod in its queue."""
    core = build(checks=False, seed=1)
    for one in nodes_of(nodes):
        tell(core, one)
        for i in range(pods_a_node):
            tell(core, pod(f"{one.name}-{i}", on=one.name, cpu=f"{32_000 // pods_a_node}m", memory="1Gi", priority=1))
    tell(core, pod("important", cpu=2, memory="1Gi", priority=1000))
    return core


def measure(nodes: int = 5_000, pods_a_node: int = 30) -> Search:
    """Let one pod look for victims.  Raises WrongOutcome."""
    core = full(nodes, pods_a_node)
    gc.collect()
    gc.freeze()  # as throughput.measure
    begun, start = process_time_ns(), perf_counter_ns()
    try:
        core.handle(Tick(), _NOW)
    finally:
        took, busy = perf_counter_ns() - start, process_time_ns() - begun
        gc.unfreeze()
    decision = core.why("default/important")
    found = None if decision is None else decision.post_filter
    if found is None or not found.node or not found.victims:
        raise WrongOutcome("preemption: the pod found nobody to take the place of")
    room = sum(victim.requests["cpu"] for victim in found.victims) + 32_000 % pods_a_node
    if room < 2_000 or len({victim.pod.spec.node_name for victim in found.victims}) != 1:
        raise WrongOutcome(f"preemption: the victims on {found.node} leave {room}m of cpu, 2000m are needed")
    return Search(nodes, pods_a_node, round(took / 1e6, 3), round(busy / 1e6, 3), len(found.victims))
