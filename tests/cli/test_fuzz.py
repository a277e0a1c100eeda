"""kubesched fuzz, as people use it."""

from pathlib import Path

import pytest
from tests.fuzz.breakers import BREAKERS

from kubesched.fuzz.plan import read_plan

KEPT = Path(__file__).parents[1] / "scenarios" / "regressions" / "s1b-seed-5659.yaml"


def test_seeds_are_played_and_counted(kubesched) -> None:
    ran = kubesched("fuzz", "--seeds", "1..2", "--jobs", "1")
    assert ran.status == 0
    assert ran.out.startswith("seeds from 1 at ")
    assert "2 seeds from 1" in ran.out
    assert "0 broken laws" in ran.out


def test_a_kept_run_is_played_again(kubesched) -> None:
    ran = kubesched("fuzz", str(KEPT))
    assert ran.status == 0
    assert "no law broken" in ran.out


def test_time_is_up_before_it_begins(kubesched) -> None:
    ran = kubesched("fuzz", "--seed", "1..", "--minutes", "0", "--jobs", "1")
    assert ran.status == 0
    assert "0 seeds from 1" in ran.out


def test_what_breaks_a_law_is_made_small_and_kept(kubesched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKERS["S3"](monkeypatch)
    ran = kubesched("fuzz", "--seed", "5", "--jobs", "1", "--into", "kept", "--faults", "people")
    assert ran.status == 1
    [plan, journal] = sorted(tmp_path.joinpath("kept").iterdir(), reverse=True)
    assert (plan.name, journal.name) == ("s3-seed-5.yaml", "s3-seed-5.jsonl")
    assert f"to {read_plan(plan).size} parts" in ran.out
    assert "replay: kubesched fuzz --seeds 5 --mode random --faults people" in ran.out
    assert read_plan(plan).broke == "S3"
    again = kubesched("fuzz", str(plan))
    assert again.status == 1
    assert "broke S3" in again.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seeds", "5..3"], "ends before it begins"),
        (["--seeds", "many"], "is no range of seeds"),
        (["--faults", "weather"], "is no fault; there are: requests, news, crashes, people, all, none"),
        (["nowhere.yaml"], "nowhere.yaml: cannot be read"),
    ],
)
def test_mistakes_are_told(kubesched, arguments: list[str], words: str) -> None:
    ran = kubesched("fuzz", *arguments)
    assert ran.status == 2
    assert words in ran.err


def test_a_file_that_is_no_plan(kubesched, tmp_path: Path) -> None:
    tmp_path.joinpath("other.yaml").write_text("cluster: 7\n", encoding="utf-8")
    ran = kubesched("fuzz", "other.yaml")
    assert ran.status == 2
    assert "not the plan of a run" in ran.err
