"""Commands, run as a person runs them: words in, what is printed and an exit status out."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kubesched.cli import main as cli


class Ran(NamedTuple):
    """What came of a command."""

    status: int
    out: str
    err: str


@pytest.fixture
def kubesched(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ran]:
    """`kubesched("sim", "s.yaml")` in a folder of its own.  No command ever shows a traceback."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ran:
        capfd.readouterr()
        status = cli.run(arguments)
        ran = Ran(status, *capfd.readouterr())
        assert "Traceback" not in ran.err
        return ran

    return run
