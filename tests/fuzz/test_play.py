"""A seed is a run: the same one each time, on any machine, and through the wire as well."""

import os
import subprocess
import sys

import pytest
from tests.fuzz.breakers import BREAKERS

from kubesched.fuzz.drawing import draw
from kubesched.fuzz.plan import as_yaml, read_plan
from kubesched.fuzz.play import play
from kubesched.fuzz.shrink import Shrinker

DIRECT, ALONE, ELECTED = 3, 2, 6  # seeds: without the wire, through it, and with a Lease
PRINT = "import sys; from kubesched.fuzz.drawing import draw; from kubesched.fuzz.play import play; "
PRINT += "print([play(draw(int(seed)), tracing=True).trace for seed in sys.argv[1:]])"


def test_the_seeds_are_what_they_are_called() -> None:
    assert [draw(seed).custom.wire for seed in (DIRECT, ALONE, ELECTED)] == ["", "alone", "elected"]


@pytest.mark.parametrize("seed", [DIRECT, ALONE, ELECTED])
def test_a_seed_is_played_the_same_twice(seed: int) -> None:
    first, second = (play(draw(seed), tracing=True) for _ in range(2))
    assert first == second
    assert first.trace != 0
    assert first.broken is None


@pytest.mark.slow
def test_no_seed_depends_on_how_strings_are_hashed() -> None:
    traces = set()
    for hashed in ("0", "1", "random"):
        command = [sys.executable, "-c", PRINT, str(DIRECT), str(ALONE), str(ELECTED)]
        environment = {**os.environ, "PYTHONHASHSEED": hashed}
        traces.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(traces) == 1


def test_a_plan_is_a_file(tmp_path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(as_yaml(draw(ELECTED)), encoding="utf-8")
    assert read_plan(path) == draw(ELECTED)


def test_what_does_not_matter_is_taken_away() -> None:
    with pytest.MonkeyPatch.context() as patch:
        BREAKERS["S4"](patch)
        small = Shrinker(draw(DIRECT), "S4", plays=200).shrink()
        assert play(small).broken is not None
    assert len(small.cluster) == 1  # a node
    assert len(small.happenings) == 1  # and a pod
    assert small.mishaps == ()
    assert play(small).broken is None
