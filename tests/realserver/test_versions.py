"""The binaries are the versions that the rest of the project speaks about."""

import subprocess

import pytest
from tests.realserver import binaries
from tests.realserver.harness import RealCluster

KUBERNETES = binaries.expected("k8s.io/kubernetes")
ETCD = binaries.expected("go.etcd.io/etcd/server/v3")


@pytest.mark.parametrize(("binary", "arguments", "says"), [
    ("kube-apiserver", ["--version"], f"Kubernetes {KUBERNETES}"),
    ("kube-scheduler", ["--version"], f"Kubernetes {KUBERNETES}"),
    ("kubectl", ["version", "--client"], f"Client Version: {KUBERNETES}"),
    ("etcd", ["--version"], f"etcd Version: {ETCD.removeprefix('v')}"),
])
@pytest.mark.usefixtures("real_binaries")
def test_a_binary_says_the_version_it_was_built_from(binary: str, arguments: list[str], says: str) -> None:
    finished = subprocess.run([str(binaries.find(binary)), *arguments], capture_output=True, text=True, timeout=30)
    assert says in finished.stdout.splitlines()


def test_the_api_server_tells_clients_its_version(real_cluster: RealCluster) -> None:
    version = real_cluster.client().get("/version")
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    assert (version["gitVersion"], version["major"], version["minor"]) == (KUBERNETES, major, minor)
