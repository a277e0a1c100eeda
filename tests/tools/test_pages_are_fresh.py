"""The pages that are made from the program say what the program says now."""

import re
from pathlib import Path

import pytest
from tools.docs import ROOT, lifecycle_page, main, pages

from kubesched.core.lifecycle import MOVES
from kubesched.framework.records import State

PAGES = pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_fresh(name: str) -> None:
    written = ROOT / name
    assert written.exists(), f"{name} is missing; `make docs` writes it"
    assert written.read_text(encoding="utf-8") == PAGES[name](), f"{name} is stale; `make docs` writes it again"


def test_no_page_of_the_tutorial_is_left_over() -> None:
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "tutorial").glob("*.md")}
    assert there == {name for name in PAGES if name.startswith("docs/tutorial/")}


def test_the_picture_has_every_state_and_every_move() -> None:
    page = lifecycle_page()
    picture = page[page.index("```mermaid") : page.index("```\n\nThree moves")]
    assert all(re.search(rf"\b{state.value}\b", picture) for state in State if state is not State.GONE)
    drawn = set(re.findall(r"[a-z_]{4,}", picture)) | set(re.findall(r"^- `(\w+)`", page, re.MULTILINE))
    assert {cause for _, cause in MOVES} <= drawn


def test_the_table_has_every_move() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \| \*\*(\w+)\*\* \|", lifecycle_page(), re.MULTILINE)
    told = {(state, cause, target) for cause, states, target in rows for state in states.split(", ")}
    assert told == {(state.value, cause, target.value) for (state, cause), target in MOVES.items()}


def test_only_what_is_asked_for_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("tools.docs.ROOT", tmp_path)
    main("lifecycle")
    assert capsys.readouterr().out == "docs/lifecycle.md\n"
    assert [path.name for path in tmp_path.rglob("*.md")] == ["lifecycle.md"]
