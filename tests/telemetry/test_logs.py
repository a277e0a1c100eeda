"""Log lines have klog's shape, kube-scheduler's messages, and one line each whatever a pod is called."""

import json
import re
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.little import Fit, Patience

from kubesched.api.time import parse_rfc3339, seconds
from kubesched.core.lifecycle import MOVES
from kubesched.framework.records import Record, State
from kubesched.framework.tools import Note
from kubesched.sim import Simulation
from kubesched.telemetry import logs
from kubesched.telemetry.logs import MESSAGES, Log, json_line, line
from kubesched.testing import answer, fail, node, pod, scheduler, tick

NOW = parse_rfc3339("2026-03-12T09:41:07.000213456Z")
FIVE_SECONDS = seconds(5)
KLOG = re.compile(
    r'^(?P<severity>[IWE])(?P<day>\d{4}) (?P<time>\d\d:\d\d:\d\d\.\d{6}) {1,7}(?P<thread>\d+) '
    r'(?P<file>[\w.]+):(?P<line>\d+)\] '
    r'"(?P<message>(?:[^"\\]|\\.)*)"(?P<fields>(?: [\w.-]+=(?:"(?:[^"\\]|\\.)*"|-?[\d.]+))*)$'
)


def run(*objects, verbosity=10, plugins=None, until=FIVE_SECONDS):
    """The lines of a short run."""
    written: list[str] = []
    log = Log(verbosity)
    core = scheduler(plugins=plugins or [Fit()])
    with Simulation(core) as simulation:
        simulation.listen(lambda m: written.extend(log.lines(m.at, m.position, m.records, m.decisions, m.notes)))
        for obj in objects:
            simulation.client.create(obj)
        simulation.run(until=until)
    return written


def a_node(name="n1", cpu="1"):
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "pods": "9"}}}


def a_pod(name, cpu="1"):
    wants = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": wants}


def test_a_line_is_klogs():
    [written] = Log().lines(
        NOW, 18231, [Record(1, NOW, "default/web-7", "u", State.BINDING, State.BOUND, "bound", 18231, "n3")]
    )
    assert re.fullmatch(
        r'I0312 09:41:07\.000213       1 logs\.py:\d+\] "Successfully bound pod to node" '
        r'pod="default/web-7" node="n3" cause=18231',
        written,
    )


def test_the_place_of_a_message_is_where_it_stands_in_the_list():
    lines = Path(logs.__file__).read_text(encoding="utf-8").splitlines()
    for cause, message in MESSAGES.items():
        if message is not logs.MOVED and message is not logs.NO_FIT:
            assert f'"{cause}": Message("{message.text}"' in lines[message.line - 1]


def test_every_cause_in_the_table_of_moves_has_a_message():
    assert {cause for _, cause in MOVES} == set(MESSAGES) == set(logs._FILLERS) | {
        cause for cause, message in MESSAGES.items() if message is logs.MOVED
    }


def test_a_whole_run_is_klogs_line_by_line():
    written = run(a_node(), a_pod("a"), a_pod("b"))
    assert len(written) >= 10
    for each in written:
        assert KLOG.match(each), each


def test_a_bound_pod_says_how_many_nodes_were_looked_at():
    [bound] = run(a_node("n1"), a_node("n2", cpu="0"), a_pod("a"), verbosity=2)
    assert '"Successfully bound pod to node" pod="default/a" node="n1" evaluatedNodes=2 feasibleNodes=1' in bound


def test_verbosity_two_tells_outcomes_only():
    written = run(a_node(), a_pod("a"), a_pod("b"), verbosity=2)
    assert [KLOG.match(each)["message"] for each in written] == [
        "Unable to schedule pod; no fit; waiting",
        "Successfully bound pod to node",
    ]


def test_each_verbosity_tells_all_that_the_one_below_tells():
    told = [run(a_node(), a_pod("a"), a_pod("b"), verbosity=v) for v in (0, 2, 3, 4, 5, 10)]
    for fewer, more in pairwise(told):
        rest = iter(more)
        assert all(each in rest for each in fewer)
    assert len(set(map(len, told))) >= 4


def test_scores_are_told_at_ten_and_verdicts_at_five():
    class Number:
        def score(self, cycle, pod, node):
            return int(node.name[-1])

    deep = "\n".join(run(a_node("n1"), a_node("n2"), a_node("n3", cpu="0"), a_pod("a"), plugins=[Fit(), Number()]))
    assert '"Plugin scored node for pod" pod="default/a" plugin="Number" node="n2" score=2' in deep
    assert '"Calculated node\'s final score for pod" pod="default/a" node="n1" score=1' in deep
    assert '"Plugin rejected nodes for pod" pod="default/a" plugin="Fit" nodes=1 reasons="1 Insufficient cpu"' in deep


def test_without_nodes_kube_schedulers_other_sentence_is_used():
    [written] = run(a_pod("a"), verbosity=2, until=seconds(0.5))
    assert "no nodes are registered to the cluster; waiting" in written


def test_a_plugin_that_breaks_is_an_error():
    class Broken:
        def filter(self, cycle, pod, node):
            raise ValueError("no idea")

    written = run(a_node(), a_pod("a"), plugins=[Broken()], verbosity=0, until=seconds(0.5))
    assert written[0].startswith("E0101")
    assert '"Error scheduling pod; retrying" pod="default/a" err="running' in written[0]
    assert "no idea" in written[0]


def test_a_pod_waiting_for_permission_is_told_with_whom_it_waits_for():
    written = run(a_node(), a_pod("a"), plugins=[Fit(), Patience(seconds(1))], verbosity=4)
    [asked, *_] = [each for each in written if "asked to wait" in each]
    assert 'pod="default/a" node="n1" plugins="Patience"' in asked


def test_an_unknown_outcome_is_a_warning_with_the_node():
    core = scheduler(node("n1"), pod("a", version=1), plugins=[Fit()])
    log = Log(0)
    [bind] = tick(core)
    log.lines(core.now, core.position, core.life.fresh, core.decisions.fresh)
    fail(core, bind, "Timeout", "context deadline exceeded", unknown=True)
    [written] = log.lines(core.now, core.position, core.life.fresh)
    assert written[0] == "W"
    assert 'pod="default/a" node="n1" err="context deadline exceeded"' in written


def test_what_a_plugin_remarks_is_a_line_of_its_own():
    written = Log(4).lines(NOW, 7, [], [], [Note("Mine", "Counted things", (("count", "3"), ("a b=", 'x"y')))])
    assert written[0].endswith('"Counted things" plugin="Mine" count="3" a_b_="x\\"y" cause=7')
    assert Log(3).lines(NOW, 7, [], [], [Note("Mine", "Counted things")]) == []


def test_what_is_remembered_of_a_pod_ends_with_it():
    core = scheduler(node("n1"), pod("a"), plugins=[Fit()])
    log = Log()
    [bind] = tick(core)
    log.lines(core.now, core.position, core.life.fresh, core.decisions.fresh)
    assert log._attempts
    assert log._nodes
    answer(core, bind)
    log.lines(core.now, core.position, core.life.fresh)
    assert not log._attempts
    assert not log._nodes


# ── text from strangers ──────────────────────────────────────────────────────────────────────────────────────

STATES = st.sampled_from(list(State))
WILD = st.text(max_size=60) | st.sampled_from(
    ["a\nI0312 forged", "\x1b[2J", '" node="elsewhere', "\\", "\\\"", "\u202eevil", "\u2028", "x" * 10_000, "\ud800"]
)


@given(st.sampled_from(sorted(MESSAGES)), STATES, STATES, WILD, WILD)
def test_one_record_is_one_line_whatever_a_pod_is_called(cause, was, state, name, note):
    record = Record(1, NOW, f"default/{name}", "u", was, state, cause, 3, note)
    [written] = Log(10).lines(NOW, 3, [record])
    assert len(written.splitlines()) == 1
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in written)
    found = KLOG.match(written)
    assert found, written
    keys = re.findall(r' ([\w.-]+)=(?:"(?:[^"\\]|\\.)*"|-?[\d.]+)', found["fields"])
    assert keys[0] == "pod"
    assert keys[-1] == "cause"
    assert len(keys) == len(set(keys)), "nothing in a name may look like a field"


@given(st.dictionaries(WILD, WILD, max_size=4))
def test_a_field_is_one_field_whatever_it_says(fields):
    written = line(NOW, MESSAGES["popped"], fields)
    assert len(re.findall(r'(?<= )[\w.-]*="(?:[^"\\]|\\.)*"(?= |$)', written)) == len(fields)


@pytest.mark.parametrize(("text", "said"), [('a"b', r'"a\"b"'), ("a\\", r'"a\\"'), ("a\nb", r'"a\nb"'), ("ü", '"ü"')])
def test_quoting(text, said):
    assert logs.quoted(text) == said


@given(st.text(), st.text())
def test_as_json_a_line_is_one_object_and_one_line(name, note):
    record = Record(1, NOW, name, "u", State.BINDING, State.AMBIGUOUS, "unanswered", 7, note)
    [written] = Log(2, json_line).lines(NOW, 7, [record])
    told = json.loads(written)
    assert (told["msg"], told["cause"], told["severity"]) == (MESSAGES["unanswered"].text, 7, "W")
    assert not any(unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cf") for char in written)


def test_as_json_a_line_says_when_and_how_detailed():
    record = Record(1, NOW, "default/a", "u", State.BINDING, State.BOUND, "bound", 7, "n1")
    told = json.loads(Log(2, json_line).lines(NOW, 7, [record])[0])
    assert (told["v"], told["pod"], told["node"]) == (2, "default/a", "n1")
    assert told["ts"] == 1773308467000.213  # milliseconds, as kube-scheduler's
