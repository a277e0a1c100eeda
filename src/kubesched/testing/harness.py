"""A core, ready to be asked: built from objects, driven by hand, every answer in reach.

A test of the core has three movements and no loop: what is there, what happens, what must follow.

    core = scheduler(node("n1", cpu=1), pod("a", cpu=1))
    [bind] = tick(core)
    fail(core, bind, "NotFound")
    assert core.free("n1")["cpu"] == 1000

Times are moments of the run, `at=seconds(3)`; each call happens no earlier than the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from kubesched.api.objects import KubeObject, Object
from kubesched.api.time import Duration, Instant
from kubesched.assemble import default_profile
from kubesched.core import checks
from kubesched.core.core import Core
from kubesched.core.messages import AnyEffect, Completed, Event, Observed, Tick
from kubesched.framework.hooks import Plugin
from kubesched.framework.profile import Profile
from kubesched.framework.steps import Answer, Failure


def scheduler(
    *objects: KubeObject,
    plugins: Iterable[Plugin] | None = None,
    profile: Profile | Mapping[str, Profile] | None = None,
    **settings: Any,
) -> Core:
    """A core that has seen these objects.

    Args:
        plugins: make the profile of these alone, ties going to the smallest name.
        profile: the profile, or several by name; kube-scheduler's own where neither is given.
        settings: passed on to Core.
    """
    if profile is None:
        profile = default_profile(tie="name") if plugins is None else Profile(*plugins, tie="name")
    core = Core(profile, **settings)
    for obj in objects:
        observe(core, obj)
    return core


# ── what may happen to it ────────────────────────────────────────────────────────────────────────────────────


def observe(core: Core, *objects: KubeObject, at: int = 0) -> list[AnyEffect]:
    """The API server tells of objects, or of new versions of them."""
    return _all(core, [Observed(_known(obj)) for obj in objects], at)


def vanish(core: Core, *objects: KubeObject, at: int = 0) -> list[AnyEffect]:
    """The API server tells that objects are gone."""
    return _all(core, [Observed(_known(obj), gone=True) for obj in objects], at)


def tick(core: Core, at: int = 0) -> list[AnyEffect]:
    """Time has come: due timers fire, and one pod is tried if one is ready."""
    return _all(core, [Tick()], at)


def run(core: Core, at: int = 0, *, most: int = 1000) -> list[AnyEffect]:
    """Tick until nobody is ready any more at this moment."""
    effects = tick(core, at)
    for _ in range(most):
        if not core.ready and (core.deadline is None or core.deadline > core.now):
            return effects
        effects += tick(core, at)
    raise AssertionError(f"pods were still ready after {most} ticks")


def answer(core: Core, effect: AnyEffect, obj: KubeObject | None = None, at: int = 0, **told: Any) -> list[AnyEffect]:
    """An effect was carried out; `obj` is what the API server returned."""
    return _all(core, [Completed(effect.id, Answer(obj=None if obj is None else _known(obj), **told))], at)


def fail(
    core: Core,
    effect: AnyEffect,
    reason: str = "InternalError",
    message: str = "",
    at: int = 0,
    *,
    unknown: bool = False,
    code: int = 0,
    retry_after: int = 0,
) -> list[AnyEffect]:
    """An effect was refused; or, with `unknown`, nobody can say whether it was carried out."""
    failure = Failure(reason, message, code, "unknown" if unknown else "no", Duration(retry_after))
    return _all(core, [Completed(effect.id, Answer(failure=failure))], at)


def _all(core: Core, events: Iterable[Event], at: int) -> list[AnyEffect]:
    return [effect for event in events for effect in core.handle(event, Instant(max(at, core.now)))]


def _known(obj: KubeObject) -> Object:
    return cast(Object, obj)  # the builders make no others


# ── what must hold ───────────────────────────────────────────────────────────────────────────────────────────


def verify(core: Core) -> None:
    """Check everything that must hold of a core at any moment.  Raises BrokenInvariant."""
    checks.check_deeply(core)
