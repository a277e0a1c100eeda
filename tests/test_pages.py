"""The pages of the manual say what happens: their commands are run, and print what the page says they print."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pages import matches, play_page

ROOT = Path(__file__).parents[1]
CANDIDATES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
PAGES = [page for page in CANDIDATES if "```console" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_comes_true(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    wrong = play_page(page, tmp_path, golden=bool(request.config.getoption("golden")))
    assert not wrong, "\n".join(["", *wrong, "`make golden` writes what happened into the page, for review"])


@pytest.mark.parametrize(
    ("expected", "happened", "same"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("", "b\n", False),
        ("took …s\n", "took 1.5s\n", True),
        ("a\n…\nz\n", "a\nb\nc\nz\n", True),
        ("a\n…\nz\n", "a\nz\n", True),
        ("a\n…\nz\n", "a\nb\n", False),
        ("a.b\n", "axb\n", False),
    ],
)
def test_gaps_stand_for_anything_and_nothing_else_does(expected: str, happened: str, same: bool) -> None:
    assert matches(expected, happened) is same


def test_a_page_that_says_something_else_is_caught(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```text said.txt\nhello\n```\n```console\n$ cat said.txt\ngoodbye\n```\n")
    [wrong] = play_page(page, tmp_path)
    assert wrong.startswith("page.md:5: $ cat said.txt")
    assert play_page(page, tmp_path, golden=True) == []
    assert play_page(page, tmp_path) == []
