"""kubesched bench: how many pods a second this scheduler places here, and whether it places them right."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import click
import msgspec
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kubesched import __version__
from kubesched.bench import memory as _memory
from kubesched.bench import preempting
from kubesched.bench.stopwatch import Stopwatch
from kubesched.bench.throughput import Figures, measure, quickest
from kubesched.bench.throughput import Progress as Told
from kubesched.bench.workload import WORKLOADS, Workload

NODES, PODS = 5_000, 1_000
MANY_NODES = 50_000
GOAL_WITH_MANY = 2_000  # pods a second
_SECTIONS = ("preemption", "memory", "embedded")
_MEASURED = ("pods/s", "p50 µs", "p99 µs", "cpu µs", "quiet µs")
_HEADINGS = ("workload", "nodes", "pods", *_MEASURED, "kube-scheduler", "times", "goal")
_WIDTH = 110  # of the table: a heading that is cut off helps nobody
_ON_OFF = click.Choice(["on", "off"])


@click.command()
@click.option(
    "--workload",
    "names",
    multiple=True,
    type=click.Choice([*WORKLOADS, *_SECTIONS]),
    help="Only this one; may be given several times.",
)
@click.option("--nodes", type=click.IntRange(1, 200_000), metavar="N", help=f"How many nodes.  [default: {NODES}]")
@click.option("--pods", type=click.IntRange(1, 1_000_000), metavar="P", help=f"How many pods.  [default: {PODS}]")
@click.option("--runs", type=click.IntRange(1, 1_000), default=3, show_default=True, metavar="R", help="Their median.")
@click.option("--boards", type=_ON_OFF, default="on", show_default=True, help="Keep answers for pods alike.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.option("--profile", is_flag=True, help="Also show where the time goes: every hook of every plugin.")
def bench(
    names: tuple[str, ...],
    nodes: int | None,
    pods: int | None,
    runs: int,
    boards: str,
    as_json: bool,
    profile: bool,
) -> None:
    """Place pods through the core alone and say how many a second.

    Without --workload: all of them, basic once more with 50,000 nodes, a search for victims, and memory.  A run
    whose pods are not where they belong has no figure; the command then fails.
    """
    wanted = [WORKLOADS[name] for name in names or WORKLOADS if name in WORKLOADS]
    sizes = [Size(workload, nodes or NODES, pods or PODS) for workload in wanted]
    if not names and nodes is None:
        sizes.append(Size(WORKLOADS["basic"], MANY_NODES, pods or PODS))
    found = []
    for size in sizes:
        found.append((size.workload, _median(size, runs, boards == "on", quiet=as_json or not sys.stderr.isatty())))
        if as_json:
            click.echo(msgspec.json.encode(found[-1][1]))
    if not as_json and found:
        _print(found)
    if profile:
        for size in sizes:
            _show_profile(size, boards == "on", as_json)
    for section, show in _SHOW.items():
        if section in names or not names:
            show(nodes or NODES, as_json)


class Size(NamedTuple):
    """One line of the table."""

    workload: Workload
    nodes: int
    pods: int


def _median(size: Size, runs: int, boards: bool, quiet: bool) -> Figures:
    """The run in the middle, by its time."""
    with _progress(f"{size.workload.name}, {size.nodes:,} nodes", size.pods * runs, quiet) as told:
        kept: list[list[int]] = []
        found = [measure(*size, boards=boards, progress=told, kept=kept) for _ in range(runs)]
    middle = sorted(found, key=lambda one: one.seconds)[(runs - 1) // 2]
    return msgspec.structs.replace(middle, quiet_us_a_pod=round(quickest(kept), 1))


@contextmanager
def _progress(what: str, total: int, quiet: bool) -> Iterator[Told | None]:
    """A bar on a terminal; nothing where nobody looks."""
    if quiet:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────


def _print(rows: list[tuple[Workload, Figures]]) -> None:
    table = Table(box=None, header_style="bold", title=_machine(), title_justify="left", title_style="dim")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading == "workload" else "right")
    for workload, one in rows:
        many = one.nodes == MANY_NODES
        goal = GOAL_WITH_MANY / workload.reference if many else workload.goal
        times = one.pods_per_second / workload.reference
        table.add_row(
            workload.name,
            f"{one.nodes:,}",
            f"{one.placed:,}",
            f"{one.pods_per_second:,.0f}",
            f"{one.p50_us:.0f}",
            f"{one.p99_us:.0f}",
            f"{one.cpu_us_a_pod:.0f}",
            f"{one.quiet_us_a_pod:.0f}",
            f"{workload.reference}",
            f"{times:.1f}",
            f"{goal:.1f} {'✓' if times >= goal else '✗'}",
        )
    Console(soft_wrap=True, highlight=False, width=max(Console().width, _WIDTH)).print(table)


def _machine() -> str:
    """Where a figure was taken: it means nothing anywhere else."""
    versions = {
        "kubesched": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "msgspec": msgspec.__version__,
    }
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {listed}"


# ── where the time goes ──────────────────────────────────────────────────────────────────────────────────────


def _show_profile(size: Size, boards: bool, as_json: bool) -> None:
    watch = Stopwatch()
    figures = measure(*size, boards=boards, prepare=watch.attach)
    hooks = watch.table()
    if as_json:
        lines = [row._asdict() for row in hooks]
        click.echo(msgspec.json.encode({"workload": size.workload.name, "nodes": size.nodes, "profile": lines}))
        return
    title = f"\n{size.workload.name}, {size.nodes:,} nodes: where the time goes"
    table = Table(box=None, header_style="bold", title=title, title_justify="left")
    for heading in ("plugin", "hook", "calls", "total ms", "share", "p50 µs", "p99 µs"):
        table.add_column(heading, justify="left" if heading in ("plugin", "hook") else "right")
    whole = figures.seconds * 1e6
    for row in hooks:
        cells = (f"{row.calls:,}", f"{row.total_us / 1000:.2f}", f"{row.total_us / whole:.1%}")
        table.add_row(row.plugin, row.hook, *cells, f"{row.p50_us:.1f}", f"{row.p99_us:.1f}")
    rest = whole - sum(row.total_us for row in hooks)
    cells = (f"{size.pods:,}", f"{rest / 1000:.2f}", f"{rest / whole:.1%}")
    table.add_row("the core, and taking the time", "", *cells, f"{rest / size.pods:.1f}", "")
    Console(soft_wrap=True, highlight=False).print(table)


# ── sections that are no workload ────────────────────────────────────────────────────────────────────────────


def _show_preemption(nodes: int, as_json: bool) -> None:
    found = preempting.measure(nodes)
    if as_json:
        click.echo(msgspec.json.encode({"workload": "preemption", **msgspec.structs.asdict(found)}))
        return
    per = f"{found.nodes:,} nodes with {found.pods_a_node} pods each"
    took = f"{found.milliseconds:.1f} ms, {found.cpu_milliseconds:.1f} of the processor,"
    click.echo(f"\npreemption: {took} for one pod, {per} (goal: {preempting.GOAL_MS})")


def _show_memory(nodes: int, as_json: bool) -> None:
    found = _memory.measure(nodes, 10 * nodes)
    if as_json:
        click.echo(msgspec.json.encode({"workload": "memory", **msgspec.structs.asdict(found)}))
        return
    loaded = f"{found.nodes:,} nodes of {found.node_json_bytes:,} bytes"
    placed = f"{found.pods:,} bound pods of {found.pod_json_bytes:,}"
    click.echo(f"memory: {found.resident_mib:.0f} MiB resident with {loaded} and {placed} (goal: {_memory.GOAL_MIB})")
    click.echo(f"        {found.bytes_a_pod:,} bytes a bound pod (goal: {_memory.GOAL_BYTES_A_POD:,})")


def _show_embedded(_: int, as_json: bool) -> None:
    from kubesched.bench import embedded

    found = embedded.measure()
    if as_json:
        click.echo(msgspec.json.encode({"workload": "embedded", **msgspec.to_builtins(found)}))
        return
    for line in embedded.lines(found):
        click.echo(line)


_SHOW = {"preemption": _show_preemption, "memory": _show_memory, "embedded": _show_embedded}
