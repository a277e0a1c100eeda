from tests.plugins.small_cluster import Cluster, node, pod

from kubesched.framework.status import SUCCESS, Status, error
from kubesched.framework.steps import Answer, BindPod, Failure
from kubesched.plugins.default_binder import DefaultBinder


def bound(answer: Answer) -> Status:
    """What comes of the binding when the API server answers so."""
    cycle = Cluster(node("n1")).cycle(pod())
    steps = DefaultBinder().bind(cycle, cycle.pod, "n1")
    assert next(steps) == BindPod("n1")
    try:
        steps.send(answer)
    except StopIteration as done:
        status: Status = done.value
        return status
    raise AssertionError("one request is enough")


def test_it_asks_for_the_binding_and_is_content() -> None:
    assert bound(Answer()) is SUCCESS


def test_a_refusal_is_an_error_in_the_api_servers_words() -> None:
    refused = Failure(reason="Conflict", message='Operation cannot be fulfilled on pods/binding "p"', code=409)
    assert bound(Answer(failure=refused)) == error('Operation cannot be fulfilled on pods/binding "p"')


def test_a_refusal_without_words_gives_its_reason() -> None:
    assert bound(Answer(failure=Failure(reason="Timeout", applied="unknown"))) == error("Timeout")
