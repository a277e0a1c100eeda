"""Which event wakes which pod."""

import pytest
from tests.core.queue.bench import (
    NODE_ADD,
    NODE_ALLOCATABLE,
    NODE_LABEL,
    NODE_TAINT,
    POD_DELETE,
    PVC_ADD,
    Rejector,
    at,
    node,
    pod,
)

from kubesched.core.queue.hints import EVERYTHING, EXTENDER, NODE_TAINTS, HintMap, Strategy
from kubesched.framework.errors import PluginError
from kubesched.framework.events import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Hint,
    QueueingHint,
)
from kubesched.framework.extender import Extender
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP
PROBLEMS: list[tuple[str, str, str]] = []


def hint_map(*plugins, **profile) -> HintMap:
    PROBLEMS.clear()
    return HintMap({"default-scheduler": Profile(*plugins, **profile)}, lambda *problem: PROBLEMS.append(problem))


def rejected(*rejectors: str, pending: tuple[str, ...] = (), profile: str = "default-scheduler") -> QueuedPod:
    queued = QueuedPod(pod("a", profile=profile), at(0), 1)
    queued.rejectors = frozenset(rejectors) | frozenset(pending)
    queued.pending = frozenset(pending)
    return queued


# ── what an event means for a pod ────────────────────────────────────────────────────────────────────────────

YES = Rejector("Yes", NODE_ADD, answer=QUEUE)
NO = Rejector("No", NODE_ADD, answer=SKIP)
BAD = Rejector("Bad", NODE_ADD, answer=ValueError("bad hint"))
PLAIN = Rejector("Plain", NODE_ADD)
ELSE = Rejector("Else", POD_DELETE, answer=QUEUE)


@pytest.mark.parametrize(
    ("rejectors", "pending", "event", "expected"),
    [
        ((), (), NODE_ADD, Strategy.BACKOFF),  # something broke: anything may help
        (("Yes",), (), NODE_ADD, Strategy.BACKOFF),
        (("No",), (), NODE_ADD, Strategy.SKIP),
        (("Plain",), (), NODE_ADD, Strategy.BACKOFF),
        (("Bad",), (), NODE_ADD, Strategy.BACKOFF),  # fails open
        (("No", "Yes"), (), NODE_ADD, Strategy.BACKOFF),  # one is enough
        (("Else",), (), NODE_ADD, Strategy.SKIP),  # listens to something else
        (("Unheard",), (), NODE_ADD, Strategy.SKIP),
        (("Yes",), (), PVC_ADD, Strategy.SKIP),
        ((), ("Yes",), NODE_ADD, Strategy.NOW),
        ((), ("No",), NODE_ADD, Strategy.SKIP),
        (("Yes",), ("No",), NODE_ADD, Strategy.BACKOFF),  # the pending plugin does not say so
        (("Yes",), ("Plain",), NODE_ADD, Strategy.NOW),  # it does, though a plain rejector spoke first
        (("No",), ("Yes",), NODE_ADD, Strategy.NOW),
    ],
)
def test_an_event_means_what_the_hints_of_the_rejectors_say(rejectors, pending, event, expected):
    hints = hint_map(YES, NO, BAD, PLAIN, ELSE)
    assert hints.ask(rejected(*rejectors, pending=pending), event, None, node()) is expected


@pytest.mark.parametrize(
    ("event", "about", "expected"),
    [
        (UNSCHEDULABLE_TIMEOUT, None, Strategy.BACKOFF),
        (FORCE_ACTIVATE, "a", Strategy.BACKOFF),
        (FORCE_ACTIVATE, "another", Strategy.SKIP),
    ],
)
def test_a_wildcard_wakes_everyone_or_the_pod_it_is_about(event, about, expected):
    about_pod = pod(about).pod if about else None
    assert hint_map(NO).ask(rejected("No"), event, None, about_pod) is expected
    assert hint_map(NO).ask(rejected(pending=("No",)), event, None, about_pod) is expected


def test_a_pod_of_an_unknown_profile_is_never_left_asleep():
    assert hint_map(NO).ask(rejected("No", profile="who"), NODE_ADD, None, None) is Strategy.BACKOFF


def test_the_same_pod_name_with_another_uid_is_another_pod():
    assert hint_map(NO).ask(rejected("No"), FORCE_ACTIVATE, None, pod("a", uid="new").pod) is Strategy.SKIP


@pytest.mark.parametrize("answer", [ValueError("no"), KeyError(), "queue", 17, False])
def test_a_hint_that_fails_or_answers_nonsense_is_taken_to_say_queue(answer):
    hints = hint_map(Rejector("Odd", NODE_ADD, answer=answer))
    assert hints.ask(rejected("Odd"), NODE_ADD, None, node()) is Strategy.BACKOFF
    assert hints.asked == {("Odd", "NodeAdd", "Error"): 1}
    [(plugin, hook, problem)] = PROBLEMS
    assert (plugin, hook) == ("Odd", "hint for NodeAdd")
    assert problem.startswith("raised ")


def test_answers_are_counted():
    hints = hint_map(YES, NO, PLAIN)
    for _ in range(2):
        hints.ask(rejected("No"), NODE_ADD, None, node())
    hints.ask(rejected("Yes"), NODE_ADD, None, node())
    hints.ask(rejected("Plain"), NODE_ADD, None, node())
    assert hints.asked == {
        ("No", "NodeAdd", "QueueSkip"): 2,
        ("Yes", "NodeAdd", "Queue"): 1,
        ("Plain", "NodeAdd", "Queue"): 1,
    }


def test_a_hint_sees_the_pod_and_both_versions():
    seen = []

    class Curious:
        def filter(self, cycle, pod, node): ...

        def events_to_register(self):
            return [Hint("Node", Action.UPDATE_NODE_LABEL, self._look)]

        def _look(self, pod, old, new):
            seen.append((pod, old, new))
            return SKIP

    waiting, old, new = rejected("Curious"), node(), node()
    hint_map(Curious()).ask(waiting, NODE_LABEL, old, new)
    assert seen == [(waiting.info, old, new)]


def test_hints_of_a_pod_are_those_of_its_own_profile():
    profiles = {
        "one": Profile(Rejector("R", NODE_ADD, answer=QUEUE), name="one"),
        "two": Profile(Rejector("R", NODE_ADD, answer=SKIP), name="two"),
    }
    hints = HintMap(profiles, lambda *problem: None)
    assert hints.ask(rejected("R", profile="one"), NODE_ADD, None, None) is Strategy.BACKOFF
    assert hints.ask(rejected("R", profile="two"), NODE_ADD, None, None) is Strategy.SKIP


# ── who listens to what ──────────────────────────────────────────────────────────────────────────────────────


class Filter:
    def filter(self, cycle, pod, node): ...


class Silent(Filter):
    def events_to_register(self):
        return []


class Scorer:
    def score(self, cycle, pod, node): ...


def listeners(hints: HintMap) -> list[tuple[str, Hint]]:
    return [(plugin, hint) for plugin, hint in hints._listeners["default-scheduler"]]


def test_a_plugin_that_does_not_say_listens_to_everything():
    assert listeners(hint_map(Filter())) == [("Filter", hint) for hint in EVERYTHING]
    assert {hint.action for hint in EVERYTHING} == {Action.ALL}
    resources = {hint.resource for hint in EVERYTHING}
    assert {"Pod", "Node", "PersistentVolumeClaim", "storage.k8s.io/CSINode"} <= resources
    assert not {"resource.k8s.io/ResourceSlice", "storage.k8s.io/VolumeAttachment"} & resources


def test_a_plugin_that_says_nothing_gets_nothing():
    assert listeners(hint_map(Silent())) == []


def test_a_plugin_that_turns_nobody_down_is_not_listened_for():
    assert listeners(hint_map(Scorer())) == []


@pytest.mark.parametrize(
    ("events", "added"),
    [
        ([NODE_ADD], True),
        ([NODE_ADD, NODE_ALLOCATABLE], True),
        ([ClusterEvent("Node", Action.ADD | Action.UPDATE_NODE_LABEL)], True),
        ([NODE_ADD, NODE_TAINT], False),
        ([ClusterEvent("Node", Action.ADD | Action.UPDATE_NODE_TAINT)], False),
        ([ClusterEvent("Node", Action.ALL)], False),
        ([NODE_LABEL], False),
        ([PVC_ADD], False),
    ],
)
def test_whoever_looks_at_new_nodes_looks_again_when_a_taint_goes(events, added):
    hints = hint_map(Rejector("R", *events, answer=SKIP))
    assert (("R", NODE_TAINTS) in listeners(hints)) is added
    if added:  # and no hint can say that it is of no use
        assert hints.ask(rejected("R"), NODE_TAINT, node(), node()) is Strategy.BACKOFF


def test_extenders_listen_to_everything_together_and_first():
    found = listeners(hint_map(Rejector("R", NODE_ADD), extenders=(Extender(), Extender(number=1))))
    assert found[: len(EVERYTHING)] == [(EXTENDER, hint) for hint in EVERYTHING]
    assert [plugin for plugin, _ in found[len(EVERYTHING) :]] == ["R", "R"]


def test_an_event_concerns_the_plugins_of_any_profile_that_registered_it():
    profiles = {
        "one": Profile(Rejector("R", NODE_ADD), name="one"),
        "two": Profile(Rejector("S", PVC_ADD), name="two"),
    }
    hints = HintMap(profiles, lambda *problem: None)
    assert hints.plugins(NODE_ADD) == ("R",)
    assert hints.plugins(PVC_ADD) == ("S",)
    assert hints.plugins(NODE_LABEL) == ()
    assert hints.opens("R", NODE_ADD)
    assert not hints.opens("R", PVC_ADD)
    assert hints.opens("R", UNSCHEDULABLE_TIMEOUT)


@pytest.mark.parametrize("returned", [["NodeAdd"], [NODE_ADD], None])
def test_a_plugin_that_registers_nonsense_is_named_at_once(returned):
    class Wrong(Filter):
        def events_to_register(self):
            return returned

    with pytest.raises(PluginError, match=r"Wrong\.events_to_register: r"):
        hint_map(Wrong())


# ── what to tell people ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (Hint("Node", Action.UPDATE_NODE_LABEL), "NodeUpdateNodeLabel"),
        (
            Hint("Node", Action.ADD | Action.UPDATE_NODE_TAINT | Action.DELETE),
            "NodeAdd, NodeDelete, NodeUpdateNodeTaint",
        ),
        (Hint("PersistentVolumeClaim", Action.UPDATE), "PersistentVolumeClaimUpdate"),
        (Hint("Pod", Action.ALL), "Pod"),
    ],
)
def test_what_may_wake_a_pod_is_said_by_name(hint, expected):
    class Only(Filter):
        def events_to_register(self):
            return [hint]

    assert hint_map(Only()).alarm(rejected("Only")) == expected


def test_only_its_own_rejectors_count_and_each_event_once():
    hints = hint_map(
        Rejector("R", POD_DELETE, NODE_TAINT), Rejector("S", POD_DELETE, PVC_ADD), Rejector("T", NODE_LABEL)
    )
    assert hints.alarm(rejected("S", "R")) == "PodDelete, NodeUpdateNodeTaint, PersistentVolumeClaimAdd"


def test_a_gated_pod_waits_for_what_its_gate_registered():
    hints = hint_map(Rejector("R", POD_DELETE), Rejector("G", PVC_ADD))
    gated = rejected("R", "G")
    gated.gate = "G"
    assert hints.alarm(gated) == "PersistentVolumeClaimAdd"


def test_a_plugin_may_say_that_no_event_can_help():
    hints = hint_map(Rejector("R", POD_DELETE), Silent(), Scorer())
    assert hints.alarm(rejected("Silent")) == "only the flush: no event can help, say Silent"
    assert hints.alarm(rejected("Silent", "R")) == "PodDelete"
    gated = rejected("R", "Silent")
    gated.gate = "Silent"
    assert hints.alarm(gated) == "only the flush: no event can help, say Silent"


def test_a_pod_that_sleeps_though_nobody_wanted_it_so_has_no_alarm():
    hints = hint_map(Silent(), Scorer())
    assert hints.alarm(rejected("Stranger")) is None
    assert hints.alarm(rejected("Silent", "Scorer")) is None
    assert hints.alarm(rejected("Silent", profile="who")) is None
