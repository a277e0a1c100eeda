"""Pages of the manual are played: their files are written, their commands run, their output compared.

    ```python budget.py        a block with a file's name behind its language is that file
    ```console                 what a shell says: `$ ` begins a command, and what follows is its output

In expected output `…` stands for anything within a line, and a line of nothing else for any lines.  With --golden the
output is written again where it differs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^`\n]*)\n(?P<text>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL)
ANYTHING = "…"
PATIENCE = 120  # seconds for one command, before something is thought to hang


class Asked(NamedTuple):
    """A command of a console block, and what the page says it prints."""

    command: str
    output: str
    line: int


def play_page(page: Path, folder: Path, *, golden: bool = False, env: Mapping[str, str] | None = None) -> list[str]:
    """Play a page in an empty folder; returns what came out otherwise than it says."""
    text = page.read_text(encoding="utf-8")
    parts, at, wrong = [], 0, []
    for block in FENCE.finditer(text):
        language, _, name = block["info"].strip().partition(" ")
        if language == "console":
            said = []
            for asked in _asked(block["text"], text.count("\n", 0, block.start("text")) + 1):
                happened = _run(asked.command, folder, env or {})
                same = matches(asked.output, happened)
                if not same:
                    wrong.append(f"{page.name}:{asked.line}: $ {asked.command}\n{_both(asked.output, happened)}")
                said.append(f"$ {asked.command}\n{asked.output if same else happened}")
            parts += [text[at : block.start("text")], "".join(said)]
            at = block.end("text")
        elif name and "." in name and " " not in name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(block["text"], encoding="utf-8")
    if golden and wrong:
        page.write_text("".join([*parts, text[at:]]), encoding="utf-8")
        return []
    return wrong


def _asked(block: str, line: int) -> Iterator[Asked]:
    command, output, began = "", [], line
    for number, text in enumerate(block.splitlines(keepends=True), start=line):
        if text.startswith("$ "):
            if command:
                yield Asked(command, "".join(output), began)
            command, output, began = text[2:].rstrip("\n"), [], number
        else:
            output.append(text)
    if command:
        yield Asked(command, "".join(output), began)


def _run(command: str, folder: Path, env: Mapping[str, str]) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    plain = {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1", **env}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=plain,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.stdout.replace(f"{folder}{os.sep}", "")


def matches(expected: str, happened: str) -> bool:
    """Whether output is what a page says, its gaps filled in."""
    lines = expected.splitlines()
    pattern = "".join(_pattern(line) for line in lines)
    return re.fullmatch(pattern, happened if happened.endswith("\n") or not happened else f"{happened}\n") is not None


def _pattern(line: str) -> str:
    """One line of a page as a pattern: a gap alone is any number of lines, one within a line any text."""
    if line.strip() == ANYTHING:
        return r"(?:.*\n)*?"
    return ".*".join(map(re.escape, line.rstrip().split(ANYTHING))) + r"[ ]*\n"


def _both(expected: str, happened: str) -> str:
    return f"--- the page says\n{expected}--- what happened\n{happened}---"
