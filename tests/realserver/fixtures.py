"""What tests against the real servers share; another room's conftest may import these names too, hooks included.

One cluster serves a whole test process, however many conftests bring these fixtures in; several workers have one each.
Tests keep apart by namespace, and by names for what has none; whoever wants to stop servers or set flags makes a
cluster of their own with `own_cluster`.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.realserver import binaries
from tests.realserver.harness import Options, RealCluster

_SHARED = pytest.StashKey[RealCluster]()
_names = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the servers, so that `-m "not realserver"` leaves it out."""
    for item in items:
        if "real_binaries" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.realserver)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once what was left out, where pytest itself shows a row of letters."""
    absent = binaries.missing()
    if absent is not None:
        terminalreporter.write_line(absent)


def require_binaries() -> None:
    """Skip the test where the real servers are absent; where they are insisted upon, fail it."""
    absent = binaries.missing()
    if absent is None:
        return
    if os.environ.get("KUBESCHED_REQUIRE_ENVTEST") == "1":
        pytest.fail(absent, pytrace=False)
    pytest.skip(absent)


@pytest.fixture(scope="session")
def real_binaries() -> None:
    """For whoever runs the binaries, in a cluster or without."""
    require_binaries()


@pytest.fixture(scope="session")
def real_cluster(
    real_binaries: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> RealCluster:
    """A running kube-apiserver and etcd with RBAC on, for the whole session."""
    stash = request.config.stash
    if _SHARED not in stash:
        cluster = RealCluster(tmp_path_factory.mktemp("real-cluster")).start()
        stash[_SHARED] = cluster
        request.config.add_cleanup(cluster.stop)
    return stash[_SHARED]


@pytest.fixture
def own_cluster(real_binaries: None, tmp_path: Path) -> Iterator[Callable[[Options], RealCluster]]:
    """Start a cluster for one test alone, with the options it asks for."""
    started: list[RealCluster] = []

    def start(options: Options) -> RealCluster:
        cluster = RealCluster(tmp_path / f"cluster-{len(started)}", options)
        started.append(cluster)
        return cluster.start()

    yield start
    for cluster in started:
        cluster.stop()


@pytest.fixture
def namespace(real_cluster: RealCluster) -> Iterator[str]:
    """A namespace of one's own; it goes with everything in it."""
    client = real_cluster.client()
    name = f"test-{next(_names)}"
    client.create("/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    path = f"/api/v1/namespaces/{name}"
    client.delete(f"{path}/pods", grace=0)
    namespace = client.delete(path)
    # No controller empties and releases namespaces here, so its finalizer is taken off by hand.
    client.request("PUT", f"{path}/finalize", {**namespace, "spec": {"finalizers": []}}).must_be(200)


@pytest.fixture
def make_node(real_cluster: RealCluster) -> Iterator[Callable[..., str]]:
    """Make nodes that are ready for pods: `make_node(cpu="4")` returns the name; they go after the test."""
    client = real_cluster.client()
    made: list[str] = []

    def make(*, cpu: str = "4", memory: str = "8Gi", pods: str = "110", labels: dict[str, str] | None = None) -> str:
        name = f"node-{next(_names)}"
        room = {"cpu": cpu, "memory": memory, "pods": pods}
        client.create("/api/v1/nodes", {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
        })
        made.append(name)
        return name

    yield make
    for name in made:
        client.delete(f"/api/v1/nodes/{name}")


def pod(name: str, **spec: Any) -> dict[str, Any]:
    """A pod that asks for a little; `spec` adds to it or replaces."""
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}
