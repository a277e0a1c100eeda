"""Pods through the core: queue, decision, assumption, and a bind that is answered at once.

Nodes and pods are told beforehand and are not measured.  A lap is one pod: from the Tick that takes it out of the
queue to the Completed that says it is bound.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from time import perf_counter_ns, process_time_ns

from msgspec import Struct

from kubesched.api.objects import KubeObject
from kubesched.api.time import Instant
from kubesched.assemble import build
from kubesched.bench.workload import Placement, Workload, nodes_of, pods_of
from kubesched.core.core import Core
from kubesched.core.messages import Bind, Completed, Observed, Tick
from kubesched.framework.errors import KubeschedError

_NOW = Instant(1_767_268_800_000_000_000)

Progress = Callable[[int], None]  # told how many more pods have been placed


class WrongOutcome(KubeschedError):
    """The pods are not where they belong: there is no figure."""


class Figures(Struct, frozen=True):
    """What came of one run, the one in the middle where there were several.

    Neighbours on the machine disturb processor time (`cpu_us_a_pod`) less than the clock.  They disturb least what a
    pod took of it in the quickest of several runs, which do the same in the same order: `quiet_us_a_pod` is the mean.
    """

    workload: str
    nodes: int
    pods: int
    placed: int
    seconds: float
    pods_per_second: float
    p50_us: float
    p99_us: float
    cpu_us_a_pod: float
    quiet_us_a_pod: float
    percentage_of_nodes_scored: float
    boards: bool


def measure(
    workload: Workload,
    nodes: int,
    pods: int,
    *,
    boards: bool = True,
    prepare: Callable[[Core], None] | None = None,
    progress: Progress | None = None,
    kept: list[list[int]] | None = None,
) -> Figures:
    """Place the pods of a workload and check where they went.  Raises WrongOutcome.

    Args:
        prepare: look at the core, or wrap its plugins, before the first pod.
        kept: gets the laps of this run, by the processor.
    """
    core = loaded(workload, nodes, pods, boards=boards)
    if prepare is not None:
        prepare(core)
    gc.collect()
    gc.freeze()  # what has been loaded is not garbage; a collection need not look at it again and again
    try:
        laps, cpu = place_all(core, progress)
    finally:
        gc.unfreeze()
    verify(core, workload, pods)
    if kept is not None:
        kept.append(cpu)
    seconds = sum(laps) / 1e9
    return Figures(
        workload.name,
        nodes,
        pods,
        len(core.mirror.placed),
        round(seconds, 6),
        round(len(laps) / seconds, 1),
        percentile(laps, 50) / 1000,
        percentile(laps, 99) / 1000,
        round(quickest([cpu]), 1),
        round(quickest([cpu]), 1),
        _share_scored(core),
        core.boards is not None,
    )


def loaded(workload: Workload, nodes: int, pods: int, *, boards: bool = True) -> Core:
    """A core with kube-scheduler's default profile that knows the nodes and has the pods in its queue."""
    core = build(checks=False, seed=1)
    if not boards:
        core.boards = None
    for one in (*nodes_of(nodes), *pods_of(workload, pods)):
        tell(core, one)
    return core


def tell(core: Core, obj: KubeObject) -> None:
    core.handle(Observed(obj), _NOW)  # type: ignore[arg-type]  # the builders make no others


def place_all(core: Core, progress: Progress | None = None) -> tuple[list[int], list[int]]:
    """Tick until nobody is waiting; nanoseconds per pod that was tried, by the clock and by the processor."""
    laps: list[int] = []
    cpu: list[int] = []
    while core.ready:
        begun = process_time_ns()
        start = perf_counter_ns()
        effects = core.handle(Tick(), _NOW)
        told = [tale for e in effects if type(e) is Bind for tale in core.handle(Completed(e.id), _NOW)]
        laps.append(perf_counter_ns() - start)
        cpu.append(process_time_ns() - begun)
        for effect in (*effects, *told):  # Events about pods: whoever writes them is not in anybody's way
            if type(effect) is not Bind:
                core.handle(Completed(effect.id), _NOW)
        if progress is not None:
            progress(1)
    return laps, cpu


def verify(core: Core, workload: Workload, pods: int) -> None:
    """See that every pod has a place and that the workload finds nothing wrong with it.  Raises WrongOutcome."""
    table = core.mirror.table
    placed = [(tracked.info.pod, tracked.node) for tracked in core.mirror.placed.values()]
    if len(placed) != pods:
        raise WrongOutcome(f"workload {workload.name}: {pods - len(placed)} of {pods} pods found no place")
    nodes = [one for one in table.nodes if one is not None]
    for problem in workload.check(Placement(nodes, placed)):
        raise WrongOutcome(f"workload {workload.name}: {problem}")


def quickest(runs: Sequence[Sequence[int]]) -> float:
    """Microseconds a pod, each as quick as in the quickest of some runs."""
    total: int = sum(min(laps) for laps in zip(*runs, strict=True))
    return total / len(runs[0]) / 1000


def percentile(laps: Sequence[int], percent: int) -> int:
    """The smallest of the laps that so many percent do not exceed."""
    return sorted(laps)[max(0, -(-len(laps) * percent // 100) - 1)]


def _share_scored(core: Core) -> float:
    """How many of all nodes the last attempts looked at, in percent."""
    decision = core.decisions.recent[-1]
    return round(100 * decision.evaluated / decision.node_count, 1)
