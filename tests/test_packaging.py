"""What is installed is what the lock says: every dependency pinned, every pin with hashes, no place named."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pins() -> dict[str, str]:
    """Each locked requirement by normalised name, with everything that is said of it."""
    blocks = re.split(r"\n(?=[a-zA-Z])", LOCK.read_text(encoding="utf-8"))[1:]
    return {normal(block): block for block in blocks}


def normal(requirement: str) -> str:
    """The name of a requirement as an index spells it."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_every_dependency_is_locked(project: dict[str, Any], pins: dict[str, str]) -> None:
    wanted = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["dev"],
        *project["build-system"]["requires"],
    ]
    assert [name for name in map(normal, wanted) if name not in pins] == []


def test_every_pin_is_exact_and_has_hashes(pins: dict[str, str]) -> None:
    loose = [name for name, text in pins.items() if "==" not in text.splitlines()[0] or "--hash=sha256:" not in text]
    assert pins
    assert loose == []


def test_the_lock_names_no_place() -> None:
    options = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if line.startswith("-")]
    assert options == []
    assert not re.search(r"://|file:|(?<!\S)/", LOCK.read_text(encoding="utf-8"))


def test_no_extra_promises_what_nothing_uses(project: dict[str, Any]) -> None:
    assert list(project["project"]["optional-dependencies"]) == ["dev"]
