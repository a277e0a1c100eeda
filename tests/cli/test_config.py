"""`kubesched config`: what is accepted, what is refused and how, what a configuration means, and its JSON Schema."""

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from kubesched.cli.main import FAILED, MISUSED, run

GROUP = "kubescheduler.config.k8s.io"
HEAD = f"apiVersion: {GROUP}/v1\nkind: KubeSchedulerConfiguration\n"


def write(tmp_path: Path, text: str, version: str = "v1") -> str:
    path = tmp_path / "scheduler.yaml"
    path.write_text(f"apiVersion: {GROUP}/{version}\nkind: KubeSchedulerConfiguration\n{text}")
    return str(path)


# ── files as users have them ─────────────────────────────────────────────────────────────────────────────────

ONE_SCORE = """\
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: /etc/kubernetes/scheduler.conf
profiles:
  - schedulerName: my-scheduler
    plugins:
      preScore:
        disabled:
        - name: '*'
      score:
        disabled:
        - name: '*'
        enabled:
        - name: {plugin}
          weight: 1
"""


@pytest.mark.parametrize(
    ("version", "plugin", "notes"),
    [
        ("v1", "NodeResourcesFit", []),
        ("v1beta3", "NodeResourcesFit", ["v1beta3 is read as"]),
        ("v1beta2", "NodeResourcesFit", ["v1beta2 is read as"]),
        ("v1beta1", "NodeResourcesMostAllocated", ["v1beta1 is read as", "is now NodeResourcesFit with scor"]),
    ],
)
def test_unmodified_files_of_every_version_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str, plugin: str, notes: list[str]
) -> None:
    file = write(tmp_path, ONE_SCORE.format(plugin=plugin), version)

    assert run(["config", "check", file]) == 0

    told = capsys.readouterr()
    assert told.out == f"{file}: ok, 1 profile: my-scheduler\n"
    lines = told.err.splitlines()
    assert len(lines) == len(notes)
    for line, note in zip(lines, notes, strict=True):
        assert line.startswith("note: ")
        assert note in line


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_addresses_and_locks_of_old_versions_are_dropped_with_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: str
) -> None:
    text = "healthzBindAddress: 0.0.0.0:10251\nmetricsBindAddress: 0.0.0.0:10251\n"
    file = write(tmp_path, f"{text}leaderElection: {{resourceLock: endpointsleases}}\n", version)

    assert run(["config", "check", file]) == 0

    err = capsys.readouterr().err
    assert "healthzBindAddress: dropped" in err
    assert "leaderElection.resourceLock: endpointsleases is now leases" in err
    assert "keep the weight 1" in err


def test_a_mounted_config_map_is_read(tmp_path: Path) -> None:
    """As the kubelet mounts one: the file links into ..data, which links to a dated folder."""
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..2026" / "config.yaml").write_text(HEAD)
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")

    assert run(["config", "check", str(tmp_path / "config.yaml")]) == 0


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(HEAD.encode())))

    assert run(["config", "check", "-"]) == 0
    assert capsys.readouterr().out == "-: ok, 1 profile: default-scheduler\n"


# ── what is refused: file, line, path, value, remedy; exit status 1 ──────────────────────────────────────────

BOMB = "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(3))


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (
            "profiles: [{plugins: {filter: {enabled: [{name: NodeAfinity}]}}}]",
            3,
            'profiles[0].plugins.filter.enabled[0].name: FilterPlugin "NodeAfinity" does not exist (did you mean',
        ),
        (
            "profiles:\n- plugins: {score: {enabled: [{name: ImageLocality, weight: -1}]}}",
            4,
            "score plugins: total score of Score plugins could overflow",
        ),
        (
            "profiles:\n- plugins:\n    score: {enabled: [{name: ImageLocality, weight: 5000000000}]}",
            5,
            "profiles[0].plugins.score.enabled[0].weight: Invalid value: 5000000000: must be an integer from",
        ),
        (
            "profiles: [{plugins: {queueSort: {enabled: [{name: PrioritySort}, {name: PrioritySort}]}}}]",
            3,
            "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
        ),
        (
            "profiles:\n- schedulerName: a\n- schedulerName: a",
            5,
            "profiles[1].schedulerName: Duplicate value",
        ),
        (
            "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: heavy}}]}]",
            3,
            "profiles[0].pluginConfig[0].args.hardPodAffinityWeight: must be an integer, not the string",
        ),
        (
            "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWait: 1}}]}]",
            3,
            'unknown field "hardPodAffinityWait" (did you mean "hardPodAffinityWeight"?)',
        ),
        ("percentageOfNodesToScore: 101", 3, "percentageOfNodesToScore: Invalid value: 101: not in valid ra"),
        ("parallelism: 1_x", 3, 'parallelism: must be an integer, not the string "1_x"'),
        ("extenders: [{urlPrefix: 'file:///etc/passwd', filterVerb: f}]", 3, "extenders[0].urlPrefix: Invalid value"),
        (BOMB, 4, "has the alias *a"),
        ("a: !!python/object/apply:os.system [id]", 3, "has the tag"),
        ("a: [" * 70, 3, "nests more than 64 levels deep"),
        ("a: [", 4, "is not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: int, said: str
) -> None:
    file = write(tmp_path, f"{text}\n")
    for command in ("check", "show"):
        assert run(["config", command, file]) == FAILED
        err = capsys.readouterr().err
        assert said in err, err
        assert f"{file}:{line}: " in err, err
        assert "Traceback" not in err


def test_every_file_is_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(HEAD)
    bad.write_text(f"{HEAD}paralelism: 4\nprofils: []\n")

    assert run(["config", "check", str(bad), str(good), str(tmp_path / "gone.yaml")]) == FAILED

    told = capsys.readouterr()
    assert told.out == f"{good}: ok, 1 profile: default-scheduler\n"
    assert told.err.splitlines() == [
        f'error: {bad}:3: paralelism: unknown field "paralelism" (did you mean "parallelism"?)',
        f'error: {bad}:4: profils: unknown field "profils" (did you mean "profiles"?)',
        f"error: {tmp_path}/gone.yaml: cannot be read (no such file or directory)",
        "2 of 3 files refused",
    ]


def test_what_a_file_says_does_not_reach_the_terminal_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["config", "check", write(tmp_path, '"\\e[31mred": 1\n')])
    assert "\x1b" not in capsys.readouterr().err


# ── what it means ────────────────────────────────────────────────────────────────────────────────────────────


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["config", "show", *arguments, "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_default_is_kube_schedulers(capsys: pytest.CaptureFixture[str]) -> None:
    [profile] = shown(capsys)["profiles"]

    weights = {one["name"]: one["weight"] for one in profile["plugins"]["score"]}
    assert weights == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert [one["name"] for one in profile["plugins"]["queueSort"]] == ["PrioritySort"]
    assert profile["args"]["VolumeBinding"] == {"bindTimeoutSeconds": 600}


def test_an_explicit_weight_moves_a_plugin_to_the_front(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: 5}]}}}]\n")

    [profile] = shown(capsys, file)["profiles"]

    assert profile["plugins"]["score"][0] == {"name": "NodeAffinity", "weight": 5}
    assert profile["plugins"]["filter"][0] == {"name": "NodeUnschedulable"}


def test_a_plugin_disabled_everywhere_is_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "profiles: [{plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}}]\n")

    assert "ImageLocality" not in json.dumps(shown(capsys, file)["profiles"])


def test_gates_change_what_it_means(capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(capsys, "--feature-gates", "NodeDeclaredFeatures=false")

    assert "NodeDeclaredFeatures" not in json.dumps(told["profiles"])


@pytest.mark.parametrize("output", ["text", "yaml"])
def test_it_is_told_to_people_too(tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str) -> None:
    file = write(tmp_path, ONE_SCORE.format(plugin="NodeResourcesFit"))

    assert run(["config", "show", file, "-o", output]) == 0

    out = capsys.readouterr().out
    if output == "yaml":
        assert yaml.safe_load(out)["profiles"][0]["schedulerName"] == "my-scheduler"
    else:
        assert "profile my-scheduler: every node is scored" in out
        assert "  score        NodeResourcesFit ×1\n" in out
        assert "leaderElection: leaderElect off" in out


# ── for editors ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_schema_knows_fields_arguments_and_what_they_are_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "schema"]) == 0

    schema = json.loads(capsys.readouterr().out)
    assert schema["properties"]["apiVersion"] == {"const": f"{GROUP}/v1"}
    assert schema["properties"]["percentageOfNodesToScore"]["description"].startswith("of a large cluster's nodes")
    assert schema["additionalProperties"] is False
    names = {one["if"]["properties"]["name"]["const"] for one in schema["$defs"]["PluginConfig"]["allOf"]}
    assert {"NodeResourcesFit", "PodTopologySpread", "VolumeBinding"} <= names
    affinity = schema["$defs"]["InterPodAffinityArgs"]
    assert "hardPodAffinityWeight" in affinity["properties"]
    assert "Args:" not in json.dumps(schema)


def test_a_subcommand_and_a_file_are_asked_for() -> None:
    assert run(["config", "check"]) == MISUSED
    assert run(["config", "chek", "x"]) == MISUSED
