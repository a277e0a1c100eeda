"""The embedded API server under load: how soon it answers, how much it takes, and what it weighs.

It lives in a process of its own, behind TLS and a token, as `kubesched up` serves it; nobody schedules and no kubelets
are played, so what is measured is the server.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket

import yaml
from msgspec import Struct

from kubesched.bench.apiload import Rate, Server, Watched, fan_out, listing, prepare, rates

GOAL_SECONDS = 1.0
CONNECTIONS = (1, 16)
WATCHERS = (1, 10, 100)
PODS_WEIGHED = 10_000
_PATIENCE = 60.0


class Figures(Struct, frozen=True):
    """What there is to say of an API server."""

    first_answer_seconds: float
    first_answer_cpu_seconds: float
    resident_mib: float
    mib_per_10000_pods: float
    rates: list[Rate]
    watched: list[Watched]
    listed_pods: int
    list_ms: float


def measure(pods: int = PODS_WEIGHED, runs: int = 3) -> Figures:
    """All figures of the embedded server."""
    started = sorted(first_answer() for _ in range(runs))[runs // 2]
    with served() as server:
        return asyncio.run(load(server, started, pods))


async def load(server: Server, started: tuple[float, float], pods: int) -> Figures:
    """The figures of any server that has just started, in so many seconds and so much processor time."""
    await prepare(server)
    at_rest = server.resident_mib()
    found: list[Rate] = []
    for connections in CONNECTIONS:
        found += await rates(server, pods // 10 if connections == 1 else pods - pods // 10, connections)
    grown = (server.resident_mib() - at_rest) * 10_000 / pods
    watched = [await fan_out(server, watchers, 300) for watchers in WATCHERS]
    count, took = await listing(server)
    seconds, cpu = (round(figure, 2) for figure in started)
    return Figures(seconds, cpu, at_rest, round(grown, 1), found, watched, count, took)


def lines(found: Figures) -> Iterator[str]:
    """The figures in words."""
    took = f"{found.first_answer_seconds:.2f} s, {found.first_answer_cpu_seconds:.2f} of them at work"
    yield f"embedded API server: first answer after {took} (goal: {GOAL_SECONDS:.0f} s)"
    yield f"        {found.resident_mib:.0f} MiB resident at rest, {found.mib_per_10000_pods:.0f} more per 10,000 pods"
    for rate in found.rates:
        over = f"over {rate.connections} connection{'s' if rate.connections > 1 else ''}"
        told = f"{rate.per_second:,.0f}/s {over}, p50 {rate.p50_ms:.2f} ms, {rate.cpu_ms:.3f} ms of the processor each"
        yield f"        {rate.what:>6} {told}"
    for one in found.watched:
        yield f"        {one.events_per_second:,.0f} events/s to {one.watchers} watching"
    yield f"        a list of {found.listed_pods:,} pods in {found.list_ms:.0f} ms"


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────


def first_answer() -> tuple[float, float]:
    """Seconds from the command `kubesched up` to its first answer, and how many of them it was at work."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "kubesched", "up", "--port", str(port), "--kubeconfig", f"{folder}/config"]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=_environment())
        try:
            _wait_for(f"https://127.0.0.1:{port}/readyz", began + _PATIENCE)
            seconds = time.perf_counter() - began
            return seconds, Server(url="", token="", ca="", pids=(process.pid,)).cpu()
        finally:
            process.terminate()
            process.wait()


def _environment() -> dict[str, str]:
    """Ours, but a user's Python keeps what it has compiled."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _wait_for(url: str, until: float) -> None:
    unknown = ssl.create_default_context()  # its certificate is being made just now
    unknown.check_hostname, unknown.verify_mode = False, ssl.CERT_NONE
    while True:
        try:
            with urllib.request.urlopen(url, context=unknown):
                return
        except OSError:
            if time.perf_counter() > until:
                raise
            time.sleep(0.002)


@contextmanager
def served() -> Iterator[Server]:
    """An API server in a process of its own; `python -m kubesched.bench.embedded FOLDER` is that process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "kubesched.bench.embedded", folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            yield Server(**told, pids=(process.pid,))
        finally:
            process.terminate()
            process.communicate()


def main(folder: str) -> None:
    """Serve until the end."""
    from kubesched.live.cluster import EmbeddedCluster

    cluster = EmbeddedCluster(acting=False)
    cluster.listen()
    config = yaml.safe_load(cluster.write_kubeconfig(Path(folder) / "kubeconfig").read_text())
    token = config["users"][0]["user"]["token"]
    print(json.dumps({"url": cluster.url, "token": token, "ca": cluster.ca.decode()}), flush=True)
    cluster.run()


if __name__ == "__main__":
    main(sys.argv[1])
