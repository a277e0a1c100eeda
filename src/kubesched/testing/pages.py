"""A page with scenarios, played as a test: what it says came true must come true."""

from __future__ import annotations

import difflib
from pathlib import Path

from kubesched.sim.literate import Chronicle, read_page
from kubesched.sim.play import play
from kubesched.sim.world import START


def play_page(path: Path | str, *, golden: bool = False) -> None:
    """Play every scenario of a Markdown page.  Raises AssertionError where one goes otherwise, InvalidScenario.

    Args:
        golden: write what happened into the page's `expect` blocks instead of comparing with them.
    """
    path = Path(path)
    page, answers, wrong = read_page(path), [], []
    for example in page.examples:
        chronicle = Chronicle(START)
        run = play(example.scenario, listeners=[chronicle])
        where = f"{path}:{example.line}"
        if not run.ok:
            raise AssertionError("\n".join([f"{where}: it went otherwise", *run.missed, *run.impossible]))
        if example.answer is not None:
            answers.append(chronicle.text())
            if example.answer != chronicle.text():
                wrong += [f"{where}: it went otherwise", *_difference(example.answer, chronicle.text())]
    if golden and wrong:
        path.write_text(page.with_answers(answers), encoding="utf-8")
    elif wrong:
        raise AssertionError("\n".join(wrong))


def _difference(told: str, happened: str) -> list[str]:
    pair = told.splitlines(), happened.splitlines()
    return list(difflib.unified_diff(*pair, "the page", "what happened", lineterm=""))
