"""Every example runs, is short, and prints what it printed when somebody last looked."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("[0-9]*.py"))
LINES_AT_MOST = 60


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path: Path, golden: Callable[[str, str], None], tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONHASHSEED": "random", "PYTHONWARNINGS": "error", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    golden(f"{path.stem}.txt", done.stdout)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_what_it_shows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES_AT_MOST
    assert ast.get_docstring(ast.parse(text))


def test_examples_are_numbered_without_gaps() -> None:
    numbers = [int(path.name.partition("-")[0]) for path in EXAMPLES]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1
