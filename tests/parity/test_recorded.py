"""Every recorded decision of kube-scheduler, decided again: in both tiers, with boards and without.

When one differs, look first at what kube-scheduler answered: it is right by definition.

    kubesched conformance tests/parity/data/topology.jsonl.gz --show 20

names the pod, the node and the plugin; the plugin's page says which rule it keeps.  Mend the rule, not the case:
the same families are recorded with other seeds too.  The files are never edited.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from kubesched.testing.parity import (
    Answer,
    Case,
    Difference,
    Recording,
    RecordingError,
    Tier,
    compare,
    differences,
    read_recordings,
)

DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.glob("*.jsonl.gz"))
BOTH: Sequence[Tier] = ("scalar", "vector")
PARTS = 4  # of a file, so that workers share the work


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, PARTS))])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.partition(".")[0])
def test_kube_scheduler_decided_the_same(file: Path, part: int) -> None:
    recordings = list(read_recordings(file))[part::PARTS]
    found: list[Difference] = []
    for recording in recordings:
        compared = compare(recording, BOTH, boards=True)
        found += [*compared.differences, *compared.tiers_disagree, *compared.boards_differ]
    assert len(recordings) == 200 // PARTS
    assert not found, f"{len(found)} differences:\n" + "\n".join(map(str, found[:10]))


def test_all_families_are_here() -> None:
    assert sum(1 for file in FILES for _ in read_recordings(file)) == 1_800


# ── a difference says where it is ────────────────────────────────────────────────────────────────────────────


def test_a_difference_names_pod_node_and_plugin() -> None:
    fit = {"code": "Unschedulable", "plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"]}
    expected = {"pod": "default/a", "rejected": {"n1": fit}, "scores": {"n2": {"ImageLocality": 7, "VolumeBinding": 0}}}
    got = {"pod": "default/a", "scores": {"n2": {"ImageLocality": 8}}}

    found = differences("resources-1", [expected], [got])

    assert [str(difference) for difference in found] == [
        (
            "resources-1  default/a  node n1  plugin NodeResourcesFit  rejected: "
            "expected Unschedulable by NodeResourcesFit: Insufficient cpu, got nothing"
        ),
        "resources-1  default/a  node n2  plugin ImageLocality  score: expected 7, got 8",
    ]


def test_a_pod_that_was_not_decided_at_all_differs() -> None:
    [*found] = differences("c", [{"pod": "default/a", "chosen": "n1"}], [])

    assert [(one.pod, one.what, one.expected, one.got) for one in found] == [
        ("default/a", "chosen", "n1", None),
        ("default/a", "pod", "default/a", None),
    ]


def test_every_field_of_a_recording_counts() -> None:
    """Change one thing in a recorded answer, and the comparison finds it."""
    recording = next(iter(read_recordings(DATA / "mixed.jsonl.gz")))
    [first, *rest] = recording.answer.decisions
    for key in first:
        changed = Recording(recording.case, Answer([{**first, key: "something else"}, *rest]))
        if isinstance(first[key], dict):
            changed.answer.decisions[0][key] = {"n0": {"plugin": "Nobody", "code": "Error", "reasons": []}}
        found = compare(changed, ["vector"]).differences
        assert found, key
        assert found[0].pod or key == "pod"


# ── files that are no recordings ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", b"{", r"a\.jsonl:1: not JSON"),
        ("a.jsonl", b"\xff\xfe\n", r"a\.jsonl:1: not JSON"),
        ("a.jsonl", b"[]\n", r"a\.jsonl:1: Expected `object`, got `array`"),
        ("a.jsonl", b'{"case": {"id": "x", "objects": 3, "pods": []}}\n', r"a\.jsonl:1: .*\$\.case\.objects"),
        ("a.jsonl", b'{"case": {"id": "x", "objects": [], "pods": []}}\n', r"a\.jsonl:1: .*`answer`"),
        ("a.jsonl.gz", b"not gzipped", r"a\.jsonl\.gz: Not a gzipped file"),
        ("a.jsonl.gz", FILES[0].read_bytes()[:2000], r"a\.jsonl\.gz: .*end-of-stream"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(RecordingError, match=said):
        list(read_recordings(path))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=re.escape("gone.jsonl: No such file")):
        list(read_recordings(tmp_path / "gone.jsonl"))


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (Case("x", [{"kind": "Node", "metadata": {"name": 3}}], []), "case x: .*metadata.name"),
        (Case("x", [], [{"kind": "Pod", "spec": {"schedulerName": "mine"}}]), 'asks for the scheduler "mine"'),
        (Case("x", [], [], {"profiles": 3}), "case x: profiles"),
    ],
)
def test_a_case_that_cannot_be_asked_is_named(case: Case, said: str) -> None:
    with pytest.raises(RecordingError, match=said):
        compare(Recording(case, Answer([])), BOTH)

