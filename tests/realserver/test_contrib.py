"""The four plugins with the configuration files of their pages, through `kubesched run`, on the embedded cluster and on
the real API server."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kubernetes
import pytest
import yaml
from kubernetes.client import ApiException
from kubernetes.dynamic import DynamicClient
from tests.pages import FENCE
from tests.realserver.fixtures import require_binaries
from tests.realserver.harness import RealCluster
from tests.realserver.process import Server, wait_until

from kubesched.api.crd import definition_of
from kubesched.live.cluster import EmbeddedCluster
from kubesched.plugins.contrib.node_crd_resource_fit import ClusterScopedResource

PAGES = Path(__file__).parents[2] / "docs" / "plugins"
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}
PATIENCE = 60.0


class Api:
    """A cluster through the official client: objects in, objects out."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._client = DynamicClient(kubernetes.config.new_client_from_config(str(kubeconfig)))

    def _kind(self, api_version: str, kind: str) -> Any:
        return self._client.resources.get(api_version=api_version, kind=kind)

    def create(self, obj: dict[str, Any], namespace: str | None = None) -> Any:
        return self._kind(obj["apiVersion"], obj["kind"]).create(body=obj, namespace=namespace)

    def patch(self, api_version: str, kind: str, name: str, body: dict[str, Any]) -> Any:
        resource = self._kind(api_version, kind)
        return resource.patch(name=name, body=body, content_type="application/merge-patch+json")

    def node(self, name: str, labels: dict[str, str] | None = None) -> None:
        status = {"capacity": ROOM, "allocatable": ROOM, "conditions": [{"type": "Ready", "status": "True"}]}
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
        self.create({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status})

    def pod(self, name: str, scheduler: str, requests: dict[str, str] | None = None) -> None:
        container = {"name": "main", "image": "pause", "resources": {"requests": requests or {}}}
        spec = {"schedulerName": scheduler, "containers": [container]}
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}, "default")

    def node_of(self, name: str) -> str:
        return str(self._kind("v1", "Pod").get(name=name, namespace="default").spec.nodeName or "")

    def message_of(self, name: str) -> str:
        conditions = self._kind("v1", "Pod").get(name=name, namespace="default").status.conditions or []
        return next((str(one.message) for one in conditions if one.type == "PodScheduled"), "")

    def bound(self, name: str, node: str) -> None:
        """Wait until a pod is on a node, and on no other."""
        wait_until(lambda: self.node_of(name) != "", timeout=PATIENCE, what=f"pod {name} is bound")
        assert self.node_of(name) == node

    def define(self) -> None:
        """Define the ClusterScopedResource, and wait until it is served."""
        self.create(definition_of(ClusterScopedResource))

        def served() -> bool:
            resource = self._kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
            found = resource.get(name="clusterscopedresources.scheduling.sigs.k8s.io")
            return any(one.type == "Established" and one.status == "True" for one in found.status.conditions or ())

        wait_until(served, timeout=PATIENCE, what="the custom resource is served")
        self._client = DynamicClient(self._client.client)

    def offer(self, name: str, enables: dict[str, Any], scores: dict[str, int] | None = None) -> Any:
        spec = {"resourcesFilter": enables, "resourcesScore": scores or {}}
        head = {"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ClusterScopedResource"}
        return self.create({**head, "metadata": {"name": name}, "spec": spec})


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.realserver)])
def api(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Api]:
    """A cluster with no node and no scheduler of its own."""
    if request.param == "embedded":
        with EmbeddedCluster(acting=False).in_background() as cluster:
            yield Api(cluster.write_kubeconfig(tmp_path / "kubeconfig"))
    else:
        require_binaries()
        with RealCluster(tmp_path / "cluster") as real:
            yield Api(real.kubeconfig())


def configuration(page: str) -> str:
    """The configuration file a page shows."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    [found] = [block["text"] for block in FENCE.finditer(text) if block["info"] == "yaml scheduler.yaml"]
    return found


Started = Callable[..., Any]


@pytest.fixture
def scheduling(api: Api, tmp_path: Path) -> Started:
    """`with scheduling("sample-filter") as log:` `kubesched run` at work with the file of that page."""

    @contextmanager
    def started(page: str) -> Iterator[Callable[[], str]]:
        config, log = tmp_path / "scheduler.yaml", tmp_path / "log"
        config.write_text(configuration(page), encoding="utf-8")
        flags = ["--config", str(config), "--kubeconfig", str(api.kubeconfig), "--secure-port", "0", "-v=6"]
        flags += ["--leader-elect=false"]
        command = [sys.executable, "-c", "import sys; from kubesched.cli.main import run; sys.exit(run())", "run"]
        server = Server("kubesched", [*command, *flags], log=log, ready=lambda: log.stat().st_size > 0)
        server.start()
        try:
            yield lambda: log.read_text(encoding="utf-8")
        finally:
            server.stop(grace=20)

    return started


def says(log: Callable[[], str], pattern: str) -> None:
    """Wait until a line of the log matches."""
    wait_until(lambda: re.search(pattern, log()) is not None, timeout=PATIENCE, what=f"the log says {pattern}")


def test_node_number_places_and_waits(api: Api, scheduling: Started) -> None:
    for number in range(10):
        api.node(f"node{number}")
    with scheduling("node-number"):
        api.pod("pod1", "node-number")
        api.pod("pod3", "node-number")
        api.bound("pod1", "node1")
        api.bound("pod3", "node3")


def test_sample_filter_names_the_nodes_and_a_label_lets_the_pod_in(api: Api, scheduling: Started) -> None:
    api.node("node-a")
    api.node("node-b")
    with scheduling("sample-filter") as log:
        api.pod("web", "sample-scheduler")
        wait_until(lambda: api.message_of("web") != "", timeout=PATIENCE, what="the pod is told why it waits")
        assert api.message_of("web").startswith("0/2 nodes are available: 1 Node: node-a, 1 Node: node-b.")
        assert api.node_of("web") == ""
        api.patch("v1", "Node", "node-b", {"metadata": {"labels": {"cpu": "true"}}})
        api.bound("web", "node-b")
        says(log, r'"Attempting to bind pod to node" pod="default/web" node="node-b"')
        bound = r'"Successfully bound pod to node" pod="default/web" node="node-b" evaluatedNodes=2 feasibleNodes=1'
        says(log, bound)


def test_score_by_label_lands_on_the_best_and_says_the_scores(api: Api, scheduling: Started) -> None:
    for name, score in (("low", "1"), ("best", "10"), ("middle", "5")):
        api.node(name, {"score-by-label": score})
    with scheduling("score-by-label") as log:
        api.pod("test", "scorebylabel", {"cpu": "200m", "memory": "50Mi"})
        api.bound("test", "best")
        says(log, '"Label score for node best is score-by-label = 10"')
        for name, final in (("best", 100), ("middle", 50), ("low", 10)):
            says(log, f'"Final score for node {name} is {final}"')


def test_node_crd_resource_fit_follows_its_custom_resources(api: Api, scheduling: Started) -> None:
    api.define()
    for number in range(6):
        api.node(f"node-{number}")
    both = {"cpu": True, "memory": True}
    api.offer("node-1", both, {"cpu": 20, "memory": 40})
    api.offer("node-4", both, {"cpu": 80, "memory": 45})
    with scheduling("node-crd-resource-fit") as log:
        api.pod("web", "node-crd-resource-fit", {"cpu": "1", "memory": "1Gi"})
        api.bound("web", "node-4")
        for missed in ("node-0", "node-2", "node-3", "node-5"):
            says(log, f'"CRD for node not found" plugin="NodeCRDResourceFit" node="{missed}" pod="default/web"')
        says(log, r'"Successfully bound pod to node" pod="default/web" .*evaluatedNodes=6 feasibleNodes=2')

        api.pod("later", "node-crd-resource-fit", {"cpu": "1", "ephemeral-storage": "1Gi"})
        wait_until(lambda: api.message_of("later") != "", timeout=PATIENCE, what="the pod is told why it waits")
        assert "2 Node does not enable resource ephemeral-storage" in api.message_of("later")
        api.offer("node-2", {"cpu": True, "ephemeral-storage": True})
        api.bound("later", "node-2")


def test_a_custom_resource_that_breaks_its_schema_is_rejected_alike(api: Api) -> None:
    api.define()
    with pytest.raises(ApiException) as refused:
        api.offer("node-1", {"cpu": "certainly"})
    assert refused.value.status == 422
    told = yaml.safe_load(refused.value.body)
    assert told["reason"] == "Invalid"
    assert told["message"] == (
        'ClusterScopedResource.scheduling.sigs.k8s.io "node-1" is invalid: '
        'spec.resourcesFilter.cpu: Invalid value: "string": spec.resourcesFilter.cpu in body must be of type boolean: '
        '"string"'
    )


def test_the_definition_is_accepted_without_a_warning(real_cluster: RealCluster) -> None:
    text = yaml.safe_dump(definition_of(ClusterScopedResource))
    done = real_cluster.kubectl("apply", "--filename", "-", stdin=text)
    assert (done.stdout.strip(), done.stderr) == (
        "customresourcedefinition.apiextensions.k8s.io/clusterscopedresources.scheduling.sigs.k8s.io created",
        "",
    )
    name = "customresourcedefinition/clusterscopedresources.scheduling.sigs.k8s.io"
    told = yaml.safe_load(real_cluster.kubectl("get", name, "--output=yaml").stdout)
    conditions = {one["type"]: one["status"] for one in told["status"]["conditions"]}
    assert conditions["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in conditions
    real_cluster.kubectl("delete", name)
