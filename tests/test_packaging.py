"""What is installed is what the lock says: every dependency pinned, every pin with hashes, no place named."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubesched.live.manifests import NOBODY, PORT

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


TEST_TOOLS = {"pytest", "hypothesis"}
"""Of whoever tests plugins: kubesched.testing may import them, and nobody imports those modules to run."""
NAMED_OTHERWISE = {"yaml": "pyyaml"}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: everything but the insides of functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) and not isinstance(child, FUNCTIONS):
            yield child
            yield from statements(child)


def imports(path: Path) -> set[str]:
    """The packages a module imports when it is imported itself."""
    found: set[str] = set()
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"kubesched"}


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def test_whatever_is_imported_is_installed_along(project: dict[str, Any]) -> None:
    source = ROOT / "src" / "kubesched"
    needed = {normal(requirement).replace("-", "_") for requirement in project["project"]["dependencies"]}
    missing = {
        path.relative_to(source).as_posix(): lacking
        for path in source.rglob("*.py")
        if (lacking := {name for name in imports(path) if NAMED_OTHERWISE.get(name, name) not in needed})
    }
    assert all(name.startswith("testing/") and lacking <= TEST_TOOLS for name, lacking in missing.items()), missing


def test_the_image_copies_what_there_is_and_runs_as_the_manifests_say() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert {"src/", "pyproject.toml", "requirements.lock"} <= set(copied)
    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert [source for source in copied if f"!{source}" not in ignored] == []
    assert f"USER {NOBODY}:{NOBODY}\n" in dockerfile
    assert f"EXPOSE {PORT}\n" in dockerfile
    assert dockerfile.count("--require-hashes") == 2, "nothing is installed but what the lock names"
