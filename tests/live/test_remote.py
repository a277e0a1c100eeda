"""A scheduler schedules over HTTP, on our own API server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.apiserver.conftest import PODS, TOKEN, node, pod
from tests.live.driving import Running

from kubesched.apiserver import kubeconfig as kubeconfigs
from kubesched.apiserver import tls
from kubesched.apiserver.access import Authenticator
from kubesched.apiserver.http import HttpThread
from kubesched.apiserver.requests import ADMIN
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.store import Store
from kubesched.live import kubeconfig
from kubesched.wire.elector import LeaseOptions


class Served:
    """An API server behind TLS, in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        certificates = tls.make_certificates()
        server = ApiServer(
            Store(now=time.time_ns, luck=Random(1)), now=time.time_ns, authenticator=Authenticator({TOKEN: ADMIN})
        )
        server.bootstrap()
        self.thread = HttpThread(server, tls=certificates.context(folder))
        self.thread.start()
        self.kubeconfig = kubeconfigs.write_kubeconfig(
            folder / "kubeconfig", self.thread.url, TOKEN, certificates.ca
        )

    def ask(self, method: str, path: str, body: Any = b"") -> Any:
        headers = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
        answer = self.thread.call(self.thread.face.server.handle, method, path, headers=headers, body=body)
        assert answer.status < 300, answer.body
        return answer.json()

    def node_of(self, name: str) -> str:
        return str(self.ask("GET", f"{PODS}/{name}")["spec"].get("nodeName", ""))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    server = Served(tmp_path)
    yield server
    server.thread.stop()


def test_pods_are_bound(served: Served) -> None:
    for name in ("n1", "n2"):
        served.ask("POST", "/api/v1/nodes", node(name))
    served.ask("POST", PODS, pod("early"))
    with Running(kubeconfig.load(served.kubeconfig)) as running:
        running.until(lambda: served.node_of("early") != "")
        served.ask("POST", PODS, pod("late"))
        running.until(lambda: served.node_of("late") != "")
    events = served.ask("GET", "/apis/events.k8s.io/v1/namespaces/default/events")["items"]
    assert {(one["reason"], one["regarding"]["name"]) for one in events} >= {("Scheduled", "early")}


def test_with_a_lease_it_waits_to_lead_and_lets_go(served: Served) -> None:
    served.ask("POST", "/api/v1/nodes", node("n1"))
    served.ask("POST", PODS, pod("web"))
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
    with Running(kubeconfig.load(served.kubeconfig), identity="me", lease=LeaseOptions()) as running:
        running.until(lambda: served.node_of("web") != "")
        assert served.ask("GET", lease)["spec"]["holderIdentity"] == "me"
        running.to_the_end()
        assert running.world.over
        assert not running.world.lost
    assert served.ask("GET", lease)["spec"]["holderIdentity"] == ""
