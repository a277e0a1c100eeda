"""`kubesched conformance`: what it prints, and when it fails."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubesched.cli.main import FAILED, MISUSED, run

DATA = Path(__file__).parents[1] / "parity" / "data"


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., Path]:
    """`recorded("taints", 3)`: a file with the first three cases of a family; `change` may spoil an answer."""

    def write(family: str, count: int, change: Callable[[dict[str, Any]], object] = lambda decision: None) -> Path:
        with gzip.open(DATA / f"{family}.jsonl.gz", "rt") as file:
            records = [json.loads(next(file)) for _ in range(count)]
        change(records[0]["answer"]["decisions"][0])
        path = tmp_path / f"{family}.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path

    return write


def test_agreement_is_counted_per_family(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["conformance", str(recorded("taints", 3)), str(recorded("volumes", 2)), "--jobs", "1"]) == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1][:3] == ["taints", "3", "3"]
    assert lines[2][:3] == ["volumes", "2", "2"]
    assert lines[-1] == ["5", "of", "5", "cases", "agree"]


@pytest.mark.parametrize("options", [["--tier", "scalar"], ["--tier", "vector"], ["--boards", "on"], ["--jobs", "2"]])
def test_every_way_to_ask_agrees(recorded: Any, options: list[str]) -> None:
    assert run(["conformance", str(recorded("mixed", 21)), *options]) == 0


def test_a_difference_fails_and_says_where(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    spoilt = recorded("preemption", 2, lambda decision: decision.update(feasible=["nowhere"]))

    assert run(["conformance", str(spoilt), "--jobs", "1"]) == 1

    out = capsys.readouterr().out
    assert "1 of 2 cases agree" in out
    assert 'differs  preemption-1  team-a/p0  feasible: expected ["nowhere"], got nothing' in out


def test_only_the_first_differences_are_shown(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def spoil(decision: dict[str, Any]) -> None:
        decision["totals"] = {f"node-{i}": i for i in range(7)}

    assert run(["conformance", str(recorded("preemption", 1, spoil)), "--show", "2", "--jobs", "1"]) == 1

    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("differs")]
    assert len(told) == 3
    assert "node node-1" in told[1]
    assert told[-1] == "differs  … and 5 more in preemption"


def test_json_for_machines(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    spoilt = recorded("preemption", 2, lambda decision: decision.update(message="\x1b[31mred"))

    assert run(["conformance", str(spoilt), "--json"]) == 1

    told = json.loads(capsys.readouterr().out)
    assert (told["cases"], told["cases_agree"]) == (2, 1)
    [family] = told["families"]
    assert family["family"] == "preemption"
    assert family["differences"]["count"] == 1
    [first] = family["differences"]["first"]
    assert first.keys() == {"case", "pod", "node", "plugin", "what", "expected", "got"}
    assert (first["case"], first["what"], first["expected"]) == ("preemption-1", "message", "\x1b[31mred")


def test_what_a_file_says_does_not_reach_the_terminal_raw(recorded: Any, capsys: pytest.CaptureFixture[str]) -> None:
    spoilt = recorded("preemption", 1, lambda decision: decision.update(pod="\x1b[31mred"))

    assert run(["conformance", str(spoilt), "--jobs", "1"]) == 1

    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"), [("", "there is no case in it"), ("{\n", ":1: not JSON"), ("{}\n", "missing required field")]
)
def test_a_file_of_something_else_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, said: str
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(content)

    assert run(["conformance", str(path)]) == FAILED

    error = capsys.readouterr().err
    assert str(path) in error
    assert said in error
    assert "Traceback" not in error


def test_a_file_and_a_known_tier_are_asked_for(recorded: Any) -> None:
    assert run(["conformance"]) == MISUSED
    assert run(["conformance", str(recorded("taints", 1)), "--tier", "third"]) == MISUSED
    assert run(["conformance", str(recorded("taints", 1)), "--show", "-1"]) == MISUSED
