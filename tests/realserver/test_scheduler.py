"""The real kube-scheduler, on the real API server: what kubesched is measured against."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.realserver.fixtures import pod
from tests.realserver.harness import RealCluster, Scheduler


@pytest.fixture
def kube_scheduler(real_cluster: RealCluster) -> Iterator[Scheduler]:
    scheduler = real_cluster.start_scheduler({"profiles": [{"schedulerName": "the-real-one"}]})
    yield scheduler
    scheduler.stop()


def condition(pod: Any, kind: str) -> Any:
    return next((each for each in pod.get("status", {}).get("conditions", []) if each["type"] == kind), None)


def test_the_real_kube_scheduler_binds_a_pod_to_a_made_node(
    real_cluster: RealCluster, namespace: str, make_node: Callable[..., str], kube_scheduler: Scheduler
) -> None:
    client = real_cluster.client()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    client.create(pods, pod("web", schedulerName="the-real-one"))
    waiting = client.until(pods, "web", lambda seen: condition(seen, "PodScheduled") is not None)
    assert condition(waiting, "PodScheduled")["reason"] == "Unschedulable"

    node = make_node()

    bound = client.until(pods, "web", lambda seen: "nodeName" in seen["spec"])
    assert bound["spec"]["nodeName"] == node
    assert condition(bound, "PodScheduled")["status"] == "True"


def test_the_real_kube_scheduler_leaves_other_schedulers_pods_alone(
    real_cluster: RealCluster, namespace: str, make_node: Callable[..., str], kube_scheduler: Scheduler
) -> None:
    client = real_cluster.client()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    make_node()
    client.create(pods, pod("theirs", schedulerName="another"))
    client.create(pods, pod("its", schedulerName="the-real-one"))
    client.until(pods, "its", lambda seen: "nodeName" in seen["spec"])
    assert "nodeName" not in client.get(f"{pods}/theirs")["spec"]
