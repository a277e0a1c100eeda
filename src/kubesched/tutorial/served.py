"""A stage on an API server: the same scheduler and the same little cluster, over HTTPS and in real time.

Nothing of the scenario knows the difference.  Its nodes and pods are made by a client that sends requests, the
scheduler hears of them from the API server beside it, and the end is read from a watch.
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

from kubesched.api.time import Instant, seconds
from kubesched.drive.tap import Moment
from kubesched.framework.records import Record, State
from kubesched.live.cluster import EmbeddedCluster
from kubesched.telemetry.words import moment, story
from kubesched.tutorial.stage import SCENARIOS, Stage, drawn_after, outcome

Json = dict[str, Any]

PATHS = {"Node": "/api/v1/nodes", "Pod": "/api/v1/namespaces/default/pods"}
PATIENCE = 30  # seconds of the cluster for which pods without a node are waited for
_UNTRIED = (State.NEW, State.ACTIVE, State.TRYING)


class HttpClient:
    """As small as a client of the Kubernetes API can be."""

    def __init__(self, url: str, token: str, ca: bytes) -> None:
        self._url, self._token = url, token
        self._trust = ssl.create_default_context(cadata=ca.decode())
        self.made: list[Json] = []

    def create(self, obj: Json) -> None:
        with self._send(PATHS[obj["kind"]], json.dumps(obj).encode()) as answer:
            self.made.append(json.load(answer))

    def watch(self, kind: str, timeout: int) -> Iterator[Json]:
        """Every object of a kind, as it is now and whenever it changes, for so many seconds."""
        with self._send(f"{PATHS[kind]}?watch=1&timeoutSeconds={timeout}") as lines:
            for line in lines:
                yield json.loads(line)["object"]

    def _send(self, path: str, body: bytes | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        return urllib.request.urlopen(urllib.request.Request(self._url + path, body, headers), context=self._trust)


class ServedRun:
    """A stage, played by this process as a whole cluster.

    Args:
        speed: how many seconds of the story pass in one of yours.
    """

    def __init__(self, stage: Stage, speed: float = 1.0) -> None:
        self.stage = stage
        self.cluster = EmbeddedCluster(stage.scheduler(), speed=speed, acting=False, listeners=[self._hear])
        self.start = self.cluster.pace.now()
        self._heard: SimpleQueue[Record] = SimpleQueue()
        self._seen: list[Record] = []
        self._planned: list[tuple[int, Callable[[], str]]] = []

    def later(self, after: int, action: Callable[[], str]) -> None:
        self._planned.append((after, action))

    def _hear(self, told: Moment) -> None:
        for record in told.records:
            self._heard.put(record)

    def lines(self) -> Iterator[str]:
        """The run, told while it happens."""
        with self.cluster.in_background() as cluster:
            self.client = HttpClient(cluster.url, cluster.token, cluster.ca)
            yield f"An API server is up at {cluster.url}, and beside it the scheduler of"
            yield self.stage.heading
            yield ""
            self.start = cluster.pace.now()
            yield self._said(self.start, SCENARIOS[self.stage.scenario](self))
            begun = cluster.pace.now()
            for after, action in self._planned:
                yield from self._told_until(Instant(begun + seconds(after)))
                now = cluster.pace.now()
                yield self._said(now, action())
            pods = self._ended()
            yield from self._news()
            yield ""
            yield from map(outcome, pods)

    def _said(self, at: Instant, text: str) -> str:
        return f"{moment(self.start)(at)}  {text}"

    def _told_until(self, due: Instant) -> Iterator[str]:
        """The news until then, or for as much longer as pods are not tried yet: a slow machine tells the same story."""
        pace = self.cluster.pace
        while (left := due - pace.now()) > 0 or (self._untried() and -left < seconds(PATIENCE)):
            yield from self._news()
            time.sleep(min(0.05, max(0.01, left / 1e9 / pace.speed)))
        yield from self._news()

    def _untried(self) -> bool:
        latest = {record.pod: record.state for record in self._seen}
        pods = [one["metadata"] for one in self.client.made if one["kind"] == "Pod"]
        return any(latest.get(f"{pod['namespace']}/{pod['name']}", State.NEW) in _UNTRIED for pod in pods)

    def _news(self) -> Iterator[str]:
        """What the scheduler did since the last time, with pictures of the queue where it matters."""
        while not self._heard.empty():
            record = self._heard.get()
            self._seen.append(record)
            yield from story([record], self.start)
            yield from drawn_after(self._seen)

    def _ended(self) -> list[Json]:
        """The pods as they are once all of them have a node, or nobody waits for that any longer."""
        pods = {one["metadata"]["name"]: one for one in self.client.made if one["kind"] == "Pod"}
        patience = max(1, round(PATIENCE / self.cluster.pace.speed))
        for pod in self.client.watch("Pod", patience):
            pods[pod["metadata"]["name"]] = pod
            if all(one["spec"].get("nodeName") for one in pods.values()):
                break
        return list(pods.values())
