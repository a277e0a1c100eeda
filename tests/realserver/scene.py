"""A real cluster under load: pods that keep coming, schedulers that come and go, and a witness that reads etcd."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.realserver.client import Client
from tests.realserver.harness import RealCluster
from tests.realserver.history import History
from tests.realserver.load import node
from tests.realserver.process import wait_until
from tests.realserver.scheduling import NAME, Kubesched, kubesched
from tests.realserver.witness import Witness

LEASE = "the-scene"
PODS = "/api/v1/namespaces/default/pods"
RESCUED = re.compile(r"^scheduler_pod_scheduled_after_flush_total ([0-9.]+)", re.MULTILINE)
AGAIN_AFTER = 0.2  # seconds, when the API server did not answer


def pod(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": "16Mi"}}}
    spec = {"schedulerName": NAME, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


class Scene:
    """One cluster, its witness, and whoever is started in it; everything ends with the scene.

    Args:
        cluster: stores JSON, or etcd could not be read.
    """

    def __init__(self, cluster: RealCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.witness = Witness(NAME, LEASE)
        self.history = History(cluster.etcd_port, self.witness.hear)
        self._schedulers: list[Kubesched] = []
        self._numbers = itertools.count(1)
        self._ends = ExitStack()

    def __enter__(self) -> Scene:
        self._ends.enter_context(self.history)
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._schedulers:
            one.stop(grace=5)
        self.clear()
        self._ends.close()

    @property
    def client(self) -> Client:
        """One that trusts the certificates of now."""
        return self.cluster.client()

    # ── who plays ────────────────────────────────────────────────────────────────────────────────────

    def make(self, configuration: Mapping[str, Any] | None = None, **how: Any) -> Kubesched:
        """A scheduler that is not started yet."""
        one = kubesched(self.cluster, self.folder / f"kubesched-{next(self._numbers)}", configuration, **how)
        self._schedulers.append(one)
        return one

    def start(self, configuration: Mapping[str, Any] | None = None, **how: Any) -> Kubesched:
        one = self.make(configuration, **how)
        one.launch()
        one.wait_until_ready()
        return one

    def nodes(self, count: int, cpu: str) -> None:
        for i in range(count):
            self.client.create("/api/v1/nodes", node(f"n{i}", cpu=cpu))

    def pods(self, at_most: int, cpu: str, *, every: float) -> Stream:
        """Pods that come one after the other, whatever the API server is going through."""
        return Stream(self, [pod(f"web-{i}", cpu) for i in range(at_most)], every)

    def delete(self, name: str) -> None:
        insist(lambda: self.client.request("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0}).must_be(200, 404))

    def clear(self) -> None:
        insist(lambda: self.client.request("DELETE", PODS, {"gracePeriodSeconds": 0}).must_be(200))
        insist(lambda: self.client.request("DELETE", "/api/v1/nodes").must_be(200))

    # ── how it ends ──────────────────────────────────────────────────────────────────────────────────

    def until_all_bound(self, count: int, *, timeout: float = 60) -> None:
        """Wait until there are so many pods of ours and each has its node."""

        def done() -> bool:
            assert self.history.failed is None, self.history.failed
            return len(self.witness.placed()) == count and not self.witness.waiting

        try:
            wait_until(done, timeout=timeout, what=f"{count} pods to be bound")
        except TimeoutError as late:
            logs = "\n".join(f"── {one.name}\n{one.tail(8)}" for one in self._schedulers)
            placed, waiting = len(self.witness.placed()), sorted(self.witness.waiting)[:5]
            raise TimeoutError(f"{late}; {placed} are, and {waiting} are not\n{logs}") from None


class Stream:
    """Pods being created, in a thread of their own."""

    def __init__(self, scene: Scene, pods: list[dict[str, Any]], every: float) -> None:
        self._scene, self._pods, self._every = scene, pods, every
        self.created = 0
        self._enough = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._create, name="pods", daemon=True)

    def __enter__(self) -> Stream:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(120)
        assert self._failed is None, self._failed
        assert not self._thread.is_alive(), f"only {self.created} pods were created in time"

    def stop(self) -> None:
        """It is enough: no more pods come."""
        self._enough.set()

    def until(self, count: int) -> None:
        """Wait until so many have been created."""
        wait_until(lambda: self.created >= count, timeout=60, what=f"{count} pods to be created")

    def _create(self) -> None:
        try:
            for one in self._pods:
                insist(lambda one=one: self._scene.client.request("POST", PODS, one).must_be(201, 409))  # type: ignore[misc]
                self.created += 1
                if self._enough.wait(self._every):  # as people and controllers create them: not all at once
                    return
        except BaseException as problem:
            self._failed = problem


def insist(ask: Any, timeout: float = 60) -> None:
    """Ask until the API server answers: being refused a connection is no answer, and neither is a failure of its."""
    end = time.monotonic() + timeout
    while True:
        try:
            ask()
        except (OSError, AssertionError) as problem:
            if time.monotonic() > end:
                raise
            del problem
            time.sleep(AGAIN_AFTER)  # nobody tells when a server is back
        else:
            return


def rescued(metrics: str) -> float:
    """How many pods only the five-minute flush has woken, by the scheduler's own metrics."""
    found = RESCUED.search(metrics)
    return float(found[1]) if found else 0.0


ELECTED = {"leaderElection": {"leaderElect": True, "resourceName": LEASE}}  # with kube-scheduler's times
