"""A page with scenarios, played as a test: what it says came true must come true."""

from __future__ import annotations

import difflib
from pathlib import Path

from kubesched.sim.literate import Chronicle, read_page
from kubesched.sim.play import play
from kubesched.sim.world import START


def play_page(path: Path | str) -> None:
    """Play every scenario of a Markdown page.  Raises AssertionError where one goes otherwise, InvalidScenario."""
    path = Path(path)
    for example in read_page(path).examples:
        chronicle = Chronicle(START)
        run = play(example.scenario, listeners=[chronicle])
        where = f"{path}:{example.line}"
        if not run.ok:
            raise AssertionError("\n".join([f"{where}: it went otherwise", *run.missed, *run.impossible]))
        if example.answer is not None and example.answer != chronicle.text():
            told, happened = example.answer.splitlines(), chronicle.text().splitlines()
            differs = difflib.unified_diff(told, happened, "the page", "what happened", lineterm="")
            raise AssertionError("\n".join([f"{where}: it went otherwise", *differs]))
