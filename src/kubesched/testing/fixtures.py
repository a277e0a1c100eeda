"""Fixtures for pytest.  Ask for them in a conftest.py:

    pytest_plugins = ["kubesched.testing.fixtures"]

`golden` and `page` compare with what was recorded, and `pytest --golden` records it again (golden.py).
`cluster` makes clusters, three kinds of them, and takes them away when the test is over:

    core = cluster(node("n1"), pod("a"))      a scheduler that has seen these objects, driven by hand
    sim = cluster.virtual(nodes=3)            a simulated cluster: virtual time, played kubelets and controllers
    box = cluster.up(nodes=3)                 an API server on a port of its own, in real time, in this process

Every core is checked to the bottom in the end, so every test is a test of the invariants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kubesched.actors.cast import cast
from kubesched.actors.kubelet import Stages
from kubesched.api.time import Duration
from kubesched.assemble import build
from kubesched.core.core import Core
from kubesched.live.cluster import EmbeddedCluster, make_nodes
from kubesched.sim.simulation import Simulation
from kubesched.testing.golden import golden, page, pytest_addoption
from kubesched.testing.harness import scheduler, verify

__all__ = ["Clusters", "cluster", "golden", "page", "pytest_addoption"]


class Clusters:
    """Makes clusters for one test."""

    def __init__(self) -> None:
        self._cores: list[Core] = []
        self._simulations: list[Simulation] = []
        self._boxes: list[EmbeddedCluster] = []

    def __call__(self, *objects: Any, **settings: Any) -> Core:
        """A scheduler that has seen these objects; nothing happens to it but what the test makes happen."""
        core = scheduler(*objects, **settings)
        self._cores.append(core)
        return core

    def virtual(
        self,
        core: Core | None = None,
        *,
        nodes: int = 0,
        zones: Sequence[str] = (),
        acting: bool = True,
        stages: Stages | None = None,
        heartbeat: Duration | None = None,
        **settings: Any,
    ) -> Simulation:
        """A simulated cluster: `client` acts in it, `run(until)` lets time pass.

        Args:
            core: the scheduler; kube-scheduler's default where there is none.
            nodes, zones: how many nodes are there, and over which zones.
            acting: whether kubelets and controllers are played; their `stages` and `heartbeat`.
            settings: passed on to Simulation.
        """
        core = core or build(checks=True)
        actors = cast(stages=stages, heartbeat=heartbeat) if acting else ()
        simulation = Simulation(core, actors=actors, **settings)
        for node in make_nodes(nodes, zones, {"cpu": "8", "memory": "32Gi", "pods": "110"}):
            node["status"]["allocatable"] = node["status"]["capacity"]
            simulation.client.create(node)
        self._simulations.append(simulation)
        self._cores.append(core)
        return simulation

    def up(
        self, core: Core | None = None, *, nodes: int = 3, zones: Sequence[str] = (), **settings: Any
    ) -> EmbeddedCluster:
        """An API server with nodes, actors and a scheduler, behind TLS and a token: `write_kubeconfig` points there.

        Args:
            core: the scheduler; kube-scheduler's default where there is none.
            settings: passed on to EmbeddedCluster: `speed`, `data_dir`, `acting` …
        """
        core = core or build()
        box = EmbeddedCluster(core, nodes=make_nodes(nodes, zones), **settings)
        self._boxes.append(box)
        self._cores.append(core)
        return box.in_background()

    def close(self) -> None:
        """End everything, and check every scheduler."""
        for box in self._boxes:
            box.__exit__(None, None, None)
        for simulation in self._simulations:
            simulation.close()
        for core in self._cores:
            verify(core)


@pytest.fixture
def cluster() -> Iterator[Clusters]:
    """Makes clusters: by hand, in virtual time, or on a port."""
    clusters = Clusters()
    yield clusters
    clusters.close()
