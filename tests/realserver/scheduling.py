"""kubesched run as a process of its own, on a real cluster."""

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.realserver.client import Answer, Client
from tests.realserver.fixtures import pod
from tests.realserver.harness import ADMIN, RealCluster, Scheduler
from tests.realserver.process import Server, free_port, wait_until

from kubesched.live.contact import Contact

Json = dict[str, Any]
MakeNode = Callable[..., str]

NAME = "kubesched"
THEIRS = "the-real-one"


class Kubesched(Server):
    """A running kubesched; its contact, and what it has logged as JSON."""

    folder: Path

    @property
    def contact(self) -> Contact:
        path = next(self.folder.glob("kubesched/run-*.json"), None)
        if path is None:
            raise FileNotFoundError(f"{self.name} has not left a contact yet")
        return Contact(**json.loads(path.read_text()))

    def ask(self, path: str) -> Answer:
        """Ask it over its port, as its owner."""
        told = self.contact
        return Client(told.url, ssl.create_default_context(cadata=told.authority), told.token).request("GET", path)

    def lines(self) -> list[Json]:
        """What it has logged."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def said(self, message: str) -> list[Json]:
        return [line for line in self.lines() if line["msg"] == message]

    def until_said(self, message: str, timeout: float = 30, **fields: Any) -> Json:
        """Wait for a log line with these fields."""

        def found() -> list[Json]:
            return [line for line in self.said(message) if fields.items() <= line.items()]

        wait_until(lambda: bool(found()), timeout=timeout, what=f"{message!r} in the log")
        return found()[-1]

    def ended(self, timeout: float = 30) -> int:
        """Wait for it to end by itself; its exit status."""
        wait_until(lambda: not self.alive, timeout=timeout, what=f"{self.name} to end")
        assert self.returncode is not None
        return self.returncode

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of kubesched under the same user."""
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.folder)}
        command = [sys.executable, "-m", "kubesched", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)

    def terminate(self, timeout: float = 30) -> int:
        self.send(signal.SIGTERM)
        return self.ended(timeout)


def kubesched(
    cluster: RealCluster,
    folder: Path,
    configuration: Mapping[str, Any] | None = None,
    *,
    kubeconfig: Path | None = None,
    flags: tuple[str, ...] = (),
    verbosity: int = 5,
) -> Kubesched:
    """A kubesched that is not started yet.  Nobody is elected and the profile is `kubesched`, unless said otherwise."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": NAME}],
        **(configuration or {}),
    }
    settings["clientConnection"] = {
        "kubeconfig": str(kubeconfig or cluster.kubeconfig(ADMIN)),
        **settings.get("clientConnection", {}),
    }
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(settings))
    port = free_port()
    command = [sys.executable, "-m", "kubesched", "run", "--config", str(file), "--log-format=json"]
    command += [f"-v={verbosity}", f"--secure-port={port}", *flags]

    def ready() -> bool:
        return started.ask("/readyz").status == 200

    started = Kubesched(
        folder.name, command, log=folder / "log", ready=ready, environment={"XDG_RUNTIME_DIR": str(folder)}
    )
    started.folder = folder
    return started


@pytest.fixture
def start(real_cluster: RealCluster, tmp_path: Path) -> Iterator[Callable[..., Kubesched]]:
    """Start a kubesched with what its configuration and flags say; it goes with the test."""
    started: list[Kubesched] = []

    def start(configuration: Json | None = None, *, wait: bool = True, **told: Any) -> Kubesched:
        one = kubesched(real_cluster, tmp_path / f"kubesched-{len(started)}", configuration, **told)
        started.append(one)
        one.launch()
        if wait:
            one.wait_until_ready()
        return one

    yield start
    for one in started:
        one.stop(grace=10)


@pytest.fixture
def kube_scheduler(real_cluster: RealCluster) -> Iterator[Scheduler]:
    """The real one, for the pods that name THEIRS."""
    scheduler = real_cluster.start_scheduler({"profiles": [{"schedulerName": THEIRS}]})
    yield scheduler
    scheduler.stop()


def ours(name: str, **spec: Any) -> Json:
    """A pod for kubesched."""
    return pod(name, schedulerName=NAME, **spec)


def asking(cpu: str) -> list[Json]:
    """Containers that ask for this much."""
    return [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}]


def pods_of(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def bound(seen: Any) -> bool:
    return "nodeName" in seen["spec"]


def condition(seen: Any, kind: str) -> Any:
    return next((one for one in seen.get("status", {}).get("conditions", []) if one["type"] == kind), None)


def judged(seen: Any) -> bool:
    """Whether somebody has said that a pod fits nowhere."""
    return condition(seen, "PodScheduled") is not None
