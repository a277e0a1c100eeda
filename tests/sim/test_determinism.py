"""The same seed plays the same run: whatever order sets iterate in, whoever asks questions, boards or none."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubesched.api.objects import Pod
from kubesched.cluster.trial import Trial
from kubesched.core.core import Core
from kubesched.drive.tap import Moment
from kubesched.explain.fields import fields
from kubesched.sim import play as playing
from kubesched.sim.play import play
from kubesched.sim.reading import read_scenario
from kubesched.telemetry.laps import wrap_hooks
from kubesched.testing import pod

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "tests" / "scenarios" / "everything.yaml"
PLAY = f"""
import sys
from pathlib import Path
from kubesched.sim.play import play
from kubesched.sim.reading import read_scenario
play(read_scenario(Path({str(SCENARIO)!r})), journal=sys.argv[1])
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The journal of the run nobody disturbs."""
    path = tmp_path_factory.mktemp("run") / "run.jsonl"
    played = play(read_scenario(SCENARIO), journal=path)
    assert played.ok
    report = played.report
    assert report.bound > 150, "the scenario is worth its name"
    assert len(report.evicted) > 10
    assert report.failures > 50
    return path.read_bytes()


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_the_same_seed_gives_the_same_effects_whatever_sets_iterate_like(
    hash_seed: str, undisturbed: bytes, tmp_path: Path
) -> None:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", PLAY, tmp_path / "run.jsonl"], check=True, env=env, cwd=tmp_path)
    assert (tmp_path / "run.jsonl").read_bytes() == undisturbed


def test_another_seed_is_another_run(undisturbed: bytes, tmp_path: Path) -> None:
    play(read_scenario(SCENARIO), seed=12, journal=tmp_path / "run.jsonl")
    assert (tmp_path / "run.jsonl").read_bytes() != undisturbed


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────

STRANGERS = (
    pod("small", cpu="10m"),
    pod("huge", cpu=1000, priority=10_000),
    pod("middle", cpu=3, memory="4Gi", labels={"app": "web"}, priority=5_000),
    pod("lonely", labels={"app": "lonely"}, tolerations=[""]),
    pod("db", claims=["data"], cpu=1),
)


def ask_what_if(core: Core, moment: Moment) -> None:
    for stranger in STRANGERS:
        core.what_if(stranger)
    core.what_if(STRANGERS[moment.position % len(STRANGERS)], exhaustive=True)
    waiting: list[Pod] = [each for each in core.mirror.pods.values() if not each.spec.node_name]
    for each in waiting[:3]:
        core.what_if(each)
    with Trial(core.mirror.table) as trial:
        for tracked in list(core.mirror.placed.values())[:5]:
            if tracked.node in core.mirror.table.row_of:
                trial.evict(tracked.info, tracked.node)
        core.what_if(STRANGERS[2], given=trial)


def ask_about_everything(core: Core, moment: Moment) -> None:
    for each in list(core.mirror.pods.values()):
        key = each.key
        decision = core.why(key)
        if decision is not None:
            assert decision.message is not None
            assert decision.evaluated >= 0
            assert decision.best == tuple(sorted(decision.best))
        assert len(core.story(key)) >= 0
        core.state(key)
    for name in core.mirror.table.row_of:
        core.free(name)
    assert core.waiting() is not None


@pytest.mark.parametrize(
    "ask", [ask_what_if, ask_about_everything], ids=["what-if", "everything-else"]
)
def test_questions_in_the_middle_of_a_run_change_nothing_after_it(
    ask: Callable[[Core, Moment], None], undisturbed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    cores: list[Core] = []
    build = playing.core_of

    def keep(*args: object) -> Core:
        cores.append(build(*args))
        return cores[-1]

    def listener(moment: Moment) -> None:
        nonlocal asked
        if moment.position % 7 == 0:
            asked += 1
            ask(cores[0], moment)

    monkeypatch.setattr(playing, "core_of", keep)
    play(read_scenario(SCENARIO), journal=tmp_path / "run.jsonl", listeners=[listener])
    assert asked > 200
    assert (tmp_path / "run.jsonl").read_bytes() == undisturbed


def without_boards(core: Core) -> None:
    core.boards = None


def some_dropped(core: Core) -> None:
    if core.boards is not None and core.position % 3 == 0:
        core.boards.drop()


def decided(
    path: Path, monkeypatch: pytest.MonkeyPatch, disturb: Callable[[Core], None]
) -> tuple[bytes, list[dict[str, Any]]]:
    """A run's journal, and every decision of it in full."""
    cores: list[Core] = []
    decisions: list[dict[str, Any]] = []
    build = playing.core_of

    def keep(*args: object) -> Core:
        cores.append(build(*args))
        disturb(cores[-1])
        return cores[-1]

    def listener(moment: Moment) -> None:
        decisions.extend(fields(decision) for decision in cores[0].decisions.fresh)
        disturb(cores[0])

    with monkeypatch.context() as patch:
        patch.setattr(playing, "core_of", keep)
        play(read_scenario(SCENARIO), journal=path, listeners=[listener])
    return path.read_bytes(), decisions


@pytest.mark.parametrize("disturb", [without_boards, some_dropped])
def test_boards_change_no_effect_and_no_decision(
    disturb: Callable[[Core], None], undisturbed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, usual = decided(tmp_path / "usual.jsonl", monkeypatch, lambda core: None)
    assert journal == undisturbed
    assert len(usual) > 100
    assert decided(tmp_path / "run.jsonl", monkeypatch, disturb) == (journal, usual)


def test_timing_every_hook_changes_no_effect(
    undisturbed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, laps = playing.core_of, Counter[str]()

    def timed(*args: object) -> Core:
        core = build(*args)
        for profile in core.profiles.values():
            for plugin in profile.plugins:
                wrap_hooks(plugin, lambda hook, lasted, *_: laps.update([hook]))
        return core

    monkeypatch.setattr(playing, "core_of", timed)
    play(read_scenario(SCENARIO), journal=tmp_path / "run.jsonl")
    assert laps["filter"] + laps["filter_all"] > 100
    assert (tmp_path / "run.jsonl").read_bytes() == undisturbed


def test_checks_change_no_effect(undisturbed: bytes, tmp_path: Path) -> None:
    play(read_scenario(SCENARIO), journal=tmp_path / "run.jsonl", checks=False)
    assert (tmp_path / "run.jsonl").read_bytes() == undisturbed
