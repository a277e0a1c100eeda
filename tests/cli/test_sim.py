"""kubesched sim: a page or a JSON object, and an exit status that means something."""

import json
import re
from pathlib import Path

import pytest

SCENARIO = """
name: one waits
cluster:
- {node: n1, cpu: 1}
- {pod: a, cpu: 1}
- {pod: b, cpu: 1}
- {at: 10s, delete: a}
- {pod: c, cpu: 4}
expect:
- {pod: b, node: n1, by: 11s}
- {pod: c, unschedulable: Insufficient cpu, plugins: [NodeResourcesFit]}
"""


@pytest.fixture(autouse=True)
def _scenario(tmp_path: Path):
    (tmp_path / "s.yaml").write_text(SCENARIO, encoding="utf-8")


def test_a_page_says_what_came_of_it(kubesched):
    ran = kubesched("sim", "s.yaml")
    assert ran.status == 0
    assert ran.out.startswith("one waits (seed 0): 11m0s of virtual time\n")
    assert "bound  2 pods on 1 node, 2 on each" in ran.out
    assert "waited  half within 2ms, 99 in 100 within 10.003s, longest 10.003s" in ran.out
    assert "cpu  100% requested on average, 100% at most" in ran.out
    assert "1 × default/c: 0/1 nodes are available: 1 Insufficient cpu." in ran.out
    assert ran.out.endswith("2 of 2 expectations met\n")
    assert ran.err == ""


def test_a_missed_expectation_is_exit_status_one_with_its_line(kubesched):
    ran = kubesched("sim", "s.yaml", "--set", "expect[0].node=n2")
    assert ran.status == 1
    said = "missed: s.yaml:10: expect[0]: pod default/b: expected to be bound to n2 by 11s; it was bound to n1"
    assert said in ran.out
    assert "1 of 2 expectations met" in ran.out


def test_what_the_cluster_refuses_is_exit_status_one(kubesched):
    ran = kubesched("sim", "s.yaml", "--set", "events[+]={at: 3s, delete: pod/nobody}")
    assert ran.status == 1
    assert 'events[0]: at 3s: pods "nobody" not found' in ran.out


def test_json_has_everything(kubesched):
    told = json.loads(kubesched("sim", "s.yaml", "--seed", "7", "--json").out)
    assert told["scenario"] == "one waits"
    assert told["seed"] == 7
    assert told["ok"] is True
    assert (told["bound"], told["expectations"], told["missed"], told["refused"]) == (2, 2, [], [])
    assert told["virtualSeconds"] == 660
    assert told["waitSeconds"]["max"] == 10.003
    assert told["placements"] == {"n1": 2}
    assert [(pod["pod"], pod["state"]) for pod in told["waiting"]] == [("default/c", "Parked")]


def test_until_ends_the_run_early(kubesched):
    told = json.loads(kubesched("sim", "s.yaml", "--until", "5s", "--json").out)
    assert told["virtualSeconds"] == 5
    assert told["bound"] == 1
    assert not told["ok"]


@pytest.mark.parametrize(("until", "said"), [("soon", "is not a duration"), ("-3s", "is not in the future")])
def test_an_end_that_is_none_is_misuse(kubesched, until, said):
    ran = kubesched("sim", "s.yaml", f"--until={until}")
    assert ran.status == 2
    assert said in ran.err


def test_the_same_seed_plays_the_same_run_and_another_does_not(kubesched, tmp_path: Path):
    (tmp_path / "luck.yaml").write_text("cluster: [{node: m, count: 20}, {pod: p, count: 5}]\nuntil: 5s\n")
    told = [json.loads(kubesched("sim", "luck.yaml", "--seed", seed, "--json").out) for seed in "112"]
    assert told[0] == told[1]
    assert told[0]["placements"] != told[2]["placements"]


# ── what else it prints ──────────────────────────────────────────────────────────────────────────────────────


def test_v_writes_log_lines_to_stderr(kubesched):
    ran = kubesched("sim", "s.yaml", "-v")
    lines = ran.err.splitlines()
    assert all(re.match(r"[IWE]0101 \d\d:\d\d:\d\d\.\d{6} +1 logs\.py:\d+\] \"", line) for line in lines)
    assert sum('"Successfully bound pod to node"' in line for line in lines) == 2
    assert len(kubesched("sim", "s.yaml", "-vvv").err.splitlines()) > len(lines)


def test_the_story_of_a_pod(kubesched):
    ran = kubesched("sim", "s.yaml", "--story", "b", "--story", "team/nobody")
    assert "   10.001s  default/b is woken by AssignedPodDelete\n" in ran.out
    assert "\ndefault/b is now Bound: bound\n" in ran.out
    assert "\nteam/nobody: the scheduler has not heard of it\n" in ran.out


def test_the_last_attempt_of_a_pod(kubesched):
    ran = kubesched("sim", "s.yaml", "--explain", "b", "--explain", "default/c", "--set", "cluster[+]={node: n2}")
    assert "\ndefault/b goes to n2 (1 attempt)\n" in ran.out
    assert re.search(r"\n {2} +\d+ n2: .*NodeResourcesFit \d+", ran.out) or "one node passed all filters" in ran.out
    assert "\ndefault/c goes to n2 (" in ran.out


def test_why_a_pod_waits_names_who_turned_it_down(kubesched):
    ran = kubesched("sim", "s.yaml", "--explain", "c")
    assert "\ndefault/c: 0/1 nodes are available: 1 Insufficient cpu." in ran.out
    assert "(4 attempts)\n  turned down by NodeResourcesFit\n" in ran.out


def test_a_markdown_page_is_played_scenario_by_scenario(kubesched, tmp_path: Path):
    block = "```yaml cluster\n- {node: n1}\n- {pod: a}\n```\n"
    (tmp_path / "page.md").write_text(f"# Two runs\n\n{block}\nand again\n\n{block}")
    ran = kubesched("sim", "page.md")
    assert ran.status == 0
    assert ran.out.count("Two runs (seed 0)") == 2
    assert "nothing was expected, and every invariant held" in ran.out
    assert kubesched("sim", "page.md", "--journal", "j").status == 2
    assert kubesched("sim", "page.md", "--set", "seed=1").status == 2


def test_standard_input_is_read_for_a_dash(kubesched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with (tmp_path / "s.yaml").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert kubesched("sim", "-").status == 0


def test_names_do_nothing_to_a_terminal(kubesched, tmp_path: Path):
    evil = "\x1b[2Jevil\n\u202e"
    pods = {"cluster": [{"pod": evil, "cpu": 99}, {"node": "n1"}], "name": evil, "until": "1s"}
    pods["expect"] = [{"pod": evil, "bound": True}]
    (tmp_path / "evil.yaml").write_text(json.dumps(pods))
    ran = kubesched("sim", "evil.yaml", "-vvvv", "--story", evil, "--explain", evil)
    assert ran.status == 1
    for text in (ran.out, ran.err):
        assert "\x1b" not in text
        assert "\u202e" not in text


# ── changes from the command line ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        ("seed=3", "seed", 3),
        ("until=2s", "virtualSeconds", 2),
        ("latency.write=4s", "bound", 2),
        ("cluster[0].cpu=9", "bound", 3),
        ("cluster[+]={pod: d}", "bound", 3),
        ("cluster[1]={pod: a, cpu: 9}", "bound", 1),
        ("name=other", "scenario", "other"),
        ('name="a=b"', "scenario", "a=b"),
    ],
)
def test_a_field_is_set(kubesched, change, name, value):
    assert json.loads(kubesched("sim", "s.yaml", "--json", "--set", change).out)[name] == value


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("seed", 'error: s.yaml: --set "seed" is no change (write PATH=VALUE, such as seed=7'),
        ("=3", "is no change"),
        ("a..b=3", "is no change"),
        ("cluster[99].cpu=1", "has no item [99]: there are 5 ([+] adds one)"),
        ("cluster.cpu=1", "has a name where the scenario has a list"),
        ("name[0]=1", "has no item [0]: there are 0"),
        ("[0]=1", "has a number where the scenario has a mapping"),
        ("sede=1", 'sede: unknown field "sede" (did you mean "seed"?)'),
        ("seed=[1", "is not YAML"),
        ("seed=*a", "has the alias *a"),
    ],
)
def test_a_change_that_cannot_be_made_is_explained(kubesched, change, said):
    ran = kubesched("sim", "s.yaml", "--set", change)
    assert ran.status == 2
    assert said in ran.err
