"""Unmodified kubectl against our server: the commands that were recorded against kube-apiserver, and how they ended
there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.apiserver.conftest import TOKEN, Served
from tests.realserver import binaries

from kubesched.apiserver.server import GIT_VERSION

DATA = Path(__file__).parent / "data" / "kubectl"
NAMESPACE = "/api/v1/namespaces/default"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


RECORDED = ".".join(GIT_VERSION.split(".")[:2])  # each minor version of kubectl asks and prints a little differently


def find_kubectl() -> tuple[str | None, str]:
    """The kubectl of `make envtest`, else the one on PATH if it is of the recorded version; and why there is none."""
    try:
        return str(binaries.find("kubectl")), ""
    except binaries.Missing as missing:
        why = str(missing)
    on_path = shutil.which("kubectl")
    if on_path is None:
        return None, f"{why}; nor is there one on PATH"
    version = version_of(on_path)
    if version != RECORDED:
        return None, f"{why}; {on_path} is {version}, and the answers were recorded with {RECORDED}"
    return on_path, ""


def version_of(kubectl: str) -> str:
    """`v1.36` of a kubectl; what it says instead where it does not tell."""
    command = [kubectl, "version", "--client", "--output=json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        version: str = json.loads(done.stdout)["clientVersion"]["gitVersion"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        return f"of an unknown version ({type(error).__name__})"
    return ".".join(version.split(".")[:2])


_KUBECTL, _WHY_NOT = find_kubectl()
needs_kubectl = pytest.mark.skipif(_KUBECTL is None, reason=f"kubectl left out: {_WHY_NOT}")


class Kubectl:
    """kubectl with a kubeconfig, a cache and a temporary folder of its own."""

    def __init__(self, served: Served, home: Path) -> None:
        self.served, self.home = served, home

    def __call__(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "KUBECONFIG": str(self.served.kubeconfig),
            "KUBE_EDITOR": "sed -i s/app:.*/app:\\ edited/",
        }
        assert _KUBECTL is not None
        return subprocess.run(
            [_KUBECTL, "--cache-dir", str(self.home / "cache"), *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=DATA,
            env=environment,
            check=False,
        )

    def ok(self, *args: str, stdin: str = "") -> str:
        done = self(*args, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def kubectl(served: Served, tmp_path: Path) -> Kubectl:
    return Kubectl(served, tmp_path)


def masked(text: str) -> str:
    """Output without what differs from run to run: ids, times, ages, versions, addresses, the width of columns."""
    text = re.sub("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME", text)
    text = re.sub(r'(resourceVersion"?: "?)\d+', r"\1RV", text)
    text = re.sub(r"https?://127\.0\.0\.1:\d+", "URL", text)
    text = re.sub(r"\b10\.96\.\d+\.\d+\b", "IP", text)
    text = re.sub(r"\b(\d+[smhd]){1,2}\b", "AGE", text)
    text = re.sub(r"\bgen-[a-z0-9]{5}\b", "gen-XXXXX", text)
    lines = [line for line in text.strip().splitlines() if not re.match(r"[IWE]\d{4} ", line)]  # kubectl's own log
    return "\n".join(" ".join(line.split()) for line in lines)


def request(served: Served, method: str, path: str, body: Any, kind: str = "application/json") -> None:
    """What no kubectl command does: bind, report a status."""
    raw = json.dumps(body).encode()
    headers = {"content-type": kind, "authorization": f"Bearer {TOKEN}"}
    answer = served.thread.call(served.server.handle, method, path, "", headers, raw)
    assert answer.status < 300, answer.body


def run_two_pods(served: Served) -> None:
    """What a scheduler and two kubelets do."""
    for name, node, app in (("bound1", "n1", "x"), ("bound2", "n2", "strict")):
        spec = {"containers": [{"name": "c", "image": "x"}]}
        request(served, "POST", f"{NAMESPACE}/pods", {"metadata": {"name": name, "labels": {"app": app}}, "spec": spec})
        target = {"kind": "Node", "name": node}
        request(served, "POST", f"{NAMESPACE}/pods/{name}/binding", {"metadata": {"name": name}, "target": target})
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        merge = "application/merge-patch+json"
        request(served, "PATCH", f"{NAMESPACE}/pods/{name}/status", {"status": status}, merge)


def guard_with_budget(served: Served) -> None:
    """What the disruption controller does."""
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "strict"}}}
    request(served, "POST", BUDGETS, {"metadata": {"name": "strict"}, "spec": spec})
    status = {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    }
    request(served, "PATCH", f"{BUDGETS}/strict/status", {"status": status}, "application/merge-patch+json")


BEFORE = {"b0-drain-dry": run_two_pods, "b2-evict-pdb-429": guard_with_budget}


@needs_kubectl
@pytest.mark.slow
def test_every_recorded_command_ends_as_against_the_real_server(kubectl: Kubectl, served: Served) -> None:
    steps = yaml.safe_load((DATA / "commands.yaml").read_text())
    wrong = []
    for step in steps:
        if step["tag"] in BEFORE:
            BEFORE[step["tag"]](served)
        done = kubectl(*step["args"], stdin=step.get("stdin", ""))
        shown = f"{step['tag']}: kubectl {' '.join(step['args'])}"
        if done.returncode != step["rc"]:
            wrong.append(f"{shown}\n  ended {done.returncode}, not {step['rc']}: {done.stderr}")
        for name, text in (("out", done.stdout), ("err", done.stderr)):
            if name in step and masked(text) != step[name]:
                wrong.append(f"{shown}\n  std{name} was\n{masked(text)}\n  and not\n{step[name]}")
    assert len(steps) == 180
    assert not wrong, "\n".join(wrong)


@needs_kubectl
def test_a_first_session_with_kubectl(kubectl: Kubectl) -> None:
    kubectl.ok("apply", "-f", "nodes.yaml")
    assert kubectl.ok("get", "nodes", "-o", "name").split() == ["node/n1", "node/n2", "node/n3"]
    kubectl.ok("run", "web", "--image=nginx")
    assert "web    0/1     Pending" in kubectl.ok("get", "pods")
    kubectl.ok("apply", "--server-side", "-f", "deploy.yaml")
    assert "unchanged" in kubectl.ok("apply", "-f", "nodes.yaml")
    assert "Image: nginx" in masked(kubectl.ok("describe", "pod", "web"))
    assert "nodeSelectorTerms" in kubectl.ok("explain", "pod.spec.affinity", "--recursive")
    assert kubectl.ok("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == "kubernetes-admin"
    kubectl.ok("delete", "pod", "web")


@needs_kubectl
def test_a_wrong_token_is_refused(kubectl: Kubectl) -> None:
    done = kubectl("get", "pods", "--token", "wrong")
    assert done.returncode == 1
    assert "You must be logged in to the server" in done.stderr


@needs_kubectl
def test_a_custom_kind_is_served_as_soon_as_it_is_defined(kubectl: Kubectl) -> None:
    kubectl.ok("apply", "-f", "crd.yaml")
    kubectl.ok("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=5s")
    kubectl.ok("apply", "-f", "widget.yaml")
    assert kubectl.ok("get", "wd", "-o", "jsonpath={.items[0].spec.color}") == "red"
    assert "size\t<integer> -required-" in kubectl.ok("explain", "widget.spec")
    kubectl.ok("delete", "crd", "widgets.example.com")
    assert kubectl("get", "widgets").returncode == 1
