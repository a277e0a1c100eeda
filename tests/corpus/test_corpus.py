"""Every bad input of the corpus is refused with the named error it was kept for, and harms nobody else.

`answers.tsv` holds, for each file, which error that is.  `python -m tests.corpus.grow` grows both anew.
"""

import pytest
from tests.corpus.grow import ANSWERS, WANTED, one_line
from tests.corpus.judging import HERE, verdict


def answers() -> dict[str, str]:
    lines = ANSWERS.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t", 1) for line in lines)


@pytest.mark.parametrize("folder", WANTED)
def test_bad_inputs_are_refused_by_name(folder: str) -> None:
    expected = {name: words for name, words in answers().items() if name.startswith(f"{folder}/")}
    assert {name: one_line(verdict(HERE / name)) for name in expected} == expected


def test_every_file_has_its_answer_and_there_are_enough() -> None:
    files = {f"{path.parent.name}/{path.name}" for folder in WANTED for path in (HERE / folder).iterdir()}
    assert files == set(answers())
    assert len(files) >= 1_000
