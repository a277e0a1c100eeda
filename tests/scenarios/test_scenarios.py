"""The pages and files in this folder are played, and what they say came true comes true.

Every scenario is also a test of the journal: it is written, folded into a scheduler built from its head, and must give
the same effects to the byte.  A new `.md` or `.yaml` anywhere below is picked up by itself.
"""

from pathlib import Path

import pytest

from kubesched.cli.replay import core_of
from kubesched.drive.journal import Reading, replay
from kubesched.sim.literate import Chronicle, read_page
from kubesched.sim.play import Played, play
from kubesched.sim.reading import read_scenario
from kubesched.sim.scenario import Scenario
from kubesched.sim.world import START

HERE = Path(__file__).parent
PAGES = [*sorted(HERE.rglob("*.md")), HERE.parents[1] / "docs" / "scenarios.md"]
PLANS = "regressions"  # of the fuzzer, and played by test_regressions.py
FILES = sorted(path for path in HERE.rglob("*.yaml") if path.parent.name != PLANS)


def played(scenario: Scenario, journal: Path) -> tuple[Played, str]:
    """Play a scenario, replay its journal, and tell what happened."""
    chronicle = Chronicle(START)
    run = play(scenario, journal=journal, listeners=[chronicle])
    reading = Reading(journal)
    assert replay(reading, core_of(reading.head, journal, Path(scenario.plugins_from))) == run.report.events
    return run, chronicle.text()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_comes_true(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    page = read_page(path)
    answers, expected = [], []
    for number, example in enumerate(page.examples):
        run, told = played(example.scenario, tmp_path / f"{number}.jsonl")
        assert run.ok, f"{path.name}:{example.line}: {[*run.missed, *run.impossible]}"
        if example.answer is not None:
            answers.append(told)
            expected.append(example.answer)
    if request.config.getoption("golden"):
        path.write_text(page.with_answers(answers), encoding="utf-8")
    else:
        assert answers == expected


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_comes_true(path: Path, tmp_path: Path) -> None:
    run, _ = played(read_scenario(path), tmp_path / "run.jsonl")
    assert run.ok, [*run.missed, *run.impossible]
