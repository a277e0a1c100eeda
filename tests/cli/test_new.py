"""`kubesched new plugin`: what is written works, before and after three lines are changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kubernetes
import pytest
import yaml

from kubesched.cli.main import run


def pytest_in(folder: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    assert run(["new", "plugin", "ZoneBudget"]) == 0
    capsys.readouterr()
    return tmp_path / "zone-budget"


def test_it_works_as_it_is(package: Path) -> None:
    done = pytest_in(package)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def fill_in(module: Path) -> None:
    """Make the three lines one's own."""
    text = module.read_text()
    for number, line in {
        "# 1:": '        full = node.labels.get("zone") == "closed" or node.pod_count >= self.args.limit',
        "# 2:": "        left = 100 - node.pod_count",
        "# 3:": '        return Hint("Node", Action.ADD | Action.UPDATE_NODE_LABEL), Hint("Pod", Action.DELETE)',
    }.items():
        [old] = [each for each in text.splitlines() if number in each]
        text = text.replace(old, line)
    module.write_text(text)


def test_three_lines_make_it_ones_own(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = package / "zone_budget.py"
    fill_in(module)

    done = pytest_in(package)
    assert done.returncode == 0, done.stdout
    assert run(["plugins", "show", "ZoneBudget", "--plugin", str(module)]) == 0
    assert "  limit: 10" in capsys.readouterr().out.splitlines()


NODES = """
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Node, metadata: {name: open-node}}
  - {apiVersion: v1, kind: Node, metadata: {name: closed-node, labels: {zone: closed}}}
"""


def test_from_an_empty_folder_to_a_scheduled_pod_in_five_commands(package: Path) -> None:
    """`kubesched new`, three lines, `pytest`, `kubesched up`, and a pod: the plugin keeps it off the closed node."""
    fill_in(package / "zone_budget.py")
    assert pytest_in(package).returncode == 0
    (package / "nodes.yaml").write_text(NODES)
    command = ["up", "--plugin", "zone_budget.py", "--nodes-file", "nodes.yaml", "--port", "0", "--kubeconfig", "kc"]
    with running(command, package) as first_line:
        assert "with 2 nodes" in first_line
        core = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(str(package / "kc")))
        for number in range(3):
            spec = {"containers": [{"name": "c", "image": "pause"}]}
            core.create_namespaced_pod("default", {"metadata": {"name": f"p{number}"}, "spec": spec})
        bound: dict[str, str] = {}
        for event in kubernetes.watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=60):
            pod = event["object"]
            if pod.spec.node_name:
                bound[pod.metadata.name] = pod.spec.node_name
            if len(bound) == 3:
                break
    assert bound == {"p0": "open-node", "p1": "open-node", "p2": "open-node"}


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[str]:
    """A kubesched at work in a process of its own, once it has said its first line."""
    started = [sys.executable, "-c", "import sys; from kubesched.cli.main import run; sys.exit(run())", *command]
    with subprocess.Popen(started, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline()
        finally:
            process.terminate()
            process.wait(timeout=60)


def test_a_mistake_in_the_three_lines_is_found_by_its_test(package: Path) -> None:
    module = package / "zone_budget.py"
    text = module.read_text()
    [old] = [line for line in text.splitlines() if "# 3:" in line]
    module.write_text(text.replace(old, '        return (Hint("Node", Action.DELETE),)'))

    done = pytest_in(package)
    assert done.returncode == 1
    assert "2 failed" in done.stdout, "a pod would sleep through what helps it, say the kit and the scenario"


def test_the_configuration_and_the_manifests_name_it(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configuration = yaml.safe_load((package / "scheduler.yaml").read_text())
    assert configuration["profiles"][0]["schedulerName"] == "zone-budget"
    kinds = [part["kind"] for part in yaml.safe_load_all((package / "manifests.yaml").read_text())]
    assert {"ServiceAccount", "ClusterRole", "ConfigMap", "Deployment"} <= set(kinds)
    assert run(["manifests", "--config", "zone-budget/scheduler.yaml", "--plugin", "zone-budget/zone_budget.py",
                "--name", "zone-budget"]) == 0
    assert (package / "manifests.yaml").read_text() == capsys.readouterr().out, "as the README says it is made"
    assert 'ZoneBudget = "zone_budget:ZoneBudget"' in (package / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("zone-budget", "'zone-budget' is no name for a plugin; write it like a class: ZoneBudget"),
        ("7up", "'7up' is no name for a plugin; write it like a class: ZoneBudget"),
        ("None", "'None' is no name for a plugin"),
        ("NodeName", "there is a plugin called NodeName already: kubesched plugins show NodeName"),
    ],
)
def test_names_that_will_not_do(
    name: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["new", "plugin", name]) == 1
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (package / "zone_budget.py").read_text()
    (package / "zone_budget.py").write_text("mine")
    assert run(["new", "plugin", "ZoneBudget"]) == 1
    assert "has something in it; name an empty folder with --into" in capsys.readouterr().err
    assert (package / "zone_budget.py").read_text() == "mine" != before
