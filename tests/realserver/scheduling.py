"""kubesched run as a process of its own, on a real cluster."""

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from tests.realserver.client import Answer, Client
from tests.realserver.harness import ADMIN, RealCluster
from tests.realserver.process import Server, free_port, wait_until

from kubesched.live.contact import Contact

Json = dict[str, Any]

NAME = "kubesched"


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
