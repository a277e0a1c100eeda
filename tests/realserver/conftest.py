"""Tests in this directory run against real servers: built by `make envtest`, or brought in KUBEBUILDER_ASSETS."""

import pytest
from tests.realserver.fixtures import make_node, namespace, own_cluster, real_cluster

__all__ = ["make_node", "namespace", "own_cluster", "real_cluster"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # With several workers and `--dist loadgroup` all of these go to one of them: one cluster is enough.
    for item in items:
        if "real_cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("real_cluster"))
