"""The search for victims, small: whom it finds, and what it says when it finds nobody."""

import pytest

from kubesched.bench import preempting
from kubesched.bench.preempting import full, measure
from kubesched.bench.throughput import WrongOutcome
from kubesched.core.core import Core


def test_victims_are_found_and_make_room() -> None:
    search = measure(12, 4)
    assert (search.nodes, search.pods_a_node, search.victims) == (12, 4, 1)
    assert search.milliseconds > 0


def test_nobody_found_leaves_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_plugin(nodes: int, pods_a_node: int) -> Core:
        core = full(nodes, pods_a_node)
        for profile in core.profiles.values():
            profile.post_filter = ()
        return core

    monkeypatch.setattr(preempting, "full", without_plugin)
    with pytest.raises(WrongOutcome, match="the pod found nobody to take the place of"):
        measure(12, 4)
