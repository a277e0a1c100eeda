"""kubesched new: a folder to begin with, in which everything works before the first line is changed."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

import click

from kubesched.cli.manifests import deployed
from kubesched.config.registry import OURS
from kubesched.framework.errors import KubeschedError
from kubesched.live.manifests import Placing

_SKELETON = Path(__file__).parent / "skeleton"
_CAMEL = re.compile(r"[A-Z][A-Za-z0-9]*")


class CannotBegin(KubeschedError):
    """A name that no plugin can have, or a folder that has something in it."""


@click.group()
def new() -> None:
    """Begin something of your own."""


@new.command(short_help="Write a package with a plugin called NAME.")
@click.argument("name")
@click.option(
    "--into", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER", help="Where.  [default: ./the-name]"
)
def plugin(name: str, into: Path | None) -> None:
    """Write a package with a plugin called NAME, its test, its configuration and its manifests.

    NAME is the name of a class: ZoneBudget.  Everything works as it is; three numbered lines are yours to change.
    """
    _check(name)
    module = _snake(name)
    dashed = module.replace("_", "-")
    folder = into or Path(dashed)
    if folder.exists() and any(folder.iterdir()):
        raise CannotBegin(f"{folder} has something in it; name an empty folder with --into")
    files = {
        f"{module}.py": "plugin.txt",
        f"test_{module}.py": "test_plugin.txt",
        "scenario.md": "scenario.txt",
        "scheduler.yaml": "scheduler.txt",
        "pyproject.toml": "pyproject.txt",
        "README.md": "readme.txt",
    }
    names = {"class_name": name, "module": module, "dashed": dashed}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, skeleton in files.items():
            text = Template((_SKELETON / skeleton).read_text(encoding="utf-8")).substitute(names)
            (folder / file).write_text(text, encoding="utf-8")
        manifests = deployed(folder / "scheduler.yaml", Placing(name=dashed), [folder / f"{module}.py"])
        (folder / "manifests.yaml").write_text(manifests, encoding="utf-8")
    except OSError as error:
        raise CannotBegin(f"{folder}: cannot be written: {error.strerror or error}") from None
    for file in (*files, "manifests.yaml"):
        click.echo(f"{folder / file}")
    click.echo(f"\nThree lines of {folder / module}.py are yours.  Then:\n")
    click.echo(f"  cd {folder}\n  pytest\n  kubesched up --plugin {module}.py")


def _check(name: str) -> None:
    if not _CAMEL.fullmatch(name) or keyword.iskeyword(name):
        raise CannotBegin(f"{name!r} is no name for a plugin; write it like a class: {_camel(name)}")
    if name in OURS:
        raise CannotBegin(f"there is a plugin called {name} already: kubesched plugins show {name}")


def _camel(name: str) -> str:
    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    return "".join(word[0].upper() + word[1:] for word in words) if words and words[0][0].isalpha() else "ZoneBudget"


def _snake(name: str) -> str:
    """`ZoneBudget` → `zone_budget`, `QOSSort` → `qos_sort`."""
    words = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name))
    return words.lower()
