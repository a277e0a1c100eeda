"""Unmodified kubectl against `kubesched up`, the command: what only a whole cluster can do, for here pods run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.apiserver.test_kubectl import find_kubectl, needs_kubectl

Kubectl = Callable[..., str]

PATIENCE = "--timeout=60s"


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    """kubectl, pointed at a `kubesched up` of three nodes whose time passes five times as fast."""
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "kubesched", "up", "--nodes", "3", "--zones", "za,zb", "--port", "0"]
    command += ["--speed", "5", "--kubeconfig", str(kubeconfig)]
    up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert up.stdout is not None
    told = up.stdout.readline()
    assert told.startswith("kubesched is up at https://127.0.0.1:"), told + up.stdout.read()
    found, _ = find_kubectl()
    assert found is not None
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(kubeconfig)}

    def run(*arguments: str, stdin: str = "", editor: str = "true") -> str:
        done = subprocess.run(
            [found, *arguments], input=stdin, capture_output=True, text=True, timeout=90,
            env={**env, "KUBE_EDITOR": editor}, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    yield run
    up.terminate()
    rest, _ = up.communicate(timeout=30)
    assert rest.rstrip().endswith("kubesched is down")
    assert "Traceback" not in rest
    assert up.returncode == 0


def nodes_of(kubectl: Kubectl, label: str) -> list[str]:
    return kubectl("get", "pods", "-l", label, "-o", "jsonpath={.items[*].spec.nodeName}").split()


@needs_kubectl
@pytest.mark.slow
def test_a_deployment_is_rolled_out_scaled_drained_edited_and_deleted(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", PATIENCE)
    kubectl("wait", "pod", "-l", "app=web", "--for=condition=Ready", PATIENCE)

    kubectl("scale", "deployment/web", "--replicas=4")
    kubectl("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=4", PATIENCE)
    assert len(nodes_of(kubectl, "app=web")) == 4

    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    kubectl("rollout", "status", "deployment/web", PATIENCE)
    assert "REVISION" in kubectl("rollout", "history", "deployment/web")
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", PATIENCE)

    drained = nodes_of(kubectl, "app=web")[0]
    kubectl("drain", drained, "--ignore-daemonsets", PATIENCE)
    kubectl("rollout", "status", "deployment/web", PATIENCE)
    kubectl("wait", "deployment/web", "--for=jsonpath={.status.readyReplicas}=4", PATIENCE)
    assert drained not in nodes_of(kubectl, "app=web")
    assert f"{drained}   Ready,SchedulingDisabled" in kubectl("get", "nodes")
    kubectl("uncordon", drained)

    kubectl("edit", "deployment/web", editor="sed -i s/replicas:.*/replicas:\\ 1/")
    kubectl("wait", "deployment/web", "--for=jsonpath={.status.replicas}=1", PATIENCE)

    kubectl("delete", "deployment", "web", "--wait")
    kubectl("wait", "pod", "-l", "app=web", "--for=delete", PATIENCE)
    assert kubectl("get", "pods", "-o", "name") == ""


@needs_kubectl
@pytest.mark.slow
def test_a_pod_waits_for_what_it_needs_and_kubectl_says_why(kubectl: Kubectl) -> None:
    kubectl("taint", "nodes", "--all", "dedicated=x:NoSchedule")
    kubectl("run", "web", "--image=nginx")
    kubectl("wait", "pod/web", "--for=condition=PodScheduled=False", PATIENCE)
    assert "untolerated taint" in kubectl("describe", "pod", "web")
    assert "FailedScheduling" in kubectl("events", "--for", "pod/web")
    kubectl("label", "node", "node-0", "disk=ssd")
    kubectl("annotate", "node", "node-0", "note=mine")
    kubectl("taint", "nodes", "node-0", "dedicated-")
    kubectl("wait", "pod/web", "--for=condition=Ready", PATIENCE)
    where = kubectl("get", "pod", "web", "-o", "custom-columns=NAME:.metadata.name,NODE:.spec.nodeName", "--no-headers")
    assert where.split() == ["web", "node-0"]
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
