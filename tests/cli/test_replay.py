"""kubesched replay: the same effects to the byte, or where they part; damage by file and line."""

import json
from pathlib import Path

import pytest

SCENARIO = """
seed: 3
cluster:
- {node: n1, cpu: 1}
- {pod: a, cpu: 1}
- {pod: b, cpu: 1}
- {at: 10s, delete: a}
until: 1m
"""


@pytest.fixture
def journal(kubesched, tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    assert kubesched("sim", "s.yaml", "--journal", "run.jsonl").status == 0
    return tmp_path / "run.jsonl"


def test_a_run_replays_to_the_same_effects(kubesched, journal: Path):
    ran = kubesched("replay", "run.jsonl")
    assert ran.status == 0
    events = sum(b'"event":{' in line for line in journal.read_bytes().splitlines())
    assert ran.out == f"{events} events, 10.005s, 6 effects: the same as in the journal\n"


def test_a_changed_effect_is_found_and_shown(kubesched, journal: Path):
    journal.write_bytes(journal.read_bytes().replace(b'"node":"n1"', b'"node":"n9"', 1))
    ran = kubesched("replay", "run.jsonl")
    assert ran.status == 1
    assert "(Tick) has another outcome than the journal says, at its effect 1" in ran.err
    assert '"node":"n9"' in ran.err
    assert '"node":"n1"' in ran.err


def test_another_seed_is_another_scheduler(kubesched, tmp_path: Path):
    (tmp_path / "luck.yaml").write_text("cluster: [{node: m, count: 9}, {pod: p, count: 3}]\nuntil: 5s\n")
    kubesched("sim", "luck.yaml", "--seed", "1", "--journal", "luck.jsonl")
    path = tmp_path / "luck.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"seed":1', b'"seed":2', 1))
    assert kubesched("replay", "luck.jsonl").status == 1


@pytest.mark.parametrize("until", ["00:00:05", "2026-01-01T00:00:05Z", "5s", "00:00:05.000000001"])
def test_it_stops_where_it_is_told(kubesched, journal: Path, until: str):
    ran = kubesched("replay", "run.jsonl", "--until", until, "--explain", "b", "--story", "default/b")
    assert ran.status == 0
    assert "stopped before event" in ran.out
    assert "at 2026-01-01T00:00:10.001000000Z" in ran.out
    assert "default/b is now Parked: parked until something happens that may help" in ran.out
    assert "default/b: 0/1 nodes are available: 1 Insufficient cpu." in ran.out


def test_a_later_end_changes_nothing(kubesched, journal: Path):
    assert "stopped" not in kubesched("replay", "run.jsonl", "--until", "24h").out


@pytest.mark.parametrize("until", ["noon", "25:00:00", "12:61", "2026-13-01T00:00:00Z", ""])
def test_a_moment_that_is_none_is_misuse(kubesched, journal: Path, until: str):
    ran = kubesched("replay", "run.jsonl", f"--until={until}")
    assert ran.status == 2
    assert "expected a time of day (12:03:04)" in ran.err


def test_log_lines_of_last_week(kubesched, journal: Path):
    sim, replay = kubesched("sim", "s.yaml", "-vvvv"), kubesched("replay", "run.jsonl", "-vvvv")
    assert replay.err == sim.err != ""


def test_a_journal_cut_mid_line_counts_up_to_there(kubesched, journal: Path):
    journal.write_bytes(journal.read_bytes()[:-9])
    ran = kubesched("replay", "run.jsonl")
    assert ran.status == 0
    assert "the last line of the journal is cut; all before it was replayed" in ran.err
    assert "the same as in the journal" in ran.out


@pytest.mark.parametrize("kept", range(0, 100, 7))
def test_a_journal_cut_anywhere_is_replayed_or_refused_in_words(kubesched, journal: Path, kept: int):
    whole = journal.read_bytes()
    journal.write_bytes(whole[: len(whole) * kept // 100])
    ran = kubesched("replay", "run.jsonl")
    assert ran.status in (0, 2)
    assert ("the same as in the journal" in ran.out) is (ran.status == 0)


# ── the head ─────────────────────────────────────────────────────────────────────────────────────────────────

CONFIGURED = """
scheduler:
  profiles:
  - schedulerName: mine
    percentageOfNodesToScore: 50
    plugins: {multiPoint: {disabled: [{name: ImageLocality}], enabled: [{name: "mine.py:OddNodes"}]}}
    pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}}]
tie: name
features: {SchedulerPopFromBackoffQ: false}
cluster:
- {node: m, count: 6, cpu: 2}
- {pod: p, count: 5, cpu: 1, scheduler: mine}
until: 10s
"""
PLUGIN = """
from kubesched import SUCCESS, unschedulable

class OddNodes:
    def filter(self, cycle, pod, node):
        return SUCCESS if int(node.name[-1]) % 2 else unschedulable("node(s) were even")
"""


def test_the_head_of_a_journal_builds_the_same_scheduler(kubesched, tmp_path: Path):
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "c.yaml").write_text(CONFIGURED)
    told = json.loads(kubesched("sim", "c.yaml", "--json", "--journal", "c.jsonl").out)
    assert told["placements"] == {"m-1": 2, "m-3": 2, "m-5": 1}
    assert kubesched("replay", "c.jsonl").status == 0


def test_a_plugins_file_is_looked_for_beside_the_journal_or_where_one_says(kubesched, tmp_path: Path):
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "c.yaml").write_text(CONFIGURED)
    (tmp_path / "kept").mkdir()
    kubesched("sim", "c.yaml", "--journal", "kept/c.jsonl")
    ran = kubesched("replay", "kept/c.jsonl")
    assert ran.status == 2
    assert "c.jsonl:1: its head cannot be used: " in ran.err
    assert "kept/mine.py" in ran.err
    assert kubesched("replay", "kept/c.jsonl", "--plugins-from", ".").status == 0


def test_a_scheduler_put_together_in_a_program_is_not_guessed(kubesched, journal: Path):
    journal.write_bytes(journal.read_bytes().replace(b'"NodeName",', b'"MyOwn",', 1))
    ran = kubesched("replay", "run.jsonl")
    assert ran.status == 2
    assert "profile default-scheduler: the journal's scheduler has " in ran.err
    assert "fold the journal there, with kubesched.drive.journal.replay" in ran.err


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ({"journal": 1, "tie": "dice"}, "tie: 'dice' is no rule for ties; rules are seeded, name, first"),
        ({"journal": 1, "features": {"Nonsense": True}}, "its head cannot be used: "),
        ({"journal": 1, "config": {"profiles": 3}}, "its head cannot be used: profiles"),
        ({"journal": 1, "plugins": {"other": ["A"]}}, "profile other: the journal's scheduler has A"),
        ({"journal": 2}, "a journal of version 2; this kubesched reads version 1"),
    ],
)
def test_a_head_that_cannot_be_used_is_explained(kubesched, tmp_path: Path, head: dict, said: str):
    (tmp_path / "j").write_text(json.dumps(head) + "\n")
    ran = kubesched("replay", "j")
    assert ran.status == 2
    assert f"j:1: {said}" in ran.err


def test_a_file_that_is_not_there(kubesched):
    ran = kubesched("replay", "nothing.jsonl")
    assert ran.status == 2
    assert ran.err == "error: nothing.jsonl: the journal cannot be read: no such file or directory\n"
