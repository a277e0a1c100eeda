"""A stage: the API server, everybody who plays in a cluster, and a clock that jumps.  No scheduler: tests bind."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kubesched.actors.cast import cast
from kubesched.actors.company import Company
from kubesched.api.time import Instant, parse_rfc3339, seconds
from kubesched.apiserver.admission import Rules
from kubesched.apiserver.inprocess import InProcess
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.store import Store

Json = dict[str, Any]

START = parse_rfc3339("2026-01-01T00:00:00Z")


class Stage:
    """A cluster at a standstill, until time is let pass."""

    def __init__(self, seed: int = 1) -> None:
        self.now: Instant = START
        self.store = Store(now=lambda: self.now, luck=Random(seed))
        rules = Rules(taint_new_nodes=True, protect_storage=True)
        self.server = ApiServer(self.store, now=lambda: self.now, rules=rules)
        self.server.bootstrap()
        self.api = InProcess(self.server, "test")
        hands = InProcess(self.server, "controller-manager")
        self.company = Company(self.store, hands, cast(), resources=self._resources)

    def _resources(self) -> list[str]:
        return [row.storage for row in self.server.registry if row.conversion is None and "watch" in row.verbs]

    # time --------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Everything there is to do at this moment."""
        for _ in range(1000):
            if not self.company.act(self.now):
                return
        raise AssertionError("the actors never come to rest")

    def wait(self, duration: float) -> None:
        """Let time pass."""
        end = Instant(self.now + seconds(duration))
        self.settle()
        while (due := self.company.deadline) is not None and due <= end:
            self.now = max(self.now, due)
            self.settle()
        self.now = end

    # what is there -----------------------------------------------------------------------------------

    def create(self, kind: str, name: str, *, api: str = "v1", **fields: Any) -> Json:
        meta = {"name": name, **fields.pop("metadata", {})}
        return self.api.create({"apiVersion": api, "kind": kind, "metadata": meta, **fields})

    def node(self, name: str = "n1", **labels: str) -> Json:
        made = self.create("Node", name, metadata={"labels": labels})
        self.settle()
        return made

    def pod(self, name: str = "web", on: str = "n1", **notes: str) -> Json:
        notes = {f"kubesched/{key.replace('_', '-')}": value for key, value in notes.items()}
        spec = {"containers": [{"name": "c", "image": "a:1"}], **({"nodeName": on} if on else {})}
        return self.create("Pod", name, metadata={"annotations": notes}, spec=spec)

    def get(self, kind: str, name: str) -> Json:
        return self.api.get(kind, "default", name)

    def find(self, kind: str, name: str) -> Json | None:
        return self.api.find(kind, "default", name)

    def names(self, kind: str) -> list[str]:
        return [obj["metadata"]["name"] for obj in self.api.list(kind)]

    def pods(self) -> list[Json]:
        return self.api.list("Pod")

    def patch(self, kind: str, name: str, body: Json) -> Json:
        return self.api.patch(kind, "default", name, body)

    def delete(self, kind: str, name: str, **how: Any) -> None:
        self.api.remove(self.api.resource_of(kind), "default" if kind not in CLUSTER_WIDE else "", name, **how)

    def bind(self, on: str = "n1") -> None:
        """Put every waiting pod on a node, as a scheduler without doubts would, until all of them run."""
        for _ in range(50):
            self.wait(0.2)
            waiting = [pod for pod in self.pods() if not pod["spec"].get("nodeName")]
            if not waiting:
                return
            for pod in waiting:
                self.api.bind("default", pod["metadata"]["name"], on)
        self.wait(1)


CLUSTER_WIDE = ("Node", "Namespace", "PersistentVolume", "StorageClass")


def template(image: str = "a:1", app: str = "web", **spec: Any) -> Json:
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def chosen(app: str = "web") -> Json:
    return {"matchLabels": {"app": app}}


def phase(pod: Json) -> str:
    found: str = pod["status"]["phase"]
    return found


@pytest.fixture
def stage() -> Stage:
    return Stage()
