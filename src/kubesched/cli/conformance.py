"""kubesched conformance: replay recorded decisions of kube-scheduler and say where this scheduler differs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec
from msgspec import Struct
from rich.console import Console
from rich.progress import track
from rich.table import Table

from kubesched.testing.parity import Difference, Tier, decide, differences, read_cases

TIERS: dict[str, tuple[Tier, ...]] = {"scalar": ("scalar",), "vector": ("vector",), "both": ("scalar", "vector")}


class Family(Struct):
    """How the cases of one file went."""

    family: str
    cases: int = 0
    cases_agree: int = 0
    decisions: int = 0
    decisions_agree: int = 0
    differences: list[Difference] = []
    tiers_disagree: list[Difference] = []
    boards_differ: list[Difference] = []

    @property
    def found(self) -> dict[str, list[Difference]]:
        """Everything that is not as it should be, under what to call it."""
        return {"differs": self.differences, "tiers disagree": self.tiers_disagree, "boards differ": self.boards_differ}


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--tier", type=click.Choice(sorted(TIERS)), default="both", show_default=True, help="Which tier of plugins."
)
@click.option(
    "--boards",
    type=click.Choice(["on", "off"]),
    default="off",
    show_default=True,
    help="Decide every pod also from answers kept from pods alike; that must make no difference.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option("--show", default=10, show_default=True, metavar="N", help="Print the first N differences per file.")
def conformance(files: tuple[Path, ...], tier: str, boards: str, as_json: bool, show: int) -> None:
    """Replay recorded decisions of kube-scheduler and say where this scheduler differs.

    FILES are JSON lines, gzipped or not, each a case with kube-scheduler's answer.  Exit status 0 only if every
    decision agrees, in both tiers.
    """
    quiet = as_json or not sys.stderr.isatty()
    families = [_replay(path, TIERS[tier], boards == "on", quiet) for path in files]
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode([_summary(f, show) for f in families])).decode())
    else:
        _print(families, show)
    if any(found for family in families for found in family.found.values()):
        sys.exit(1)


def _replay(path: Path, tiers: tuple[Tier, ...], boards: bool, quiet: bool) -> Family:
    family = Family(path.name.removesuffix(".gz").removesuffix(".jsonl"))
    cases: Iterable[dict[str, object]] = read_cases(path)
    if not quiet:
        cases = track(list(cases), description=family.family, console=Console(stderr=True), transient=True)
    for record in cases:
        _replay_case(family, record, tiers, boards)
    return family


def _replay_case(family: Family, record: dict[str, object], tiers: tuple[Tier, ...], boards: bool) -> None:
    case, recorded = record["case"], record["answer"]
    assert isinstance(case, dict)
    assert isinstance(recorded, dict)
    expected = recorded["decisions"]
    answers = [decide(case, tier, boards=boards) for tier in tiers]
    found = differences(case["id"], expected, answers[0].decisions)
    for other in answers[1:]:
        family.tiers_disagree.extend(differences(case["id"], answers[0].decisions, other.decisions))
    for each in answers:
        family.boards_differ.extend(each.boards_differ)
    family.cases += 1
    family.cases_agree += not found
    family.decisions += len(expected)
    family.decisions_agree += len(expected) - len({difference.pod for difference in found})
    family.differences.extend(found)


def _summary(family: Family, show: int) -> dict[str, object]:
    told = msgspec.structs.asdict(family)
    for name in ("differences", "tiers_disagree", "boards_differ"):
        found: list[Difference] = told[name]
        told[name] = {"count": len(found), "first": [difference._asdict() for difference in found[:show]]}
    return told


def _print(families: list[Family], show: int) -> None:
    table = Table("family", "cases", "agree", "decisions", "agree", box=None, header_style="bold")
    for f in families:
        table.add_row(f.family, str(f.cases), str(f.cases_agree), str(f.decisions), str(f.decisions_agree))
    total = [sum(getattr(f, name) for f in families) for name in Family.__struct_fields__[1:5]]
    table.add_section()
    table.add_row("all", *map(str, total))
    console = Console(soft_wrap=True, highlight=False)
    console.print(table)
    for line in _lines(families, show):
        click.echo(line)
    click.echo(f"{total[1]} of {total[0]} cases agree")


def _lines(families: list[Family], show: int) -> Iterator[str]:
    for family in families:
        for title, found in family.found.items():
            for difference in found[:show]:
                yield f"{title}  {difference}"
            if len(found) > show:
                yield f"{title}  … and {len(found) - show} more in {family.family}"
