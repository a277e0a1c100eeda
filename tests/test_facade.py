"""The façade: its names lead somewhere, are few, and cost nothing before they are used."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import kubesched

TREE = ast.parse(Path(kubesched.__file__).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", kubesched.__all__)
def test_a_name_is_what_it_is_at_home(name: str) -> None:
    assert getattr(kubesched, name) is getattr(import_module(kubesched._HOME_OF[name]), name)


def test_checkers_and_readers_see_the_same_names() -> None:
    [checked] = [node for node in TREE.body if isinstance(node, ast.If)]
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    declared = {alias.name: node.module for node in imports for alias in node.names}
    assert declared == kubesched._HOME_OF
    assert sorted(kubesched.__all__) == sorted(declared)
    assert dir(kubesched) == sorted(kubesched.__all__)


def test_they_are_few() -> None:
    assert len(kubesched.__all__) <= 40


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'kubesched' has no attribute 'Scheduler'"):
        _ = kubesched.Scheduler


def test_nothing_is_imported_before_it_is_used() -> None:
    program = "import sys, kubesched; print(sorted(name for name in sys.modules if name.startswith('kubesched.')))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
