"""`kubesched explain`: a pod, a cluster of files, an answer; and every way to ask that makes no sense."""

import gc
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.explain.dumping import listed, manifest
from tests.explain.validating import faults

from kubesched.api.objects import KubeObject
from kubesched.cli.main import FAILED, MISUSED, run
from kubesched.testing import namespace, node, pod

SCHEMA = json.loads(resources.files("kubesched.explain").joinpath("decision.schema.json").read_text())
BROKEN = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": 3}}


@pytest.fixture
def asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """`asked(pod, objects…)`: the exit status, and what was printed; `options` go to the command."""

    def ask(of: KubeObject, *objects: Any, options: tuple[str, ...] = (), style: str = "json") -> tuple[int, str, str]:
        cluster, question = tmp_path / f"cluster.{style}", tmp_path / f"pod.{style}"
        cluster.write_text(listed(*objects) if style == "json" else yaml.safe_dump(json.loads(listed(*objects))))
        question.write_text((json.dumps if style == "json" else yaml.safe_dump)(manifest(of)))
        status = run(["explain", "--cluster", str(cluster), "--pod", str(question), *options])
        told = capsys.readouterr()
        return status, told.out, told.err

    return ask


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("style", ["json", "yaml"])
def test_where_a_pod_goes(asked: Any, style: str) -> None:
    status, out, err = asked(pod("web", cpu=2), node("n1", cpu=4), node("n2"), pod("a", cpu=7, on="n2"), style=style)

    assert status == 0
    assert out.startswith("default/web  goes to n1: no other node fits\n")
    assert "fits 1 of 2 nodes; the others:  1 Insufficient cpu" in out
    assert not err


def test_why_nowhere(asked: Any) -> None:
    status, out, _ = asked(pod("web", cpu="8200m"), node("n1"))

    assert status == 0
    assert "default/web  unschedulable: 0 of 1 nodes fit" in out
    assert "closest: n1 (short 200m cpu)" in out
    assert "why not n1?  NodeResourcesFit: wants cpu 8200m, free 8000m of 8000m" in out


def test_why_not_this_node(asked: Any) -> None:
    _, out, _ = asked(pod("web"), node("n1"), node("n7", unschedulable=True), options=("--node", "n7"))

    assert out == "why not n7?  NodeUnschedulable: it is cordoned      (all other filters pass)\n"


@pytest.mark.parametrize("cpu", [1, 99])
def test_json_is_as_the_schema_says(asked: Any, cpu: int) -> None:
    _, out, _ = asked(pod("web", cpu=cpu), node("n1"), node("n2", taints=["a:NoSchedule"]), options=("-o", "json"))

    told = json.loads(out)
    assert list(faults(told, SCHEMA)) == []
    assert told["pod"] == "default/web"
    assert told["rejected"]["n2"]["plugin"] == "TaintToleration"
    assert told.get("chosen") == ("n1" if cpu == 1 else None)


def test_wide_names_every_node(asked: Any) -> None:
    _, out, _ = asked(pod("web"), node("n1"), node("n2", unschedulable=True), options=("-o", "wide"))

    assert "turned down:\n  n2  NodeUnschedulable: it is cordoned" in out


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


def test_the_pod_itself_does_not_take_room(asked: Any) -> None:
    web = pod("web", cpu=6, on="n1")

    _, out, err = asked(web, node("n1"), web)

    assert "goes to n1" in out
    assert "the pod is on n1; it is asked where it would go if it were not" in err


def test_promised_room_counts(asked: Any) -> None:
    _, out, _ = asked(pod("web", cpu=6), node("n1"), pod("high", cpu=6, priority=9, nominated="n1"))

    assert "once the pods are there that have been promised room" in out


def test_the_configuration_counts(asked: Any, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: mine, plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}}]\n"
        "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n"
    )

    status, out, err = asked(pod("web", cpu=99, scheduler="mine"), node("n1"), options=("--config", str(config)))

    assert status == 0
    assert "default/web  goes to n1" in out
    assert "extenders are not asked here (http://127.0.0.1:1)" in err
    assert "v1beta3" in err


def test_a_pod_from_yaml_that_people_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nodes.yaml").write_text("---\n".join(yaml.safe_dump(manifest(node(name, cpu=2))) for name in "ab"))
    (tmp_path / "classes.json").write_text(
        listed(
            namespace("team"),
            pod("low", cpu=2, on="a", priority=1),
            pod("lower", cpu=2, on="b", priority=0),
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9},
        )
    )
    (tmp_path / "pod.yaml").write_text(
        "kind: Pod\nmetadata: {name: web, namespace: team}\n"
        "spec: {priorityClassName: high, containers: [{name: c, image: x, resources: {limits: {cpu: 1500m}}}]}\n"
    )
    files = ["--cluster", str(tmp_path / "nodes.yaml"), "--cluster", str(tmp_path / "classes.json")]

    assert run(["explain", *files, "--pod", str(tmp_path / "pod.yaml")]) == 0

    out = capsys.readouterr().out
    assert "team/web  unschedulable: 0 of 2 nodes fit" in out
    assert "preemption makes room on b, evicting default/lower (priority 0)" in out


def test_the_garbage_collector_is_left_as_it_was(asked: Any) -> None:
    asked(pod("web"), node("n1"))
    assert gc.isenabled()


# ── a cluster that is not as it should be ────────────────────────────────────────────────────────────────────


def test_a_broken_object_is_a_warning_and_counted(asked: Any) -> None:
    huge = node("n9", memory="9999999999999999Ei")

    status, out, err = asked(pod("web"), node("n1"), BROKEN, huge)

    assert status == 0
    assert "goes to n1" in out
    assert "item 1: a Node without a name: metadata.name: expected str, got int; it is left out" in err
    assert "objects were left out" in err


def test_strict_refuses(asked: Any) -> None:
    status, out, err = asked(pod("web"), node("n1"), BROKEN, options=("--strict",))

    assert status == FAILED
    assert not out
    assert "error: 1 object cannot be read, and --strict was given" in err


def test_strict_is_content_with_a_whole_cluster(asked: Any) -> None:
    assert asked(pod("web"), node("n1"), options=("--strict",))[0] == 0


def test_many_broken_objects_are_counted_not_listed(asked: Any) -> None:
    _, _, err = asked(pod("web"), node("n1"), *[BROKEN] * 50)

    assert err.count("it is left out") == 10
    assert "… and 40 more" in err
    assert "50 of 51 objects were left out" in err


def test_other_kinds_are_counted(asked: Any) -> None:
    _, _, err = asked(pod("web"), node("n1"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})

    assert "not read, for no plugin asks for them: 1 ConfigMap" in err


# ── questions that make no sense ─────────────────────────────────────────────────────────────────────────────


def test_an_unknown_scheduler_is_a_sentence(asked: Any) -> None:
    status, _, err = asked(pod("web", scheduler="volcano"), node("n1"))

    assert status == FAILED
    assert "the pod asks for the scheduler 'volcano', and there is default-scheduler; give its configuration" in err


def test_an_unknown_node_is_a_sentence(asked: Any) -> None:
    status, _, err = asked(pod("web"), node("n1"), options=("--node", "n2"))

    assert status == FAILED
    assert "no node 'n2' is in the cluster files, only 1 other" in err


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "is empty"), ("kind: [", "is neither JSON nor YAML"), ("- 1\n", "is no Kubernetes object")],
)
def test_files_of_something_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.yaml"
    good.write_text(listed(node("n1")))
    bad.write_text(content)
    for files in (("--cluster", bad, "--pod", good), ("--cluster", good, "--pod", bad)):
        assert run(["explain", *map(str, files)]) == FAILED
        err = capsys.readouterr().err
        assert str(bad) in err
        assert said in err
        assert "Traceback" not in err


def test_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path / "gone", tmp_path):
        assert run(["explain", "--cluster", str(path), "--pod", str(path)]) == FAILED
        assert f"{path}: cannot be read" in capsys.readouterr().err


def test_both_files_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--cluster", "x"], ["--pod", "x"]):
        assert run(["explain", *arguments]) == MISUSED
    assert "--cluster FILE --pod FILE" in capsys.readouterr().err


def test_a_configuration_that_is_wrong_is_refused(asked: Any, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofils: []\n")

    status, _, err = asked(pod("web"), node("n1"), options=("--config", str(config)))

    assert status == FAILED
    assert f"{config}:3" in err
    assert "profils" in err


def test_nothing_reaches_the_terminal_raw(asked: Any) -> None:
    evil = "n\x1b[31m\u202e"
    for options in ((), ("-o", "wide"), ("--node", evil)):
        _, out, err = asked(pod("w\x1b[2J", cpu=99), node(evil), {**BROKEN, "kind": "\x1b[1m"}, options=options)
        assert "\x1b" not in out + err
        assert "\u202e" not in out + err
