"""A fresh API server for every test: in the process with a clock that stands still, or on a port behind TLS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kubesched.apiserver import kubeconfig, tls
from kubesched.apiserver.access import Authenticator
from kubesched.apiserver.admission import Rules
from kubesched.apiserver.http import HttpThread
from kubesched.apiserver.requests import ADMIN, Response, WatchStream
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.store import Store

Json = dict[str, Any]

START = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
PODS = "/api/v1/namespaces/default/pods"


class Clock:
    """A clock that moves when told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return self.now

    def forward(self, seconds: int) -> None:
        self.now += seconds * 1_000_000_000


@dataclass
class Cluster:
    """An ApiServer and short words to talk to it."""

    server: ApiServer
    clock: Clock

    def ask(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", accept: str = ""
    ) -> Response:
        headers = {"content-type": kind, "user-agent": "test/1"}
        if accept:
            headers["accept"] = accept
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = self.server.handle(method, path, headers=headers, body=raw)
        assert isinstance(answer, Response)
        return answer

    def get(self, path: str, **how: Any) -> Json:
        answer = self.ask("GET", path, **how)
        assert answer.status == 200, answer.body
        found: Json = answer.json()
        return found

    def create(self, path: str, body: Json) -> Json:
        answer = self.ask("POST", path, body)
        assert answer.status == 201, answer.body
        made: Json = answer.json()
        return made

    def patch(self, path: str, body: Any, kind: str = "merge") -> Response:
        return self.ask("PATCH", path, body, kind=f"application/{kind}-patch+json")

    def refusal(self, method: str, path: str, body: Any = None, **how: Any) -> tuple[int, str, str]:
        """(code, reason, message) of a request that must fail."""
        answer = self.ask(method, path, body, **how)
        assert answer.status >= 400, answer.body
        status = answer.json()
        assert status["kind"] == "Status"
        assert status["code"] == answer.status
        return answer.status, status.get("reason", ""), status["message"]

    def watch(self, path: str, query: str = "watch=1", **headers: str) -> WatchStream:
        answer = self.server.handle("GET", path, query, headers)
        assert isinstance(answer, WatchStream)
        return answer

    def pod(self, name: str = "web", **spec: Any) -> Json:
        return self.create(PODS, pod(name, **spec))


def pod(name: str, **spec: Any) -> Json:
    """A pod as small as it may be."""
    meta = {"name": name, "labels": spec.pop("labels", {"app": name})}
    return {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "nginx"}], **spec}}


def node(name: str, **labels: str) -> Json:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def make_cluster(rules: Rules | None = None) -> Cluster:
    clock = Clock()
    server = ApiServer(Store(now=clock, luck=Random(1)), now=clock, rules=rules)
    server.bootstrap()
    return Cluster(server, clock)


@pytest.fixture
def cluster() -> Cluster:
    """An API server in this process."""
    return make_cluster()


TOKEN = "a-token-for-tests"


@dataclass
class Served:
    """An API server on a port, and the kubeconfig that points at it."""

    url: str
    kubeconfig: Path
    ca: Path
    thread: HttpThread

    @property
    def server(self) -> ApiServer:
        return self.thread.face.server


@pytest.fixture(scope="session")
def certificates() -> tls.Certificates:
    return tls.make_certificates()


@pytest.fixture
def served(tmp_path: Path, certificates: tls.Certificates) -> Iterator[Served]:
    """An API server behind TLS with a bearer token, on the wall clock."""
    import time

    store = Store(now=time.time_ns, luck=Random(1))
    server = ApiServer(store, now=time.time_ns, authenticator=Authenticator({TOKEN: ADMIN}))
    server.bootstrap()
    thread = HttpThread(server, tls=certificates.context(tmp_path))
    with thread:
        ca = tls.write_private(tmp_path / "ca.crt", certificates.ca)
        path = kubeconfig.write_kubeconfig(tmp_path / "kubeconfig", thread.url, TOKEN, certificates.ca)
        yield Served(thread.url, path, ca, thread)
