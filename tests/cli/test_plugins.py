"""`kubesched plugins` and `kubesched crd`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kubesched.cli.main import run
from kubesched.plugins import IN_TREE
from kubesched.plugins.contrib import CONTRIB


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_every_plugin_is_listed_with_its_extension_points(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plugins"]) == 0
    listed = {line.split()[0]: line.split()[1:] for line in lines(capsys)[1:] if not line.startswith(" ")}
    assert set(listed) == {*IN_TREE, *CONTRIB}
    assert listed["NodeName"] == ["in-tree", "filter"]
    assert listed["QOSSort"] == ["contrib", "queueSort"]


@pytest.mark.parametrize("name", [*IN_TREE, *CONTRIB])
def test_every_plugin_has_a_manual_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plugins", "show", name]) == 0
    page = lines(capsys)
    assert page[0] == name
    assert any(line.startswith("What it does:") for line in page)
    assert any(line.startswith("Extension points:") for line in page)


def test_a_page_tells_the_arguments_with_their_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plugins", "show", "ScoreByLabel"]) == 0
    assert '  labelKey: "score-by-label"' in lines(capsys)


def test_a_file_of_ones_own_is_listed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.py"
    path.write_text("class ZoneBudget:\n    def filter(self, cycle, pod, node):\n        ...\n")
    assert run(["plugins", "--plugin", str(path)]) == 0
    assert any(line.split() == ["ZoneBudget", "yours", "filter"] for line in lines(capsys))
    assert run(["plugins", "show", "ZoneBudget", "--plugin", str(path)]) == 0


def test_a_name_nobody_knows_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plugins", "show", "NodeNam"]) != 0
    assert 'did you mean "NodeName"' in capsys.readouterr().err


def test_a_definition_is_printed_for_every_class(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["crd", "kubesched.plugins.contrib.node_crd_resource_fit"]) == 0
    [definition] = yaml.safe_load_all(capsys.readouterr().out)
    assert definition["metadata"]["name"] == "clusterscopedresources.scheduling.sigs.k8s.io"


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("nowhere.py", "there is no such file"),
        ("no_such_module", "cannot be imported: ModuleNotFoundError"),
        ("kubesched.plugins.priority_sort", "has no class that is a CustomResource"),
        ("kubesched.plugins.contrib.node_crd_resource_fit:Other", "has no CustomResource called Other"),
    ],
)
def test_what_no_definition_can_be_made_of(place: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["crd", place]) == 1
    assert sentence in capsys.readouterr().err


def test_a_class_no_schema_fits_is_named_with_its_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "odd.py"
    path.write_text(
        "from kubesched.api.kinds import CustomResource\n"
        "class Odd(CustomResource, frozen=True):\n    group = 'acme.example'\n    blob: bytes = b''\n"
    )
    assert run(["crd", str(path)]) == 1
    assert f"{path}: Odd.blob: Bytes has no place in a structural schema" in capsys.readouterr().err
