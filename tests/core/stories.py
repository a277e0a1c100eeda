"""Stories of pods that fit nowhere, and of what happens then: whoever is queued again is the end of it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import pytest

from kubesched.api.objects import KubeObject, Pod
from kubesched.framework.records import State
from kubesched.testing import observe, run, scheduler, vanish

News = tuple[Literal["+", "-"], KubeObject]


class Story(NamedTuple):
    """What is there, who is turned down, what happens, and who is queued again."""

    objects: list[KubeObject]
    pods: list[Pod]
    news: list[News]
    woken: set[str]


def story(*objects: KubeObject, pods: list[Pod], news: list[News], woken: str = "", name: str) -> Any:
    return pytest.param(Story(list(objects), pods, news, set(woken.split())), id=name)


def play(told: Story) -> set[str]:
    """Returns who is queued again."""
    core = scheduler(*told.objects, *told.pods)
    run(core)
    asleep = {one.name for one in told.pods if core.state(one.key) in (State.PARKED, State.GATED)}
    assert asleep == {one.name for one in told.pods}, "all are turned down at first"
    for verb, obj in told.news:
        (observe if verb == "+" else vanish)(core, obj)
    return {one.name for one in told.pods if core.state(one.key) in (State.ACTIVE, State.BACKOFF)}
