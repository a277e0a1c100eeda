"""What happened is what the metrics say: names, labels and buckets as kube-scheduler has them."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.core.little import Fit, Patience

from kubesched.api.time import seconds
from kubesched.config.gates import features_of
from kubesched.framework.events import NODE, Action, Hint, QueueingHint
from kubesched.framework.features import Features
from kubesched.framework.hooks import Nomination
from kubesched.sim import Simulation
from kubesched.telemetry.metrics import Levels, Metrics, _gates
from kubesched.telemetry.series import TABLE, exponential
from kubesched.testing import scheduler


def a_node(name: str = "n1", cpu: str = "1") -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "pods": "99"}}}


def a_pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    wants = {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": wants}


Samples = dict[str, dict[tuple[Any, ...], float]]


def run(*objects: Any, plugins: Any = None, until: int = 5, time: bool = False) -> Samples:
    """The metrics of a short run: by sample name, its label values and value."""
    metrics = Metrics()
    core = scheduler(plugins=plugins or [Fit()])
    if time:
        for name, profile in core.profiles.items():
            metrics.time(name, profile.plugins)
    with Simulation(core) as simulation:
        simulation.listen(lambda moment: metrics.tell(moment, took=2_000_000))
        for obj in objects:
            simulation.client.create(obj)
        simulation.run(until=seconds(until))
    return samples(metrics.text(Levels(core.queue.counts(), core.queue.incoming, core.queue.rejected())))


def samples(text: bytes) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def labels(**told: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(told.items()))


def test_a_bound_pod_and_one_that_does_not_fit_are_counted_by_result() -> None:
    told = run(a_node(), a_pod("a"), a_pod("b"))
    attempts = told["scheduler_schedule_attempts_total"]
    assert attempts[labels(result="scheduled", profile="default-scheduler")] == 1
    assert attempts[labels(result="unschedulable", profile="default-scheduler")] == 1
    assert told["scheduler_pod_scheduling_attempts_count"] == {(): 1}
    assert told["scheduler_pod_scheduling_sli_duration_seconds_count"] == {labels(attempts="1"): 1}
    assert told["scheduler_pending_pods"][labels(queue="unschedulable")] == 1
    assert told["scheduler_unschedulable_pods"] == {labels(plugin="Fit", profile="default-scheduler"): 1}
    assert told["scheduler_queue_incoming_pods_total"][labels(queue="active", event="UnschedulablePodAdd")] == 2


def test_an_attempt_lasts_from_the_pod_to_its_binding() -> None:
    told = run(a_node(), a_pod("a"))
    lasted = told["scheduler_scheduling_attempt_duration_seconds_sum"][
        labels(result="scheduled", profile="default-scheduler")
    ]
    assert 0.004 <= lasted < 0.02  # the simulated server takes 2 ms for a write, and handling took 2 ms
    assert told["scheduler_scheduling_algorithm_duration_seconds_sum"] == {(): 0.002}
    bind = labels(extension_point="Bind", status="Success", profile="default-scheduler")
    assert told["scheduler_framework_extension_point_duration_seconds_count"][bind] == 1


def test_a_pod_that_waited_for_a_node_needed_two_attempts() -> None:
    core = scheduler(plugins=[Fit()])
    metrics = Metrics()
    with Simulation(core) as simulation:
        simulation.listen(metrics.tell)
        simulation.client.create(a_node("small", cpu="500m"))
        simulation.client.create(a_pod("late"))
        simulation.run(until=seconds(20))
        simulation.client.create(a_node())
        simulation.run(until=seconds(40))
    told = samples(metrics.text(Levels()))
    assert told["scheduler_pod_scheduling_attempts_sum"] == {(): 2}
    [waited] = told["scheduler_pod_scheduling_sli_duration_seconds_sum"].items()
    assert waited[0] == labels(attempts="2")
    assert 20 <= waited[1] < 22
    assert told["scheduler_pod_scheduled_after_flush_total"] == {(): 0}


def test_waiting_on_permit_has_its_own_clock() -> None:
    told = run(a_node(), a_pod("patient"), plugins=[Fit(), Patience_of_three()], until=10)
    assert told["scheduler_permit_wait_duration_seconds_sum"] == {labels(result="Success"): 3.0}


class Patience_of_three(Patience):
    def __init__(self) -> None:
        super().__init__(seconds(9), name="Patience")

    def permit(self, cycle, pod, node):
        self.tools.allow_after(pod, seconds(3))
        return super().permit(cycle, pod, node)


def test_preemption_counts_attempts_and_victims() -> None:
    class Room:
        def post_filter(self, cycle, pod, rejected):
            return Nomination("n1", tuple(other for other in self.tools.pods() if other.name == "low"))

    told = run(a_node(), a_pod("low"), a_pod("high"), plugins=[Fit(), Room()])
    assert told["scheduler_preemption_attempts_total"][()] >= 1
    assert told["scheduler_preemption_victims_sum"] == {(): 1}


def test_plugins_are_timed_at_their_points_and_asked_once_per_node() -> None:
    told = run(a_node(), a_node("n2"), a_pod("a", cpu="4"), time=True)
    asked = told["scheduler_plugin_evaluation_total"]
    assert asked[labels(plugin="Fit", extension_point="Filter", profile="default-scheduler")] == 2
    lap = labels(plugin="Fit", extension_point="Filter", status="Success")
    assert told["scheduler_plugin_execution_duration_seconds_count"][lap] == 1
    point = labels(extension_point="Filter", status="Success", profile="default-scheduler")
    assert told["scheduler_framework_extension_point_duration_seconds_count"][point] == 1


def test_a_hint_is_timed_by_who_was_asked_about_what_and_what_it_said() -> None:
    class Hinting(Fit):
        def events_to_register(self):
            return [Hint(NODE, Action.ADD, look=self.look)]

        def look(self, pod, old, new):
            if new.metadata.name == "odd":
                raise ValueError("no")
            return QueueingHint.QUEUE if new.metadata.name == "large" else QueueingHint.SKIP

    core = scheduler(plugins=[Hinting()])
    metrics = Metrics()
    core.queue.around_hints(metrics.time_hints)
    with Simulation(core) as simulation:
        simulation.client.create(a_pod("waits", cpu="9"))
        for at, name in enumerate(("first", "small", "odd", "large")):  # nobody turns a pod down where there is no node
            simulation.run(until=seconds(20 * (at + 1)))
            simulation.client.create(a_node(name))
        simulation.run(until=seconds(100))
    told = samples(metrics.text(Levels()))
    assert told["scheduler_queueing_hint_execution_duration_seconds_count"] == {
        labels(plugin="Hinting", event="NodeAdd", hint="QueueSkip"): 1,
        labels(plugin="Hinting", event="NodeAdd", hint="Error"): 1,
        labels(plugin="Hinting", event="NodeAdd", hint="Queue"): 1,
    }
    below = told["scheduler_queueing_hint_execution_duration_seconds_bucket"]
    assert below[labels(plugin="Hinting", event="NodeAdd", hint="QueueSkip", le="+Inf")] == 1
    assert min(told["scheduler_queueing_hint_execution_duration_seconds_sum"].values()) > 0


def test_a_plugin_that_breaks_is_an_error_at_its_point_and_of_the_attempt() -> None:
    class Broken:
        def filter(self, cycle, pod, node):
            raise ValueError("no")

    told = run(a_node(), a_pod("a"), plugins=[Broken()], until=1, time=True)
    assert told["scheduler_schedule_attempts_total"][labels(result="error", profile="default-scheduler")] >= 1
    point = labels(extension_point="Filter", status="Error", profile="default-scheduler")
    assert told["scheduler_framework_extension_point_duration_seconds_count"][point] >= 1


@settings(max_examples=20)
@given(names=st.lists(st.from_regex(r"[a-z]([a-z0-9]{0,20})", fullmatch=True), unique=True, min_size=1, max_size=30))
def test_the_number_of_series_does_not_grow_with_the_names_of_pods(names: list[str]) -> None:
    one = run(a_node(cpu="99"), a_pod("a"), until=1)
    many = run(a_node(cpu="99"), *(a_pod(name) for name in names), until=1)
    assert {name: set(values) for name, values in many.items()} == {name: set(values) for name, values in one.items()}


def test_what_was_told_of_a_pod_is_forgotten_with_it() -> None:
    metrics = Metrics()
    core = scheduler(plugins=[Fit()])
    with Simulation(core) as simulation:
        simulation.listen(metrics.tell)
        simulation.client.create(a_node())
        simulation.client.create(a_pod("a"))
        simulation.client.create(a_pod("b"))
        simulation.run(until=seconds(3))
        simulation.client.delete("Pod", "b")
        simulation.run(until=seconds(6))
    assert metrics._pods == {}


def test_a_disabled_metric_is_nowhere() -> None:
    metrics = Metrics(disabled=["scheduler_pending_pods", "scheduler_schedule_attempts_total"])
    told = metrics.text(Levels({"active": 1})).decode()
    assert "scheduler_pending_pods" not in told
    assert "scheduler_schedule_attempts_total" not in told


def test_every_series_is_well_formed() -> None:
    text = Metrics().text(Levels()).decode()
    assert "_created" not in text
    for series in TABLE:
        assert f"# TYPE {series.name} {series.kind}\n" in text


def test_buckets_are_gos() -> None:
    assert exponential(0.001, 2, 15)[-1] == 0.001 * 2**14


def test_gates_have_the_names_kubernetes_gives_them() -> None:
    names = dict(_gates(Features()))
    assert features_of(names) == Features()
    assert names["SchedulerPopFromBackoffQ"] is True
