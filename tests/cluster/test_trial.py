"""A trial changes the table and leaves no trace."""

from __future__ import annotations

import pytest

from kubesched.cluster.mirror import Mirror
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.trial import Trial
from kubesched.testing import node, pod


@pytest.fixture
def mirror() -> Mirror:
    mirror = Mirror()
    mirror.observe(node("n1", cpu=4))
    for name in "abc":
        mirror.observe(pod(name, cpu=1, on="n1"))
    return mirror


def on_n1(mirror: Mirror) -> list[str]:
    return [info.name for info in mirror.table.pods[mirror.table.row_of["n1"]]]


def held(mirror: Mirror, name: str) -> PodInfo:
    return mirror.placed[f"uid-of-{name}"].info


def test_leaving_a_trial_puts_everybody_back_in_their_order(mirror):
    with Trial(mirror.table) as trial:
        trial.evict(held(mirror, "a"), "n1")
        trial.place(PodInfo(pod("z")), "n1")
        assert sorted(on_n1(mirror)) == ["b", "c", "z"]

    assert on_n1(mirror) == ["a", "b", "c"]


def test_a_trial_that_ends_in_an_error_is_undone_too(mirror):
    with pytest.raises(RuntimeError), Trial(mirror.table) as trial:
        trial.evict(held(mirror, "a"), "n1")
        raise RuntimeError("a plugin's accident")

    assert on_n1(mirror) == ["a", "b", "c"]


def test_the_log_goes_on_while_a_trial_goes_back(mirror):
    with Trial(mirror.table) as trial:
        trial.evict(held(mirror, "a"), "n1")
        mark = trial.checkpoint()
        trial.evict(held(mirror, "b"), "n1")
        trial.rollback(mark)

        assert [(move.placed, move.pod.name) for move in trial.log] == [(False, "a"), (False, "b"), (True, "b")]


def test_a_trial_inside_a_trial_gives_back_what_the_outer_one_made(mirror):
    with Trial(mirror.table) as outer:
        outer.evict(held(mirror, "a"), "n1")
        before = on_n1(mirror)
        with Trial(mirror.table) as inner:
            inner.evict(held(mirror, "b"), "n1")
            inner.place(PodInfo(pod("z")), "n1")
        assert on_n1(mirror) == before

    assert on_n1(mirror) == ["a", "b", "c"]


def test_a_trial_leaves_no_generation_behind(mirror):
    table = mirror.table
    before = table.clock, table.generation.tolist()

    with Trial(table) as trial:
        trial.place(PodInfo(pod("z")), "n1")
        assert table.generation[0] > before[1][0]

    assert (table.clock, table.generation.tolist()) == before
