"""The API server serves the clients people use, to those it knows and may let in."""

from collections.abc import Callable
from typing import Any

import kubernetes
import pytest
import yaml
from tests.realserver.client import Client
from tests.realserver.fixtures import pod
from tests.realserver.harness import RealCluster


def test_kubectl_creates_a_namespace_a_node_and_a_pod(real_cluster: RealCluster) -> None:
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "by-kubectl"}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-by-kubectl"}},
        {**pod("web"), "metadata": {"name": "web", "namespace": "by-kubectl"}},
    ]
    created = real_cluster.kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(objects))
    assert created.returncode == 0, created.stderr
    assert created.stdout.splitlines() == [
        "namespace/by-kubectl created", "node/node-by-kubectl created", "pod/web created",
    ]

    seen = real_cluster.kubectl("get", "pod", "web", "-n", "by-kubectl", "-o", "json").json
    assert seen["status"]["phase"] == "Pending"

    gone = real_cluster.kubectl("delete", "pod/web", "node/node-by-kubectl", "-n", "by-kubectl", "--now")
    assert gone.returncode == 0, gone.stderr


def test_kubectl_reports_what_is_not_there(real_cluster: RealCluster) -> None:
    run = real_cluster.kubectl("get", "node", "no-such-node")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == 'Error from server (NotFound): nodes "no-such-node" not found\n'


def test_the_python_client_creates_a_namespace_a_node_and_a_pod(real_cluster: RealCluster) -> None:
    kubeconfig = str(real_cluster.kubeconfig())
    with kubernetes.config.new_client_from_config(config_file=kubeconfig) as connection:
        core: Any = kubernetes.client.CoreV1Api(connection)     # it takes plain dicts, whatever its annotations say
        core.create_namespace({"metadata": {"name": "by-python"}})
        core.create_node({"metadata": {"name": "node-by-python"}})
        core.create_namespaced_pod("by-python", pod("web"))

        assert core.read_namespaced_pod("web", "by-python").status.phase == "Pending"
        assert "node-by-python" in [node.metadata.name for node in core.list_node().items]

        core.delete_namespaced_pod("web", "by-python", grace_period_seconds=0)
        core.delete_node("node-by-python")


def test_a_user_with_a_certificate_may_do_what_a_role_grants_and_no_more(
    real_cluster: RealCluster, namespace: str
) -> None:
    admin = real_cluster.client()
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    readers = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}]
    admin.create(f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": rules})
    admin.create(f"{rbac}/rolebindings", {"metadata": {"name": "readers"}, "roleRef": role, "subjects": readers})
    kubeconfig = str(real_cluster.kubeconfig("alice", groups=["readers"]))

    with kubernetes.config.new_client_from_config(config_file=kubeconfig) as connection:
        core: Any = kubernetes.client.CoreV1Api(connection)
        assert core.list_namespaced_pod(namespace).items == []
        with pytest.raises(kubernetes.client.ApiException) as refused:
            core.create_namespaced_pod(namespace, pod("web"))
    assert refused.value.status == 403


def test_nobody_gets_in_without_credentials(real_cluster: RealCluster) -> None:
    stranger = Client(real_cluster.url, real_cluster.trust())
    assert stranger.request("GET", "/api/v1/nodes").status == 403
    impostor = Client(real_cluster.url, real_cluster.trust(), "not-a-token")
    assert impostor.request("GET", "/api/v1/nodes").status == 401


def test_a_service_account_comes_with_a_token_of_its_own(real_cluster: RealCluster, namespace: str) -> None:
    real_cluster.client().create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "robot"}})
    robot = Client(real_cluster.url, real_cluster.trust(), real_cluster.service_account_token(namespace, "robot"))
    answer = robot.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}).must_be(201)
    assert answer.json["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:robot"


def test_made_nodes_are_ready_and_untainted(real_cluster: RealCluster, make_node: Callable[..., str]) -> None:
    node = real_cluster.client().get(f"/api/v1/nodes/{make_node(cpu='2')}")
    assert node["spec"].get("taints") is None
    assert node["status"]["allocatable"]["cpu"] == "2"
