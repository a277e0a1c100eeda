"""Recorded answers: a test compares with them, and `pytest --golden` writes them again, for review.

Whatever is worth reading as a whole (an explanation, the story of a pod, a page) is easier to record and look at than
to pick apart in assertions.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kubesched.testing.pages import play_page


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden",
        action="store_true",
        help="write the recorded answers again, for review, instead of comparing with them",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("story.txt", text)`: the text is what golden/story.txt beside the test says.

    With --golden the file is written instead, and whoever does that looks at the difference.
    """

    def compare(name: str, text: str) -> None:
        path = request.path.parent / "golden" / name
        if request.config.getoption("golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"nothing is recorded in {path}; `pytest --golden` writes it"
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Callable[[Path | str], None]:
    """`page("scenario.md")`: the page beside the test comes true; with --golden its answers are written again."""

    def played(path: Path | str) -> None:
        play_page(request.path.parent / path, golden=bool(request.config.getoption("golden")))

    return played
