"""A plugin's file goes along in the ConfigMap, and what is deployed finds it there."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched.cli.main import FAILED, run
from kubesched.framework.errors import ConfigError
from kubesched.live.carrying import BYTES_MAX, carried
from kubesched.live.manifests import CONFIG_FOLDER

PLUGIN = """
from kubesched import SUCCESS, unschedulable

class OddOnly:
    def filter(self, cycle, pod, node):
        return SUCCESS if int(node.name[-1]) % 2 else unschedulable("node(s) were even")
"""
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NAMED = HEAD + "profiles: [{plugins: {multiPoint: {enabled: [{name: 'own/odd.py:OddOnly'}]}}}]\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "odd.py").write_text(PLUGIN)
    (tmp_path / "named.yaml").write_text(NAMED)
    (tmp_path / "plain.yaml").write_text(HEAD)
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [("--config", "named.yaml"), ("--config", "plain.yaml", "--plugin", "own/odd.py"), ("--plugin", "own/odd.py")],
)
def test_what_is_deployed_has_the_plugin(
    here: Path, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """The container's own command line, on the ConfigMap's own files, in a folder where nothing else is."""
    assert run(["manifests", *options]) == 0
    told = {one["kind"]: one for one in yaml.safe_load_all(capsys.readouterr().out)}
    mounted = here / "mounted"
    mounted.mkdir()
    for name, text in told["ConfigMap"]["data"].items():
        (mounted / name).write_text(text)
    [container] = told["Deployment"]["spec"]["template"]["spec"]["containers"]
    arguments = [word.replace(CONFIG_FOLDER, str(mounted)) for word in container["args"]]
    assert run([*arguments, "--write-config-to", "whole.yaml"]) == 0
    enabled = yaml.safe_load((here / "whole.yaml").read_text())["profiles"][0]["plugins"]["multiPoint"]["enabled"]
    assert {"OddOnly", "odd.py:OddOnly"} & {one["name"] for one in enabled}


def test_gates_go_along(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["manifests", "--feature-gates", "SchedulerPopFromBackoffQ=false"]) == 0
    assert "- --feature-gates=SchedulerPopFromBackoffQ=false" in capsys.readouterr().out


def test_rights_are_those_of_the_plugin_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reads = "from kubesched.api.objects import Service\nclass OddOnly:\n    reads = (Service,)"
    (here / "reader.py").write_text(PLUGIN.replace("class OddOnly:", reads))
    off = "profiles: [{plugins: {multiPoint: {disabled: [{name: PodTopologySpread}]}}}]\n"
    (here / "off.yaml").write_text(HEAD + off)
    assert run(["rbac", "--config", "off.yaml"]) == 0
    assert "services" not in capsys.readouterr().out
    assert run(["rbac", "--config", "off.yaml", "--plugin", "reader.py"]) == 0
    assert "services" in capsys.readouterr().out


def test_a_file_that_is_too_large_and_two_of_one_name_are_refused(here: Path) -> None:
    said: dict[str, Any] = yaml.safe_load(NAMED)
    (here / "odd.py").write_text(PLUGIN)
    with pytest.raises(ConfigError, match="have the same name"):
        carried(said, here, [here / "odd.py"])
    (here / "own" / "odd.py").write_text("#" * (BYTES_MAX + 1))
    with pytest.raises(ConfigError, match=r"odd\.py: 921,601 bytes are too many for a ConfigMap"):
        carried(said, here)
    strange = here / "two words.py"
    strange.write_text(PLUGIN)
    with pytest.raises(ConfigError, match="no file in a ConfigMap is called"):
        carried({}, here, [strange])


def test_what_names_no_file_stays_as_it_is(here: Path) -> None:
    said = {"profiles": [{"schedulerName": "a.py", "pluginConfig": [{"name": "X", "args": {"at": ["b:c", 7, None]}}]}]}
    assert carried(said, here) == (said, {})


def test_a_plugin_that_is_missing_is_told_at_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("manifests", "rbac"):
        assert run([command, "--plugin", "missing.py"]) == FAILED
        assert "missing.py: there is no such file" in capsys.readouterr().err
