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
from tests.realserver.scheduling import kube_scheduler, start

__all__ = [
    "kube_scheduler",
    "make_node",
    "namespace",
    "own_cluster",
    "pytest_collection_modifyitems",
    "pytest_terminal_summary",
    "real_binaries",
    "real_cluster",
    "start",
]
