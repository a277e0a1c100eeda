"""The embedded API server and the real one, with etcd, under the same load in the same run.

    make bench-embedded                                 (needs the real servers: make envtest)
    .venv/bin/python -m tools.bench_embedded --pods 2000

Both are behind TLS and a token, with validation and defaulting on, and nobody schedules.  They are measured in turn, a
few times, and what is shown are medians, of the ratios too.  On a shared machine look at processor time first:
neighbours disturb rates by the clock far more.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.realserver.harness import Options, RealCluster

from kubesched.bench.apiload import Server
from kubesched.bench.embedded import Figures, load, measure


def measure_real(pods: int) -> Figures:
    """The figures of kube-apiserver and etcd; every write is on the disk before it is answered."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = RealCluster(Path(folder), Options(durable=True))
        began = time.perf_counter()
        with cluster:
            seconds = time.perf_counter() - began
            pids = (cluster.etcd.pid, cluster.apiserver.pid)
            server = Server(cluster.url, cluster.tokens["admin"], cluster.ca_file.read_text(), pids)
            return asyncio.run(load(server, (seconds, server.cpu()), pods))


Row = tuple[str, float, float, float]
"""What is compared: its name, ours, theirs, and how many times better ours is."""


def rows(ours: Figures, theirs: Figures) -> list[Row]:
    """One round."""
    found = [
        ("first answer, s", ours.first_answer_seconds, theirs.first_answer_seconds),
        ("first answer, s of the processor", ours.first_answer_cpu_seconds, theirs.first_answer_cpu_seconds),
        ("resident at rest, MiB", ours.resident_mib, theirs.resident_mib),
        ("per 10,000 pods, MiB", ours.mib_per_10000_pods, theirs.mib_per_10000_pods),
    ]
    table = [(name, one, other, other / one) for name, one, other in found]
    for one, other in zip(ours.rates, theirs.rates, strict=True):
        name = f"{one.what}, {one.connections} connection{'s' if one.connections > 1 else ''}"
        table.append((f"{name}, /s", one.per_second, other.per_second, one.per_second / other.per_second))
        table.append((f"{name}, ms of the processor", one.cpu_ms, other.cpu_ms, other.cpu_ms / one.cpu_ms))
    for mine, real in zip(ours.watched, theirs.watched, strict=True):
        name = f"events/s to {mine.watchers} watchers"
        rate, their_rate = mine.events_per_second, real.events_per_second
        table.append((name, rate, their_rate, rate / their_rate))
    table.append(
        (f"list of {ours.listed_pods:,} pods, ms", ours.list_ms, theirs.list_ms, theirs.list_ms / ours.list_ms)
    )
    return table


def medians(rounds: Sequence[Sequence[Row]]) -> list[Row]:
    """Of several rounds, line by line; of the ratios each pair has its own."""
    lines = zip(*rounds, strict=True)
    return [(line[0][0], *(statistics.median(row[column] for row in line) for column in (1, 2, 3))) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--pods", type=int, default=4100, help="how many pods (default: %(default)s, for a list of 5,000)"
    )
    parser.add_argument("--runs", type=int, default=3, help="how often each (default: %(default)s)")
    arguments = parser.parse_args()
    rounds: list[list[Row]] = []
    for _ in range(arguments.runs):
        theirs = measure_real(arguments.pods)
        rounds.append(rows(measure(arguments.pods), theirs))
    table = Table(box=None, header_style="bold")
    for heading in ("", "embedded", "kube-apiserver and etcd", "times"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, one, other, times in medians(rounds):
        table.add_row(
            name,
            f"{one:,.3g}" if one < 100 else f"{one:,.0f}",
            f"{other:,.3g}" if other < 100 else f"{other:,.0f}",
            f"{times:.1f}",
        )
    Console(soft_wrap=True, highlight=False).print(table)


if __name__ == "__main__":
    main()
