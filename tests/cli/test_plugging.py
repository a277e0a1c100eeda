"""--plugin FILE: a plugin of one's own takes part in a simulation, a replay and an explanation, and is heard there."""

from pathlib import Path

import pytest

PLUGIN = '''
from kubesched import SUCCESS, unschedulable

class OddOnly:
    """Keep pods off nodes with even numbers."""

    def filter(self, cycle, pod, node):
        self.tools.note("Looked at a node", node=node.name)
        self.tools.note("In detail", verbosity=10)
        return SUCCESS if int(node.name[-1]) % 2 else unschedulable("node(s) were even")
'''

SCENARIO = """
cluster:
- {node: n2, cpu: 1}
- {pod: web, cpu: 1}
- {at: 10s, node: n3, cpu: 1}
expect:
- {pod: web, unschedulable: were even, plugins: [OddOnly], at: 0s}
- {pod: web, node: n3, at: 10s}
"""

WEIGHTED = "scheduler: {profiles: [{plugins: {multiPoint: {enabled: [{name: OddOnly}]}}}]}\n"

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n2}
status: {allocatable: {cpu: "4", memory: 4Gi, pods: "9"}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: i}]}
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    texts = {"odd.py": PLUGIN, "s.yaml": SCENARIO, "w.yaml": WEIGHTED + SCENARIO, "n.yaml": NODE, "p.yaml": POD}
    texts["s.md"] = f"# A page\n```yaml scenario\n{SCENARIO}```\n"
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("file", ["s.yaml", "w.yaml", "s.md"])
def test_a_scenario_is_played_with_it(kubesched, file: str):
    ran = kubesched("sim", file, "--plugin", "odd.py", "--explain", "web")
    assert ran.status == 0, ran.out + ran.err
    assert "2 of 2 expectations met" in ran.out
    assert "note: OddOnly: Looked at a node (node=n3)" in ran.out
    assert "In detail" not in ran.out


def test_without_it_nobody_knows_its_name(kubesched):
    assert kubesched("sim", "s.yaml").status == 1
    ran = kubesched("sim", "w.yaml")
    assert ran.status == 2
    assert '"OddOnly" does not exist' in ran.err


def test_a_replay_needs_it_and_says_so(kubesched):
    assert kubesched("sim", "s.yaml", "--plugin", "odd.py", "--journal", "run.jsonl").status == 0
    ran = kubesched("replay", "run.jsonl")
    assert ran.status == 2
    assert "name its file with --plugin" in ran.err
    ran = kubesched("replay", "run.jsonl", "--plugin", "odd.py", "--explain", "web")
    assert ran.status == 0
    assert "the same as in the journal" in ran.out
    assert "note: OddOnly: Looked at a node (node=n3)" in ran.out


def test_log_lines_have_the_remarks_once(kubesched):
    ran = kubesched("sim", "s.yaml", "--plugin", "odd.py", "-vv")
    assert ran.err.count('"Looked at a node" plugin="OddOnly" node="n3"') == 1
    assert "OddOnly: Looked" not in ran.err


@pytest.mark.parametrize(("output", "detail"), [("text", False), ("wide", True)])
def test_an_explanation_asks_it(kubesched, output: str, detail: bool):
    ran = kubesched("explain", "--cluster", "n.yaml", "--pod", "p.yaml", "--plugin", "odd.py", "-o", output)
    assert ran.status == 0
    assert "why not n2?  OddOnly: node(s) were even      (all other filters pass)" in ran.out
    assert ran.out.count("note: OddOnly: Looked at a node (node=n2)") == 1
    assert ("note: OddOnly: In detail" in ran.out) is detail


def test_a_running_scheduler_has_its_own_plugins(kubesched):
    ran = kubesched("explain", "default/web", "--plugin", "odd.py")
    assert ran.status == 2
    assert "needs no files and no settings" in ran.err


@pytest.mark.parametrize("command", [("sim", "s.yaml"), ("explain", "--cluster", "n.yaml", "--pod", "p.yaml")])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "mine.py: there is no such file"),
        ("import nothing_like_it", "mine.py:1"),
        ("class Mine:\n    def filter(self, pod): ...\n", "mine.py:2"),
        ("class NodeName:\n    def filter(self, cycle, pod, node): ...\n", '"NodeName" is there already'),
    ],
)
def test_a_file_that_cannot_be_used_is_explained(kubesched, tmp_path: Path, command, text: str | None, said: str):
    if text is not None:
        (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    ran = kubesched(*command, "--plugin", "mine.py")
    assert ran.status in (1, 2)
    assert said in ran.err
