"""The pages do not lie about the tree: links lead somewhere, every room is drawn, every state has a word."""

import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from kubesched.cli.main import kubesched
from kubesched.framework.hooks import HELPERS, POINTS, check
from kubesched.framework.records import State

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "kubesched"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def without_code(text: str) -> str:
    """A page without its fenced blocks, where brackets mean something else."""
    return re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The places within a page, spelled as a link spells them."""
    headings = re.findall(r"^#+ (.+)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (anchor and found.suffix == ".md" and anchor not in anchors(found)):
            lost.append(target)
    assert lost == []


def test_every_test_that_a_page_names_is_there() -> None:
    tests = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    defined = {name for text in tests.values() for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    said = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert set(re.findall(r"`(?:[\w/]+/)?(test_\w+\.py)`", said)) - tests.keys() == set()
    assert set(re.findall(r"`(test_\w+)`", said)) - defined == set()


def test_architecture_draws_every_room_that_stands() -> None:
    rooms = {path.name for path in SRC.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    drawn = set(re.findall(r"\b(\w+)/", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")))
    assert rooms - drawn == set()


def test_architecture_names_no_file_that_is_not_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    tree = text[text.index("src/kubesched/\n") :].partition("```")[0]
    lost, room = [], SRC
    for line in tree.splitlines()[1:]:
        if folder := re.match(r"[├└]── (\w+)/", line):
            room = SRC / folder[1]
        elif re.match(r"[├└]── \w+\.py", line):
            room = SRC
        elif not line.startswith(("│", " ")):
            room = ROOT / line.partition("/")[0]  # beside src
        named = re.findall(r"\b\w+\.(?:py|md)\b", line)
        lost += [f"{room.name}/{name}" for name in named if not (room / name).exists()]
    assert lost == []


def test_the_glossary_has_a_word_for_every_state() -> None:
    words = set(re.findall(r"^\| \*\*([^*]+)\*\*", (ROOT / "GLOSSARY.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert {state.value.lower() for state in State} - words == set()


def test_the_glossary_says_each_word_once() -> None:
    words = re.findall(r"^\| \*\*([^*]+)\*\*", (ROOT / "GLOSSARY.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [word for word in words if words.count(word) > 1] == []


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = set(re.findall(r"\]\((\d{4}-[^)]+)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert {path.name for path in folder.glob("[0-9]*.md")} == listed


def test_every_make_target_says_what_it_does() -> None:
    """`make help` is made from these comments."""
    lines = [*(ROOT / "Makefile").read_text(encoding="utf-8").splitlines()]
    lines += (ROOT / "envtest.mk").read_text(encoding="utf-8").splitlines()
    phony = {name for line in lines if line.startswith(".PHONY:") for name in line.split()[1:]}
    told = {line.partition(":")[0] for line in lines if re.match(r"[\w.-]+:.* ## \S", line)}
    assert phony - told <= {"envtest-if-possible"}


def test_every_hook_has_its_place_in_the_manual() -> None:
    """Error messages about a plugin point to these anchors."""
    methods = {method.name for methods in POINTS.values() for method in methods} | {method.name for method in HELPERS}
    assert methods - anchors(ROOT / "docs" / "hooks.md") == set()


def test_the_plugin_of_the_readme_works() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```python same_number.py\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    scope: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), scope)
    plugin = scope["SameNumber"]()
    check(plugin)
    node7, plain, pod7, pod8 = (SimpleNamespace(name=name) for name in ("node7", "control-plane", "pod7", "pod8"))
    assert plugin.filter(None, pod7, node7).ok
    assert plugin.filter(None, pod7, plain).rejected
    assert plugin.score(None, pod7, node7) > plugin.score(None, pod8, node7)


def shown() -> list[tuple[str, str]]:
    """Every command of kubesched that a page shows, with its place."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.finditer(r"^(`{3,})[^`\n]*\n(.*?)^\1", text, re.MULTILINE | re.DOTALL):
            lines = block[2].replace("\\\n", " ").splitlines()
            asked = [line for line in lines if line.startswith("$ ")]  # and what follows was printed
            for line in asked or lines:
                found += [(f"{page.relative_to(ROOT)}: {line.strip()}", words) for words in _commands(line)]
        found += [(f"{page.relative_to(ROOT)}: {one}", one) for one in re.findall(r"`(kubesched [a-z][^`…]*)`", text)]
    return found


def _commands(line: str) -> list[str]:
    """What of a line of a shell is a command of ours: up to a pipe, a redirection or a remark."""
    line = re.split(r" #| {3,}", line)[0]
    parts = re.split(r"[|;&<>]", line.strip().removeprefix("$ "))
    return [part.strip() for part in parts if re.match(r"(?:.* -- )?kubesched [a-z]+(?: |$)", part.strip())]


def faults(command: str) -> list[str]:
    """Words of a command that there are not."""
    words = shlex.split(command.partition("kubesched ")[2], comments=True)
    context, at = click.Context(kubesched), 0
    found: Any = kubesched
    while isinstance(found, click.Group) and at < len(words) and not words[at].startswith("-"):
        name, found, at = words[at], found.get_command(context, words[at]), at + 1
        if found is None:
            return [name]
    known = {spelling for option in found.params for spelling in (*option.opts, *option.secondary_opts)}
    known |= {"-h", "--help", *(f"-{'v' * count}" for count in range(1, 5))}
    given = (word.partition("=")[0] for word in words[at:] if re.match(r"--?[a-z]", word))
    return [word for word in given if word not in known]


def test_every_command_that_is_shown_is_one() -> None:
    told = shown()
    assert len(told) > 60
    assert [place for place, command in told if faults(command)] == []


def test_a_command_that_is_none_would_be_found() -> None:
    assert faults("kubesched rnu --config x") == ["rnu"]
    assert faults("kubectl exec POD -- kubesched queue --no-such -o wide") == ["--no-such"]
    assert faults("kubesched config check --cofnig") == ["--cofnig"]
