"""The kit finds every planted fault, names the rule, shows a case small enough to read, and finds nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.testing import faulty, faulty_in_time
from tests.testing.faulty import Counts, ScalesInPlace, TooHigh
from tests.testing.faulty_in_time import HearsNothing, OneBookForAll
from tests.testing.sound import SOUND, AllAtOnce, Crowd, OneByOne

from kubesched.framework.errors import ConfigError
from kubesched.framework.status import SUCCESS, Status, unschedulable
from kubesched.testing import HardlyExamined, NotConformant, conformance, examine
from kubesched.testing.kit.examination import NEEDS, RULES, sentence

PLANTED: dict[type, str] = {**faulty.PLANTED, **faulty_in_time.PLANTED}
HOW: dict[type, dict[str, Any]] = {**faulty.HOW, **faulty_in_time.HOW}
LASTING = (OneBookForAll,)  # once broken it stays so, and nothing smaller breaks it again


def size(obj: Any) -> int:
    """How much there is to read of a situation."""
    return len(msgspec.json.encode(obj))


@pytest.mark.parametrize("plugin", PLANTED, ids=lambda plugin: plugin.__name__)
def test_a_planted_fault_is_found_and_its_rule_named(plugin: type) -> None:
    report = examine(plugin, **{"situations": 80, **HOW.get(plugin, {})})
    rules = [broken.rule for broken in report.broken]
    assert PLANTED[plugin] in rules, str(report)
    [broken] = [one for one in report.broken if one.rule == PLANTED[plugin]]
    small = len(broken.situation.objects) <= 5 and len(broken.situation.steps) <= 2
    assert plugin in LASTING or (small and size(broken.situation) < 1500), str(report)


@pytest.mark.parametrize("plugin", SOUND, ids=lambda plugin: plugin.__name__)
def test_a_plugin_without_a_fault_passes(plugin: type) -> None:
    assert conformance(plugin).broken == ()


def test_the_page_says_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing-plugins.md").read_text(encoding="utf-8")
    assert [rule for rule in RULES if f"| `{rule}` | {sentence(rule)} |" not in page] == []


def test_every_rule_has_a_plugin_that_breaks_it_and_a_sentence() -> None:
    assert set(PLANTED.values()) == set(RULES)
    assert all(sentence(rule).endswith(".") for rule in RULES)
    assert set(NEEDS) <= set(RULES)


def test_conformance_is_a_test_that_fails_with_the_report() -> None:
    with pytest.raises(AssertionError) as caught:
        conformance(HearsNothing)
    assert isinstance(caught.value, NotConformant)
    text = str(caught.value)
    assert "conformance of HearsNothing: 1 of 13 rules broken" in text
    assert "hints: A pod that was turned down is woken by whatever makes it fit." in text
    assert "expected  a hint of HearsNothing that answers QUEUE to that" in text
    assert "got       it sleeps on; HearsNothing listens to only the flush" in text
    assert "then: " in text


def test_the_same_seed_finds_the_same_case_and_another_may_not() -> None:
    assert str(examine(Counts, seed=3, situations=10)) == str(examine(Counts, seed=3, situations=10))
    drawn = {examine(TooHigh, seed=seed, situations=10, only=("scores",)).broken[0].number for seed in range(8)}
    assert len(drawn) > 1


def test_one_rule_can_be_asked_for_alone() -> None:
    for rule, found in (("tiers", []), ("arguments", ["arguments"])):
        report = examine(ScalesInPlace, only=(rule,), situations=30)
        assert [broken.rule for broken in report.broken] == found


def test_themes_can_be_chosen_and_must_exist() -> None:
    assert examine(OneByOne, about=("ports",), situations=30, only=("answers",)).seen.get("turned down", 0) == 0
    assert examine(OneByOne, about=("taints",), situations=30, only=("answers",)).seen["turned down"] > 10
    with pytest.raises(ValueError, match="there is no theme 'ponies'; there are labels"):
        examine(OneByOne, about=("ponies",))


def test_themes_that_tell_nothing_are_drawn_less_often() -> None:
    for plugin in (OneByOne, AllAtOnce, Crowd):
        seen = examine(plugin, only=("answers", "hints")).seen
        assert seen["turned down"] > 40, seen
        assert seen["fits at last"] > 0, seen


class ByLabel:
    """Looks for a label the kit has never heard of: the class's own texts tell it."""

    def filter(self, cycle: Any, pod: Any, node: Any) -> Status:
        found = node.labels.get("acme.example/floor") == "7"
        return SUCCESS if found else unschedulable("wrong floor")


def test_labels_a_plugin_looks_for_are_tried() -> None:
    seen = examine(ByLabel, labels={"acme.example/floor": ("7", "8")}, only=("answers", "hints")).seen
    assert seen["let through"] > 20
    assert seen["fits at last"] > 0
    assert examine(ByLabel, only=("answers",)).seen["let through"] > 0  # found in its code


FLOOR, SEVENTH = "acme.example/floor", "7"


def on_the_seventh(node: Any) -> bool:
    return bool(node.labels.get(FLOOR) == SEVENTH)


class ByHelper:
    """The texts are in constants, and these in a function beside the class."""

    def filter(self, cycle: Any, pod: Any, node: Any) -> Status:
        return SUCCESS if on_the_seventh(node) else unschedulable("wrong floor")


class ByInheritance(ByHelper):
    """And that in another class."""


def test_the_code_of_a_plugin_is_all_it_calls_and_builds_on() -> None:
    for plugin in (ByHelper, ByInheritance):
        assert examine(plugin, only=("answers",)).seen["let through"] > 10


class OnlyMondays:
    """Looks for what the kit does not know of."""

    def filter(self, cycle: Any, pod: Any, node: Any) -> Status:
        return SUCCESS if cycle.now < 0 else unschedulable("not today")


def test_a_clean_report_that_says_little_says_so() -> None:
    with pytest.warns(HardlyExamined, match="OnlyMondays was hardly examined: no pod was ever let through; say what"):
        assert conformance(OnlyMondays, situations=10).broken == ()


class Unready:
    def filter(self, cycle: Any) -> Status:
        return SUCCESS


class NoPlugin:
    """Has nothing to say."""


def test_what_is_no_plugin_is_refused_with_a_sentence() -> None:
    with pytest.raises(ConfigError, match=r"Unready.filter takes \(cycle\); a filter takes \(cycle, pod, node\)"):
        conformance(Unready)
    with pytest.raises(ConfigError, match='plugin "NoPlugin" has no hook of any extension point'):
        conformance(NoPlugin)
    with pytest.raises(ConfigError, match="takes no args"):
        conformance(OneByOne, args={"floor": 7})
