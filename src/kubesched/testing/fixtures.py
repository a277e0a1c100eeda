"""Fixtures for pytest; import the ones you want into a conftest.py.

from kubesched.testing.fixtures import cluster as cluster
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubesched.core.core import Core
from kubesched.testing.harness import scheduler, verify


@pytest.fixture
def cluster() -> Iterator[Callable[..., Core]]:
    """`cluster(node("n1"), pod("a"))` is a core that has seen these objects.

    When the test is over every core it made is checked to the bottom, so every test is a test of the invariants.
    """
    made: list[Core] = []

    def make(*objects: Any, **settings: Any) -> Core:
        core = scheduler(*objects, **settings)
        made.append(core)
        return core

    yield make
    for core in made:
        verify(core)
