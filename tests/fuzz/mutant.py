"""What a mutant is, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.fuzz import needing

from kubesched.fuzz.drawing import Mode
from kubesched.fuzz.plan import Plan

Patch = pytest.MonkeyPatch


def nothing(*given: Any, **named: Any) -> None:
    """What is not done."""


class Mutant(NamedTuple):
    """A bug and how it is brought back; `needs` says which plans can show it at all."""

    name: str
    story: str
    bring_back: Callable[[Patch], None]
    needs: Callable[[Plan], bool]
    mode: Mode


MUTANTS: dict[str, Mutant] = {}


def mutant(
    name: str, story: str, needs: Callable[[Plan], bool] = needing.anything, mode: Mode = "random"
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def listed(bring_back: Callable[[Patch], None]) -> Callable[[Patch], None]:
        assert name not in MUTANTS, f"{name} is there twice"
        MUTANTS[name] = Mutant(name, story, bring_back, needs, mode)
        return bring_back

    return listed
