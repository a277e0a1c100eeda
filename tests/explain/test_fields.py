"""A Decision as JSON: every account of one is as the schema says, and so are kube-scheduler's recorded ones."""

import gzip
import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from tests.explain.validating import faults

from kubesched.core.core import Core
from kubesched.explain.fields import fields
from kubesched.framework.status import Status
from kubesched.testing import node, pod, scheduler

SCHEMA = json.loads(resources.files("kubesched.explain").joinpath("decision.schema.json").read_text())
DATA = Path(__file__).parents[1] / "parity" / "data"


def crowded() -> Core:
    return scheduler(node("n1", cpu=1), node("n2", cpu=4), pod("low", cpu=3, on="n2", priority=0))


class Broken:
    def filter(self, cycle, pod, node) -> Status:
        raise ValueError("no idea")


@pytest.mark.parametrize(
    ("core", "asked", "expected"),
    [
        (crowded(), pod(cpu=1), {"chosen", "best", "scores", "totals"}),
        (crowded(), pod(cpu=2), {"message", "rejected", "postFilter"}),
        (crowded(), pod(cpu=2, priority=5), {"message", "rejected", "postFilter"}),
        (crowded(), pod(claims=["c"]), {"message", "preFilter", "postFilter"}),
        (scheduler(), pod(), {"message"}),
        (scheduler(node("n1"), plugins=[Broken()]), pod(), {"error"}),
    ],
)
@pytest.mark.parametrize("exhaustive", [False, True])
def test_every_account_is_as_the_schema_says(core: Core, asked: Any, expected: set[str], exhaustive: bool) -> None:
    told = json.loads(json.dumps(fields(core.what_if(asked, exhaustive=exhaustive))))

    assert list(faults(told, SCHEMA)) == []
    assert expected <= told.keys()


def test_victims_are_told() -> None:
    told = fields(crowded().what_if(pod(cpu=2, priority=5)))

    assert told["postFilter"] == {"code": "Success", "nominatedNode": "n2", "victims": ["default/low"]}


@pytest.mark.parametrize("file", sorted(DATA.glob("*.gz")), ids=lambda file: file.name.partition(".")[0])
def test_recorded_answers_are_as_the_schema_says(file: Path) -> None:
    with gzip.open(file, "rt") as lines:
        for line in list(lines)[::4]:
            for decision in json.loads(line)["answer"]["decisions"]:
                assert list(faults(decision, SCHEMA)) == []


@pytest.mark.parametrize(
    "spoilt",
    [
        {"feasible": []},
        {"pod": "a", "feasible": [3], "message": ""},
        {"pod": "a", "feasible": [], "message": "", "more": 1},
        {"pod": "a", "feasible": []},
        {"pod": "a", "feasible": ["n"], "chosen": "n", "best": ["n"], "message": "and yet"},
        {"pod": "a", "feasible": [], "message": "", "rejected": {"n": {"code": "Maybe", "reasons": []}}},
        {"pod": "a", "feasible": [], "message": "", "scores": {"n": {"P": 1.5}}},
    ],
)
def test_the_schema_tells_what_is_no_account(spoilt: Any) -> None:
    assert list(faults(spoilt, SCHEMA))
