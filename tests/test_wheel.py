"""Whoever installs the wheel has everything: from an empty folder, with no checkout anywhere near, all of it works."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import kubernetes
import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE")
LEFT_OUT = {".pyc"}

FILES = {
    "scenario.yaml": """
        cluster: [{node: n1, cpu: 4}, {pod: web, cpu: 1}]
        expect: [{pod: web, node: n1}]
    """,
    "node.yaml": """
        apiVersion: v1
        kind: Node
        metadata: {name: n1}
        status: {allocatable: {cpu: '4', pods: '9'}}
    """,
    "pod.yaml": """
        apiVersion: v1
        kind: Pod
        metadata: {name: web}
        spec: {containers: [{name: c, image: i}]}
    """,
}

Cli = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left behind in the checkout."""
    copy = tmp_path_factory.mktemp("source")
    for name in BUILT_FROM:
        shutil.copy(ROOT / name, copy / name)
    shutil.copytree(SRC, copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    into = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", str(into))
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(copy)], check=True, timeout=300)
    [built] = into.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel in it, and only the libraries of ours: its folder of programs."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    python = folder / "bin" / "python"
    options = ("--quiet", "--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check")
    into = [sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(wheel)]
    subprocess.run(into, check=True, timeout=300)
    [site] = (folder / "lib").glob("python*/site-packages")
    # A path that is named by a .pth is no site of its own: the editable kubesched in it is not found.
    (site / "libraries.pth").write_text(f"{Path(kubernetes.__file__).parents[1]}\n")
    return python.parent


@pytest.fixture
def cli(installed: Path, tmp_path: Path) -> Cli:
    """The installed `kubesched`, in an empty folder."""

    def run(*arguments: str, program: str = "kubesched") -> subprocess.CompletedProcess[str]:
        command = [str(installed / program), *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=alone(installed), capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


def alone(programs: Path) -> dict[str, str]:
    """An environment that says nothing of the checkout."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST_", "VIRTUAL"))}
    return {**ours, "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"}


def test_every_file_of_the_package_is_in_the_wheel_and_nothing_else(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = (path for path in (SRC / "kubesched").rglob("*") if path.is_file() and path.suffix not in LEFT_OUT)
    assert inside == {path.relative_to(SRC).as_posix() for path in files}


def test_it_is_the_installed_one_that_runs(cli: Cli, installed: Path) -> None:
    where = cli("-c", "import kubesched; print(kubesched.__file__)", program="python").stdout.strip()
    assert Path(where).is_relative_to(installed.parent)
    assert re.fullmatch(r"kubesched \d+\.\d+\.\d+\n", cli("--version").stdout)


def test_it_plays_the_tutorial_and_shows_its_programs(cli: Cli) -> None:
    assert "pod1" in cli("tutorial", "7").stdout
    assert 'Stage(7, "event handlers"' in cli("tutorial", "7", "--show").stdout


def test_it_knows_its_schemas_and_its_plugins(cli: Cli) -> None:
    assert '"$schema"' in cli("config", "schema").stdout
    assert '"$schema"' in cli("explain", "--schema").stdout
    assert "NodeResourcesFit" in cli("config", "show").stdout
    assert "kind: Deployment" in cli("manifests").stdout
    assert "Extension points:  filter" in cli("plugins", "show", "NodeName").stdout


def test_it_plays_a_scenario_and_explains_a_pod(cli: Cli, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    assert "default/web goes to n1" in cli("sim", "scenario.yaml", "--explain", "web").stdout
    assert "default/web  goes to n1" in cli("explain", "--cluster", "node.yaml", "--pod", "pod.yaml").stdout


def test_it_begins_a_plugin_whose_tests_pass(cli: Cli, tmp_path: Path, installed: Path) -> None:
    cli("new", "plugin", "ZoneBudget")
    quiet = ("-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "zone-budget"))
    assert "2 passed" in cli(*quiet, program="python").stdout


@contextmanager
def up(programs: Path, folder: Path) -> Iterator[Path]:
    """`kubesched up` at work; its kubeconfig."""
    command = [str(programs / "kubesched"), "up", "--port", "0", "--kubeconfig", "kubeconfig", "--nodes", "2"]
    with subprocess.Popen(command, cwd=folder, env=alone(programs), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "with 2 nodes" in process.stdout.readline()
            yield folder / "kubeconfig"
        finally:
            process.terminate()
            process.wait(timeout=60)


def test_it_brings_a_cluster_up_that_knows_every_kind(installed: Path, tmp_path: Path) -> None:
    with up(installed, tmp_path) as kubeconfig:
        core = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(str(kubeconfig)))
        core.create_namespaced_pod(
            "default", {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "pause"}]}}
        )
        for event in kubernetes.watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=60):
            if event["object"].spec.node_name:
                break
        else:
            pytest.fail("the pod was not bound")
