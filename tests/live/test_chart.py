"""The chart, rendered by the real Helm, says what `kubesched manifests` says."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched import __version__
from kubesched.cli.main import run

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "kubesched"
OURS = ROOT / ".envtest" / "bin"


@pytest.fixture(scope="module")
def helm() -> str:
    found = shutil.which("helm", path=f"{OURS}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip("no helm here: `make helm` builds it, and any helm in PATH will do")
    return found


def objects(text: str) -> dict[tuple[str, str], Any]:
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text) if one}


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ((), ("--image", f"kubesched:{__version__}")),
        (("asDefault=true", "replicas=3", "image.repository=x/y", "image.tag=1"),
         ("--as-default", "--replicas", "3", "--image", "x/y:1")),
    ],
    ids=["beside kube-scheduler", "in its place"],
)
def test_it_renders_what_the_command_prints(
    helm: str, values: tuple[str, ...], options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = [word for value in values for word in ("--set", value)]
    where = ("--namespace", "tools", "--kube-version", "v1.36.4")
    homes = {f"HELM_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "CONFIG", "DATA")}
    done = subprocess.run(
        [helm, "template", "mine", str(CHART), *where, *said],
        capture_output=True, text=True, timeout=120, env={**os.environ, **homes}, check=False,
    )
    assert done.returncode == 0, done.stderr
    assert run(["manifests", "--name", "mine", "--namespace", "tools", *options]) == 0
    printed = objects(capsys.readouterr().out)
    del printed["Namespace", "tools"]  # Helm makes it where it is told to
    assert objects(done.stdout) == printed


def test_it_has_nothing_to_complain_of(helm: str) -> None:
    command = [helm, "lint", "--strict", str(CHART)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
