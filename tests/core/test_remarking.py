"""What plugins note on the way of a pod is in its Decision; what they wish for when only asked is not granted."""

from typing import Any

from tests.core.little import Fit, Patience

from kubesched.api.time import seconds
from kubesched.framework.events import Action, Hint, QueueingHint
from kubesched.framework.records import State
from kubesched.framework.status import SUCCESS, Status, unschedulable
from kubesched.framework.steps import WaitFor
from kubesched.framework.tools import Tools
from kubesched.testing import answer, node, observe, pod, run, scheduler, tick


class Talker:
    """Says something in every hook."""

    tools: Tools

    def pre_enqueue(self, pod) -> Status:
        self.tools.note("pre_enqueue")
        return SUCCESS

    def pre_filter(self, cycle, pod, nodes) -> Status:
        self.tools.note("pre_filter", nodes=len(nodes))
        return SUCCESS

    def filter(self, cycle, pod, node) -> Status:
        self.tools.note("filter", pod=pod.name)
        cycle.note("said to the cycle")
        return SUCCESS

    def post_filter(self, cycle, pod, rejected) -> Status:
        self.tools.note("post_filter")
        return unschedulable("no room")

    def score(self, cycle, pod, node) -> int:
        self.tools.note("score", node=node.name)
        self.tools.note("score, and how it came to be", verbosity=10)
        return 1

    def reserve(self, cycle, pod, node) -> Status:
        self.tools.note("reserve", node=node)
        return SUCCESS

    def unreserve(self, cycle, pod, node) -> None:
        self.tools.note("unreserve")

    def permit(self, cycle, pod, node) -> Status:
        self.tools.note("permit")
        return SUCCESS

    def pre_bind(self, cycle, pod, node) -> Any:
        self.tools.note("pre_bind, before")
        yield WaitFor(lambda objects: SUCCESS if self.rung else None, seconds(60), "a bell")
        self.tools.note("pre_bind, after")
        return SUCCESS

    def post_bind(self, cycle, pod, node) -> None:
        self.tools.note("post_bind")

    def events_to_register(self):
        return (Hint("Node", Action.ADD, self.hint),)

    def hint(self, pod, old, new) -> QueueingHint:
        self.tools.note("hint")
        return QueueingHint.QUEUE

    rung = False


def notes(core: Any, pod: str = "a") -> list[str]:
    return core.why(f"default/{pod}").notes


def test_what_is_noted_from_the_first_hook_to_the_last_is_in_the_decision() -> None:
    talker = Talker()
    core = scheduler(node("n1"), node("n2"), pod("a"), plugins=[talker])
    [promise] = tick(core)
    answer(core, promise)
    talker.rung = True
    [bind] = observe(core, node("n3"))
    answer(core, bind)

    assert notes(core) == [
        "Talker: pre_filter (nodes=2)",
        "Talker: filter (pod=a)",
        "said to the cycle",
        "Talker: score (node=n1)",
        "Talker: score (node=n2)",
        "Talker: reserve (node=n1)",
        "Talker: permit",
        "Talker: pre_bind, before",
        "Talker: pre_bind, after",
        "Talker: post_bind",
    ]


def test_what_is_noted_on_the_way_back_is_there_too() -> None:
    core = scheduler(node("n1"), pod("a"), plugins=[Talker(), Patience(seconds(3))])
    [promise] = tick(core)
    answer(core, promise)
    run(core, at=seconds(3))
    assert notes(core)[-1] == "Talker: unreserve"


def test_a_pod_that_fits_nowhere_has_what_was_noted_when_room_was_looked_for() -> None:
    core = scheduler(node("n1", cpu=1), pod("a", cpu=9), plugins=[Fit(), Talker()])
    tick(core)
    assert notes(core) == ["Talker: pre_filter (nodes=1)", "Talker: post_filter"]
    assert "Talker: hint" not in notes(core), "a hint is no part of an attempt"


def test_pods_on_their_way_at_the_same_time_keep_their_remarks_apart() -> None:
    talker = Talker()
    core = scheduler(node("n1"), pod("a"), pod("b"), plugins=[talker])
    for promise in run(core):
        answer(core, promise)
    talker.rung = True
    observe(core, node("n2"))
    for name in "ab":
        assert f"Talker: filter (pod={name})" in notes(core, name)
        assert [note for note in notes(core, name) if "filter (pod=" in note] == [f"Talker: filter (pod={name})"]
        assert notes(core, name)[-1] == "Talker: pre_bind, after"


def test_what_nobody_reads_is_not_kept() -> None:
    core = scheduler(node("n1"), pod("a"), plugins=[Talker()])
    core.verbosity = 0
    tick(core)
    assert notes(core) == ["said to the cycle"]
    assert core.notes == []


def test_finer_remarks_are_there_for_whoever_wants_them() -> None:
    core = scheduler(node("n1"), node("n2"), pod("a"), plugins=[Talker()])
    core.verbosity = 10
    tick(core)
    assert "Talker: score, and how it came to be" in notes(core)


def test_a_question_has_its_own_remarks_and_leaves_none_in_the_log() -> None:
    core = scheduler(node("n1"), plugins=[Talker()])
    asked = core.what_if(pod("a"))
    assert asked.notes == ["Talker: pre_filter (nodes=1)", "Talker: filter (pod=a)", "said to the cycle"]
    tick(core)
    assert core.notes == []


class Meddler:
    """Wishes for things while a pod is decided about."""

    tools: Tools

    def filter(self, cycle, pod, node) -> Status:
        if pod.name == "question":
            for waiting in self.tools.waiting:
                self.tools.reject(waiting.pod, "somebody asked")
            self.tools.activate(*self.tools.pods())
        return SUCCESS


def test_what_is_wished_for_in_a_question_is_not_granted() -> None:
    core = scheduler(node("n1"), pod("a"), plugins=[Meddler(), Patience(seconds(60))])
    tick(core)
    core.what_if(pod("question"))
    tick(core, at=seconds(1))
    assert core.state("default/a") is State.WAITING
