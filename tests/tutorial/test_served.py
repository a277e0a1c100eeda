"""A stage on an API server tells the story it tells in virtual time, and says how to go on."""

from __future__ import annotations

import re

import pytest

from kubesched.cli.main import run
from kubesched.tutorial import stage
from kubesched.tutorial.served import ServedRun


def sentences(lines: list[str]) -> list[str]:
    """What is told, without the times."""
    return [re.sub(r"^ *[0-9.]+s  ", "", line) for line in lines]


def test_the_story_is_the_same_as_in_virtual_time() -> None:
    served = sentences(list(ServedRun(stage(7), speed=20).lines()))
    played = sentences(list(stage(7).lines()))
    assert sorted(served[1:]) == sorted(played), "what happens at once may be told in any order"


@pytest.mark.parametrize("number", [3, 4, 5])
def test_two_pods_come_to_where_they_come_in_virtual_time(number: int) -> None:
    served = list(ServedRun(stage(number), speed=20).lines())
    assert served[-2:] == ["pod1 is on node1", "pod3 is on node3"]


def test_the_pod_is_bound_when_the_node_comes() -> None:
    lines = list(ServedRun(stage(7), speed=20).lines())
    told = sentences(lines)
    assert told.index("node10 is added, open to pods") < told.index("default/pod1 is bound to node10")
    assert told.index("default/pod1 does not fit, and is parked") < told.index("node10 is added, open to pods")


def test_a_pod_nobody_places_is_not_waited_for_without_end() -> None:
    assert list(ServedRun(stage(2), speed=60).lines())[-1].startswith("pod1 is on no node: 0/")


def test_the_command_says_how_to_keep_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tutorial", "7", "--served", "--speed", "20"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^An API server is up at https://127\.0\.0\.1:\d+,", said)
    assert "pod1 is on node10" in said
    assert said.rstrip().endswith(" up")
