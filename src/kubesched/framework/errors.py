"""The exceptions of kubesched.

KubeschedError
├── ConfigError            your configuration; carries the field path and a suggestion
│   └── UnknownPlugin
├── PluginError            a plugin raised or broke its contract; its pod backs off, others go on
├── WorldError             the API server said no, or nothing
│   └── Unreachable
└── InternalError          our bug, says so, carries the story of the pod
    ├── IllegalMove
    └── BrokenInvariant

Unfit is a value, broken is an exception: a hook returns `unschedulable("…")`; it raises when it cannot answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class KubeschedError(Exception):
    """Anything kubesched raises on purpose."""


class ConfigError(KubeschedError):
    """Something in the configuration cannot be used.

    Args:
        path: where in the configuration, as `profiles[0].plugins.score`; empty for the whole.
        problem: what is wrong, as a sentence without the path.
        remedy: what to write instead, where we can tell.
    """

    def __init__(self, path: str, problem: str, remedy: str = "") -> None:
        self.path, self.problem, self.remedy = path, problem, remedy
        where = f"{path}: " if path else ""
        super().__init__(f"{where}{problem}{f' ({remedy})' if remedy else ''}")


class UnknownPlugin(ConfigError):
    """A configuration names a plugin nobody provides."""


class PluginError(KubeschedError):
    """A plugin raised, or answered what its hook does not allow."""

    def __init__(self, plugin: str, hook: str, problem: str) -> None:
        self.plugin, self.hook, self.problem = plugin, hook, problem
        super().__init__(f"{plugin}.{hook}: {problem}")


class WorldError(KubeschedError):
    """The API server said no, or did not say anything."""


class Unreachable(WorldError):
    """No answer; whether the request was carried out is unknown."""


class InternalError(KubeschedError):
    """A bug in kubesched.  Carries the story of the pod it happened to."""

    def __init__(self, problem: str, story: Sequence[Any] = ()) -> None:
        self.story = tuple(story)
        lines = [f"{problem} (this is a bug in kubesched)", *(f"  {record}" for record in self.story)]
        super().__init__("\n".join(lines))


class IllegalMove(InternalError):
    """A pod was to move between states that no rule connects."""


class BrokenInvariant(InternalError):
    """Something that must always hold does not."""


# ── what strangers raise and answer, in words ────────────────────────────────────────────────────────────────

SHOWN_AT_MOST = 200  # characters of an answer nobody expected


def words(problem: BaseException) -> str:
    """An exception as a sentence: its own where it is ours, with its type where it is a plugin's accident."""
    try:
        text = str(problem)
    except Exception:
        return f"{type(problem).__name__}, and it cannot say why"
    return text if isinstance(problem, KubeschedError) and text else f"{type(problem).__name__}: {text}".rstrip(": ")


def shown(answer: object) -> str:
    """An answer nobody expected, as an error message shows it: whatever it does when it is asked to."""
    try:
        text = repr(answer)
    except Exception:
        return f"a {type(answer).__name__} that cannot be shown"
    return text if len(text) <= SHOWN_AT_MOST else f"{text[: SHOWN_AT_MOST - 1]}…"
