"""The official Python client over HTTPS: create, list, watch, patch, bind, evict and delete, and what it is told when
it errs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client, config, watch
from kubernetes.dynamic import DynamicClient
from tests.apiserver.conftest import Served


@pytest.fixture
def api(served: Served) -> Iterator[client.ApiClient]:
    made = config.new_client_from_config(str(served.kubeconfig))
    yield made
    made.close()


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


def pod(name: str, **spec: Any) -> client.V1Pod:
    container = client.V1Container(name="c", image="nginx")
    meta = client.V1ObjectMeta(name=name, labels={"app": "web"})
    return client.V1Pod(metadata=meta, spec=client.V1PodSpec(containers=[container], **spec))


def test_pods_are_created_listed_and_deleted(core: client.CoreV1Api) -> None:
    made = core.create_namespaced_pod("default", pod("web"))
    assert made.spec.scheduler_name == "default-scheduler"
    assert made.status.phase == "Pending"
    assert [p.metadata.name for p in core.list_namespaced_pod("default", label_selector="app=web").items] == ["web"]
    core.delete_namespaced_pod("web", "default")
    assert core.list_namespaced_pod("default").items == []


def test_a_watch_sees_every_change_in_order(core: client.CoreV1Api) -> None:
    seen: list[tuple[str, str]] = []
    version = core.list_namespaced_pod("default").metadata.resource_version

    def follow() -> None:
        for event in watch.Watch().stream(core.list_namespaced_pod, "default", resource_version=version):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                return

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    core.create_namespaced_pod("default", pod("web"))
    core.patch_namespaced_pod("web", "default", {"metadata": {"labels": {"tier": "front"}}})
    core.delete_namespaced_pod("web", "default")
    follower.join(timeout=30)
    assert seen[:2] == [("ADDED", "web"), ("MODIFIED", "web")]
    assert seen[-1] == ("DELETED", "web")


def test_a_bound_pod_is_on_its_node_and_cannot_be_bound_again(core: client.CoreV1Api) -> None:
    core.create_namespaced_pod("default", pod("web"))
    target = client.V1ObjectReference(kind="Node", name="n1")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="web"), target=target)
    # The client cannot read the Status that answers a binding, the real server's no more than ours.
    core.create_namespaced_pod_binding("web", "default", binding, _preload_content=False)
    assert core.read_namespaced_pod("web", "default").spec.node_name == "n1"
    with pytest.raises(client.ApiException) as refused:
        core.create_namespaced_pod_binding("web", "default", binding, _preload_content=False)
    assert refused.value.status == 409
    assert "already assigned to node" in refused.value.body


def test_errors_carry_the_status_of_the_real_server(core: client.CoreV1Api) -> None:
    with pytest.raises(client.ApiException) as missing:
        core.read_namespaced_pod("nope", "default")
    assert (missing.value.status, missing.value.reason) == (404, "Not Found")
    with pytest.raises(client.ApiException) as invalid:
        core.create_namespaced_pod("default", pod("Bad_Name"))
    assert invalid.value.status == 422
    assert '"field":"metadata.name"' in invalid.value.body


def test_a_stale_update_is_a_conflict(core: client.CoreV1Api) -> None:
    made = core.create_namespaced_config_map("default", client.V1ConfigMap(metadata=client.V1ObjectMeta(name="c")))
    core.patch_namespaced_config_map("c", "default", {"data": {"a": "1"}})
    made.data = {"b": "2"}
    with pytest.raises(client.ApiException) as stale:
        core.replace_namespaced_config_map("c", "default", made)
    assert stale.value.status == 409


def test_a_deployment_is_scaled(api: client.ApiClient) -> None:
    apps = client.AppsV1Api(api)
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels={"app": "web"}),
        spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="nginx")]),
    )
    selector = client.V1LabelSelector(match_labels={"app": "web"})
    spec = client.V1DeploymentSpec(replicas=1, selector=selector, template=template)
    apps.create_namespaced_deployment(
        "default", client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)
    )
    apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 3}})
    assert apps.read_namespaced_deployment("web", "default").spec.replicas == 3
    assert apps.read_namespaced_deployment_scale("web", "default").spec.replicas == 3


def test_a_blocked_eviction_says_which_budget(api: client.ApiClient, core: client.CoreV1Api) -> None:
    core.create_namespaced_pod("default", pod("web", node_name="n1"))
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
    core.patch_namespaced_pod_status("web", "default", {"status": ready})
    policy = client.PolicyV1Api(api)
    selector = client.V1LabelSelector(match_labels={"app": "web"})
    budget = client.V1PodDisruptionBudget(
        metadata=client.V1ObjectMeta(name="all"),
        spec=client.V1PodDisruptionBudgetSpec(max_unavailable=0, selector=selector),
    )
    policy.create_namespaced_pod_disruption_budget("default", budget)
    counted = {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    policy.patch_namespaced_pod_disruption_budget_status("all", "default", {"status": counted})
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="web"))
    with pytest.raises(client.ApiException) as blocked:
        core.create_namespaced_pod_eviction("web", "default", eviction)
    assert blocked.value.status == 429
    assert "The disruption budget all needs 1 healthy pods and has 1 currently" in blocked.value.body


def test_the_dynamic_client_finds_kinds_by_discovery(api: client.ApiClient) -> None:
    groups = DynamicClient(api).resources.get(api_version="scheduling.k8s.io/v1", kind="PriorityClass")
    made = groups.create(body={"metadata": {"name": "high"}, "value": 1000})
    assert made.preemptionPolicy == "PreemptLowerPriority"
    assert sorted(item.metadata.name for item in groups.get().items)[0] == "high"


def test_no_token_no_entry(served: Served) -> None:
    settings = client.Configuration(host=served.url)
    settings.ssl_ca_cert = str(served.ca)
    with client.ApiClient(settings) as anonymous:
        with pytest.raises(client.ApiException) as refused:
            client.CoreV1Api(anonymous).list_node()
        assert refused.value.status == 401
    assert client.rest.RESTClientObject(settings).request("GET", f"{served.url}/readyz").status == 200
