"""Seven schedulers: what each prints is recorded, and what each teaches is true."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kubesched
from kubesched.api.time import seconds
from kubesched.cli.main import run
from kubesched.framework.records import State
from kubesched.sim import Simulation
from kubesched.tutorial import MODULES, stage
from kubesched.tutorial.s3_score import NodeNumber
from kubesched.tutorial.s4_prescore import NodeNumber as PreScored
from kubesched.tutorial.s5_permit import NodeNumber as Permitting
from kubesched.tutorial.s7_events import scheduler as last_scheduler

NUMBERS = range(1, len(MODULES) + 1)


def bound(number: int) -> dict[str, tuple[str, float]]:
    """Where each pod went, and when, in seconds of the run."""
    run = stage(number).run()
    start = run.simulation.world.start
    moves = [record for record in run.records if record.state is State.BOUND]
    return {record.pod.partition("/")[2]: (record.note, round((record.at - start) / 1e9, 2)) for record in moves}


@pytest.mark.parametrize("number", NUMBERS)
def test_what_a_stage_prints_is_recorded(number: int, golden) -> None:
    golden(f"stage{number}.txt", "\n".join(stage(number).lines()) + "\n")


def test_there_are_seven() -> None:
    assert [stage(number).number for number in NUMBERS] == [1, 2, 3, 4, 5, 6, 7]
    assert all(stage(number).after is stage(number - 1).module for number in NUMBERS[1:])


# ── what each teaches ────────────────────────────────────────────────────────────────────────────────────────


def test_stage_1_is_luck_and_lands_on_a_cordoned_node() -> None:
    node, at = bound(1)["pod1"]
    assert node in {f"node{i}" for i in range(9)}
    assert at == 0


def test_stage_2_turns_it_down_and_forgets_it() -> None:
    run = stage(2).run()
    assert bound(2) == {}
    assert run.core.why("default/pod1").message.startswith("0/9 nodes are available: 9 node(s) were unschedulable.")
    assert run.core.deadline is None, "nothing will ever try it again"


@pytest.mark.parametrize("number", [3, 4])
def test_stages_3_and_4_send_each_pod_to_its_number(number: int) -> None:
    assert bound(number) == {"pod1": ("node1", 0.0), "pod3": ("node3", 0.0)}


def test_stage_4_works_the_digit_out_once_per_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    before = PreScored.pre_score

    def pre_score(self, cycle, pod, nodes):
        asked.append(pod.name)
        return before(self, cycle, pod, nodes)

    monkeypatch.setattr(PreScored, "pre_score", pre_score)
    stage(4).run()
    assert asked == ["pod1", "pod3"]


def test_stage_5_binds_after_as_many_seconds_as_the_nodes_number_side_by_side() -> None:
    assert bound(5) == {"pod1": ("node1", 1.0), "pod3": ("node3", 3.0)}


def test_stage_6_is_saved_by_the_five_minute_flush_alone() -> None:
    run = stage(6).run()
    causes = [record.cause for record in run.records]
    assert causes[:4] == ["admitted", "popped", "unfit", "flushed_ready"]
    node, at = bound(6)["pod1"]
    assert node == "node10"
    assert 300 <= at <= 331, "parked for five minutes, looked at every thirty seconds"


def test_stage_7_binds_right_after_node10_arrives() -> None:
    run = stage(7).run()
    [woken] = [record for record in run.records if record.cause == "hinted_ready"]
    assert woken.note == "NodeAdd"
    node, at = bound(7)["pod1"]
    assert node == "node10"
    assert 3 <= at < 4


# ── names that do not end in a digit ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("plugin", [NodeNumber, PreScored, Permitting])
@pytest.mark.parametrize("pod", ["web", "pod-a", "7x", "pod²", "pod1"])
@pytest.mark.parametrize("node", ["control-plane", "node²", "node1"])
def test_a_name_without_a_digit_matches_nothing_and_breaks_nothing(plugin, pod: str, node: str) -> None:
    core = kubesched.Core(kubesched.Profile(plugin()))
    with Simulation(core) as simulation:
        simulation.client.create({"kind": "Node", "metadata": {"name": node}})
        simulation.client.create({"kind": "Pod", "metadata": {"name": pod}, "spec": {"containers": []}})
        simulation.run(until=seconds(12))
        assert simulation.client.node_of(pod) == node
        assert core.why(f"default/{pod}").error == ""


def test_the_last_stage_in_a_cluster_of_other_names() -> None:
    with Simulation(last_scheduler()) as simulation:
        for name in ("red", "green"):
            simulation.client.create({"kind": "Node", "metadata": {"name": name}})
        simulation.client.create({"kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": []}})
        simulation.run(until=seconds(1))
        assert simulation.client.node_of("web") in ("red", "green")


# ── they are what they say ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", NUMBERS)
def test_a_stage_imports_the_facade_and_earlier_stages_only(number: int) -> None:
    earlier = set(MODULES[: number - 1])
    for node in ast.walk(ast.parse(stage(number).source)):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            if node.module == "kubesched":
                assert names <= set(kubesched.__all__)
            elif node.module == "kubesched.tutorial":
                assert names <= earlier
            else:
                assert node.module in ("kubesched.tutorial.stage", "dataclasses")
        assert not isinstance(node, ast.Import)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_stage_is_a_few_lines(number: int) -> None:
    assert len(stage(number).source.splitlines()) <= 40


def test_a_stage_runs_as_a_program(golden) -> None:
    path = Path(stage(7).module.__file__)
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    golden("stage7.txt", ran.stdout)


def test_a_difference_is_only_about_the_program() -> None:
    difference = stage(7).difference()
    assert "+        return (Hint(\"Node\", Action.ADD | Action.UPDATE_NODE_TAINT),)" in difference
    assert "Stage 7 —" not in difference
    assert stage(1).difference() == stage(1).source


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", NUMBERS)
def test_the_command_plays_shows_and_compares(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tutorial", str(number)]) == 0
    assert capsys.readouterr().out == "\n".join(stage(number).lines()) + "\n"
    assert run(["tutorial", str(number), "--show"]) == 0
    assert capsys.readouterr().out == stage(number).source
    assert run(["tutorial", str(number), "--diff"]) == 0
    assert capsys.readouterr().out == stage(number).difference()


@pytest.mark.parametrize("number", ["0", "8", "seven", ""])
def test_a_stage_that_is_not_there_is_misuse(number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tutorial", number]) == 2
    assert "Usage: kubesched tutorial [OPTIONS] [1-7]" in capsys.readouterr().err
