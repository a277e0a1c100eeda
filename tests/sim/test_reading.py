"""A scenario that is wrong is refused in sentences: the file, the line, the path, what was expected; all at once."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubesched.sim.play import play
from kubesched.sim.reading import parse_scenario
from kubesched.sim.scenario import InvalidScenario

EVERYTHING = (Path(__file__).parents[1] / "scenarios" / "everything.yaml").read_bytes()


def refused(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(InvalidScenario) as caught:
        parse_scenario(data, "s.yaml")
    return "\n".join(caught.value.lines())


def lines(data: bytes) -> list[str]:
    """What is said of a document; nothing where it is a scenario."""
    try:
        parse_scenario(data, "s.yaml")
    except InvalidScenario as error:
        return error.lines()
    return []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cluster: [{node: n1, cpu: .nan}]", "s.yaml:1: cluster[0].cpu: '.nan' is not a quantity"),
        ("cluster: [{node: n1, cpu: .inf}]", "cluster[0].cpu: '.inf' is not a quantity"),
        ("cluster: [{node: n1, cpu: -3}]", "cluster[0].cpu: must be 0 or more, not -3"),
        ("cluster: [{node: n1, memory: 99999999999999E}]", "is more than a scheduler can count (2^63-1)"),
        ("cluster: [{pod: p, cpu: 1e400}]", "the number must be finite"),
        ("cluster:\n- {node: n1,\n   cup: 3}", 's.yaml:3: cluster[0].cup: unknown field "cup" (did you mean "cpu"?)'),
        ('cluster: [{node: n1, taints: ["a=b:NoWay"]}]', '"a=b:NoWay" has no effect out of NoSchedule'),
        ("cluster: [{node: n}]", "must be a string, not false (in quotes, as it was written"),
        ("cluster: [{node: n1}, {at: 5, pod: p, node: n1, nod: 2}]", 'cluster[1].nod: unknown field "nod"'),
        ("tie: dice", "tie: must be one of seeded, name, first, not"),
        ("seed: x", "seed: must be "),
        ("until: tomorrow", "until: "),
        ("until: -3s", "until: "),
        ("latency: {write: 5}\nlatncy: {}", 's.yaml:2: latncy: unknown field "latncy" (did you mean "latency"?)'),
        ("features: {Nonsense: true}", "features.Nonsense: "),
        ("scheduler: {profiles: 3}", "scheduler.profiles"),
        ("scheduler: nowhere.yaml", "nowhere.yaml: cannot be read"),
        ("events: [{at: 3s, fail: Bnd, outcome: lost}]", "events[0]"),
        ("expect: [{pod: a, noed: n1}]", 'expect[0].noed: unknown field "noed" (did you mean "node"?)'),
        ("workloads: [{name: w, count: 3}, {name: w, count: 3}]", "workloads[1].name: "),
        ("cluster: " + "[" * 200 + "]" * 200, "nests more than 64 levels deep"),
        ("cluster: [{node: n1", "s.yaml:1: is not YAML"),
        ("just text", 'must be a mapping, not the string "just text"'),
        ("[1, 2]", "must be a mapping"),
        ("seed: 1\nseed: 2", "s.yaml:2: "),
        ("a: &x 1\nb: *x", "alias"),
        ("a: !!python/object:os.system {}", "s.yaml:1: "),
        (b"\x80\x81", "is not UTF-8: byte 1 is 0x80"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str | bytes, said: str) -> None:
    assert said in refused(text)


def test_all_that_is_wrong_is_said_at_once_in_the_order_of_the_file() -> None:
    said = refused("seed: x\ncluster:\n- {node: n1, cpu: -1}\n- {pod: p, memry: 1}\nuntil: soon\n")
    wrong = ("s.yaml:1: seed", "s.yaml:3: cluster[0].cpu", "s.yaml:4: cluster[1].memry", "s.yaml:5: until")
    places = [said.index(place) for place in wrong]
    assert places == sorted(places)


trees: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.sampled_from(["n1", "3s"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(
                (
                    *("cluster", "events", "expect", "workloads", "node", "pod", "cpu", "at", "count", "kind", "spec"),
                    *("metadata", "seed", "until", "latency", "scheduler", "actors", "delete", "fail", "affinity"),
                )
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=20,
)


@given(tree=trees)
def test_whatever_a_document_says_it_is_a_scenario_or_refused(tree: Any) -> None:
    assert all(line.startswith("s.yaml") for line in lines(yaml.safe_dump(tree).encode()))


@given(at=st.integers(0, len(EVERYTHING)))
def test_a_scenario_cut_anywhere_is_a_scenario_or_refused(at: int) -> None:
    # The path of a configuration may be cut as well: then that is the file that is named.
    assert all(line.startswith("s.yaml") or "cannot be read" in line for line in lines(EVERYTHING[:at]))


POISON = (
    {"containers": 5},
    {"containers": [{"name": "c", "resources": {"requests": {"cpu": "NaN"}}}]},
    {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1" * 400}}}]},
    {"nodeSelector": ["a"]},
    {"priority": "high"},
    {"tolerations": [{"operator": {}}]},
    {"schedulerName": "default-scheduler", "affinity": "near"},
)


@pytest.mark.parametrize("spec", POISON, ids=lambda spec: next(iter(spec)))
def test_a_pod_nobody_can_read_is_visible_and_stops_nobody(spec: dict[str, Any]) -> None:
    poison = {"kind": "Pod", "metadata": {"name": "poison"}, "spec": spec}
    tree = {"until": "1m", "cluster": [poison, {"node": "n1"}, {"pod": "good"}]}
    played = play(parse_scenario(yaml.safe_dump(tree).encode(), "s.yaml"))
    core = played.simulation.core
    assert played.simulation.client.node_of("good") == "n1"
    assert core.state("default/poison") is not None
    assert core.state("default/poison").value == "Invalid"
    assert core.story("default/poison")[-1].note.startswith("Pod 'default/poison'")
