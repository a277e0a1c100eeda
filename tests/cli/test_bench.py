"""kubesched bench: one JSON object a line, or tables for people."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Said = Callable[..., str]

FIELDS = {
    "workload", "nodes", "pods", "placed", "seconds", "pods_per_second",
    "p50_us", "p99_us", "percentage_of_nodes_scored", "boards",
}  # fmt: skip
SMALL = ["--nodes", "20", "--pods", "12", "--runs", "1"]


@pytest.fixture
def said(kubesched: Any) -> Said:
    def say(*args: str) -> str:
        ran = kubesched("bench", *args)
        assert ran.status == 0, ran.err
        return str(ran.out)

    return say


def test_json_is_one_object(said: Said) -> None:
    figures = json.loads(said("--workload", "basic", "--json", *SMALL))
    assert figures.keys() >= FIELDS
    assert (figures["workload"], figures["nodes"], figures["pods"], figures["placed"]) == ("basic", 20, 12, 12)
    assert figures["percentage_of_nodes_scored"] == 100
    assert figures["boards"] is True


def test_several_workloads_are_one_object_a_line(said: Said) -> None:
    lines = said("--workload", "spread", "--workload", "unique", "--json", "--boards", "off", *SMALL).splitlines()
    assert [json.loads(line)["workload"] for line in lines] == ["spread", "unique"]
    assert not any(json.loads(line)["boards"] for line in lines)


def test_a_table_names_machine_and_goal(said: Said) -> None:
    text = said("--workload", "basic", *SMALL)
    assert "NumPy" in text
    assert "basic" in text
    assert "10.0" in text


def test_a_profile_names_every_hook_that_was_called(said: Said) -> None:
    text = said("--workload", "spread", "--profile", *SMALL)
    assert "where the time goes" in text
    assert "NodeResourcesFit" in text
    assert "pre_filter" in text
    lines = said("--workload", "spread", "--profile", "--json", *SMALL).splitlines()
    hooks = json.loads(lines[1])["profile"]
    assert {"plugin", "hook", "calls", "total_us", "p50_us", "p99_us"} <= hooks[0].keys()


def test_the_search_for_victims_has_a_section(said: Said) -> None:
    assert "preemption:" in said("--workload", "preemption", "--nodes", "10")
    assert json.loads(said("--workload", "preemption", "--nodes", "10", "--json"))["victims"] == 2


def test_pods_that_do_not_fit_are_an_error_without_a_figure(kubesched: Any) -> None:
    ran = kubesched("bench", "--workload", "antiaffinity", "--nodes", "3", "--pods", "5")
    assert ran.status != 0
    assert "2 of 5 pods found no place" in ran.err
    assert "pods/s" not in ran.out
