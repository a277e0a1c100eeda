"""kubesched and kube-scheduler side by side: the same pods, on the same real API server, in turn.

    make bench-live                                     (needs the real servers: make envtest)
    .venv/bin/python -m tools.bench_live --nodes 500 --pods 2000 --runs 3

Each run starts one scheduler, lets it see the nodes, creates all pods as fast as the API server takes them, and looks
from outside, over a watch of its own, when each got its node.  The rate is from the first pod created to the last one
bound.  The schedulers take turns and figures are medians, so that a machine which has a bad minute is bad for both.
Last, the same API server takes as many bindings as a load generator alone can send: no scheduler can be faster.

Processor time is that of the scheduler's process until all its Events are written; memory its largest.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from tests.realserver import binaries
from tests.realserver.client import Client
from tests.realserver.harness import Options, RealCluster
from tests.realserver.load import Load, encoded, node
from tests.realserver.process import Server, wait_until
from tests.realserver.scheduling import kubesched

LIMITS = {"qps": 5000, "burst": 5000}
NAME = "default-scheduler"
ZONES = ("za", "zb", "zc")
TICK = os.sysconf("SC_CLK_TCK")


class Run(NamedTuple):
    """What came of one run."""

    pods_per_second: float
    p50_ms: float
    p99_ms: float
    cpu_ms_per_pod: float
    server_cpu_ms_per_pod: float
    memory_mib: float
    events: float  # Scheduled Events written, per pod


# ── who stands side by side ──────────────────────────────────────────────────────────────────────────────────


def start_kubesched(cluster: RealCluster, folder: Path) -> Server:
    settings = {"profiles": [{"schedulerName": NAME}], "clientConnection": LIMITS}
    return kubesched(cluster, folder, settings, verbosity=0).start()


def start_kube_scheduler(cluster: RealCluster, folder: Path) -> Server:
    return cluster.start_scheduler({"clientConnection": LIMITS})


def start_kube_scheduler_json(cluster: RealCluster, folder: Path) -> Server:
    return cluster.start_scheduler({"clientConnection": {**LIMITS, "contentType": "application/json"}})


CONTESTANTS: dict[str, Callable[[RealCluster, Path], Server]] = {
    "kubesched": start_kubesched,
    "kube-scheduler": start_kube_scheduler,
    "kube-scheduler, JSON": start_kube_scheduler_json,
}


# ── one run ──────────────────────────────────────────────────────────────────────────────────────────────────


def pod(name: str) -> dict[str, Any]:
    wants = {"requests": {"cpu": "100m", "memory": "500Mi"}}
    spec = {"containers": [{"name": "pause", "image": "pause:3.9", "resources": wants}]}
    labels = {"app": f"app-{int(name.rpartition('-')[2]) % 10}", "color": "blue"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


@contextmanager
def namespace(client: Client, name: str) -> Iterator[str]:
    """A namespace of its own, whose pods are gone before the next one begins."""
    client.create("/api/v1/namespaces", {"metadata": {"name": name}})
    pods = f"/api/v1/namespaces/{name}/pods"
    try:
        yield pods
    finally:
        client.request("DELETE", pods, {"gracePeriodSeconds": 0}, timeout=300)
        wait_until(lambda: not client.get(f"{pods}?limit=1")["items"], timeout=120, what="the pods to be gone")


async def create_and_wait(client: Client, pods: str, count: int) -> tuple[list[float], dict[str, float]]:
    """Create so many pods; when each was sent, and when each was seen bound."""
    bodies = [(pods, body) for body in encoded(pod(f"pod-{i}") for i in range(count))]
    version = client.get(f"{pods}?limit=1")["metadata"]["resourceVersion"]
    seen: dict[str, float] = {}
    async with Load(client) as load, Load(client) as watcher, asyncio.timeout(600):
        watching = asyncio.create_task(watcher.bound(pods.split("/")[4], version, count, seen))
        sent = await load.post_all(bodies)
        await watching
    return sent, seen


def measure(cluster: RealCluster, folder: Path, start: Any, number: int, count: int) -> Run:
    client = cluster.client()
    scheduler = start(cluster, folder)
    try:
        with namespace(client, f"run-{number}") as pods:
            before = used(scheduler), used(cluster.apiserver) + used(cluster.etcd)
            sent, seen = asyncio.run(create_and_wait(client, pods, count))
            events = told(client, f"run-{number}", count)
            spent = used(scheduler) - before[0], used(cluster.apiserver) + used(cluster.etcd) - before[1]
            memory = resident_max(scheduler)
    finally:
        scheduler.stop(grace=10)
    waits = sorted(1000 * (seen[f"pod-{i}"] - sent[i]) for i in range(count))
    rate = count / (max(seen.values()) - min(sent))
    middle, late = waits[count // 2], waits[min(count - 1, count * 99 // 100)]
    return Run(rate, middle, late, spent[0] / count * 1000, spent[1] / count * 1000, memory, events / count)


def told(client: Client, name: str, count: int) -> int:
    """How many Events say that a pod was scheduled, when there are all or no more come."""

    def there() -> int:
        found = client.get(f"/apis/events.k8s.io/v1/namespaces/{name}/events?limit=1")
        return len(found["items"]) + found["metadata"].get("remainingItemCount", 0)

    last, since = there(), time.monotonic()
    while last < count and time.monotonic() - since < 3:
        time.sleep(0.2)
        now = there()
        if now != last:
            last, since = now, time.monotonic()
    return last


def raw_rate(cluster: RealCluster, number: int, count: int, nodes: int) -> float:
    """Bindings a second that the API server takes when nobody has to decide anything."""
    client = cluster.client()
    with namespace(client, f"run-{number}") as pods:

        async def bind_all() -> float:
            async with Load(client, 64) as load:
                await load.post_all((pods, body) for body in encoded(pod(f"pod-{i}") for i in range(count)))
                target = [{"apiVersion": "v1", "kind": "Node", "name": f"node-{i % nodes}"} for i in range(count)]
                bindings = encoded({"metadata": {"name": f"pod-{i}"}, "target": target[i]} for i in range(count))
                paths = [f"{pods}/pod-{i}/binding" for i in range(count)]
                start = time.monotonic()
                await load.post_all(zip(paths, bindings, strict=True))
                return count / (time.monotonic() - start)

        return asyncio.run(bind_all())


# ── what the system says of a process ────────────────────────────────────────────────────────────────────────


def used(server: Server) -> float:
    """Seconds of processor time so far."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident_max(server: Server) -> float:
    """The most memory it ever held, in MiB."""
    status = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


# ── the whole of it ──────────────────────────────────────────────────────────────────────────────────────────


def median(runs: list[Run]) -> Run:
    return Run(*map(statistics.median, zip(*runs, strict=True)))


def show(found: dict[str, list[Run]], raw: float, nodes: int, pods: int) -> None:
    title = f"{nodes} nodes, {pods} pods, {len(found['kubesched'])} runs each in turn, medians; {os.cpu_count()} cores"
    table = Table(box=None, header_style="bold", title=title, title_justify="left", title_style="dim")
    headings = ("pods/s", "of kubesched", "p50 ms", "p99 ms", "CPU ms/pod", "server's", "MiB", "Events/pod")
    table.add_column("scheduler")
    for heading in headings:
        table.add_column(heading, justify="right")
    rate = median(found["kubesched"]).pods_per_second
    for name, runs in found.items():
        one = median(runs)
        cells = (f"{one.pods_per_second:.0f}", f"{one.pods_per_second / rate:.0%}", f"{one.p50_ms:.0f}")
        rest = (f"{one.p99_ms:.0f}", f"{one.cpu_ms_per_pod:.2f}", f"{one.server_cpu_ms_per_pod:.2f}")
        table.add_row(name, *cells, *rest, f"{one.memory_mib:.0f}", f"{one.events:.2f}")
    table.add_row("bindings alone", f"{raw:.0f}", f"{raw / rate:.0%}")
    Console(soft_wrap=True, highlight=False).print(table)
    best = max(median(runs).pods_per_second for name, runs in found.items() if name != "kubesched")
    print(f"\nkubesched binds {rate / best:.2f} times as many pods a second as the faster kube-scheduler,")
    print(f"and {rate / raw:.0%} of what the API server takes of bindings alone.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", choices=list(CONTESTANTS), action="append", help="leave the others out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    wish = parser.parse_args()
    if absent := binaries.missing():
        print(absent, file=sys.stderr)
        return 1
    names = [name for name in CONTESTANTS if not wish.only or name in wish.only]
    found: dict[str, list[Run]] = {name: [] for name in names}
    durable = Options(durable=True)
    with tempfile.TemporaryDirectory() as folder, RealCluster(Path(folder, "cluster"), durable) as cluster:
        client = cluster.client()
        for i in range(wish.nodes):
            labels = {"topology.kubernetes.io/zone": ZONES[i % 3], "topology.kubernetes.io/region": "r1"}
            client.create("/api/v1/nodes", node(f"node-{i}", **labels))
        for number in range(wish.runs * len(names)):
            name = names[number % len(names)]
            run = measure(cluster, Path(folder, f"run-{number}"), CONTESTANTS[name], number, wish.pods)
            found[name].append(run)
            print(f"{name}: {run.pods_per_second:.0f} pods/s", file=sys.stderr)
        raw = statistics.median(raw_rate(cluster, 1000 + i, wish.pods, wish.nodes) for i in range(wish.runs))
    if wish.json:
        figures = {name: [run._asdict() for run in runs] for name, runs in found.items()}
        print(json.dumps({"nodes": wish.nodes, "pods": wish.pods, "runs": figures, "bindings_alone": raw}))
    else:
        show(found, raw, wish.nodes, wish.pods)
    return 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
