"""Seven runnable schedulers, each a few lines longer than the last.

Each is the real core with more of it switched on.  A stage imports the façade and the stage before it, nothing
else: what the tutorial needs, the façade has.
"""

from __future__ import annotations

from importlib import import_module

from kubesched.tutorial.stage import Stage

MODULES = ("s1_random", "s2_filter", "s3_score", "s4_prescore", "s5_permit", "s6_queue", "s7_events")


def stage(number: int) -> Stage:
    """The stage of a number, 1 to 7."""
    found: Stage = import_module(f"kubesched.tutorial.{MODULES[number - 1]}").STAGE
    return found


__all__ = ["MODULES", "Stage", "stage"]
