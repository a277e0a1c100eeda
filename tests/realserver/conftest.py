"""Tests in this directory run against real servers: built by `make envtest`, or brought in KUBEBUILDER_ASSETS."""

from tests.realserver.fixtures import (
    make_node,
    namespace,
    own_cluster,
    pytest_collection_modifyitems,
    pytest_terminal_summary,
    real_binaries,
    real_cluster,
)

__all__ = [
    "make_node",
    "namespace",
    "own_cluster",
    "pytest_collection_modifyitems",
    "pytest_terminal_summary",
    "real_binaries",
    "real_cluster",
]
