"""What the real API server answers to bindings: the ground the bind protocol stands on.

Each case does one thing and compares status, reason, kind and message with its row in docs/live-binding-facts.md, so
that the document cannot say what the server does not. The tests below the cases put facts together: that a fence
holds, and how a binding of unknown outcome ends, with a proxy that loses, cuts or holds the request.
"""

import http.client
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from tests.realserver.client import STRATEGIC_MERGE_PATCH, Answer, Client
from tests.realserver.faults import HoldRequest, LoseRequest, LoseResponse, Order
from tests.realserver.fixtures import pod
from tests.realserver.harness import SCHEDULER, RealCluster

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "live-binding-facts.md"
ANOTHER_UID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Bench:
    """One namespace in which pods are made and bound by hand, with the rights of kube-scheduler."""

    cluster: RealCluster
    namespace: str

    @cached_property
    def admin(self) -> Client:
        return self.cluster.client()

    @cached_property
    def scheduler(self) -> Client:
        return self.cluster.client(SCHEDULER)

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def new_pod(self, name: str = "pod", **spec: Any) -> Any:
        return self.admin.create(self.pods, pod(name, **spec))

    def now(self, name: str = "pod") -> Any:
        return self.admin.get(f"{self.pods}/{name}")

    def bind(self, seen: Any, node: str = "node-a", *, client: Client | None = None, query: str = "",
             leave_out: tuple[str, ...] = (), **metadata: str) -> Answer:
        """POST a binding for a pod as it was seen, with both preconditions unless one is left out or replaced."""
        known = {key: seen["metadata"][key] for key in ("name", "uid", "resourceVersion") if key not in leave_out}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": known | metadata,
                   "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
        path = f"{self.pods}/{seen['metadata']['name']}/binding{query}"
        return (client or self.scheduler).request("POST", path, binding)

    def fence(self, name: str = "pod", note: str = "", **metadata: str) -> Answer:
        """Patch a condition into the status, as one does who does not know what became of a binding."""
        condition = {"type": "PodScheduled", "status": "False", "reason": "BindOutcomeUnknown", "message": note}
        body = {"metadata": metadata, "status": {"conditions": [condition]}}
        return self.scheduler.request("PATCH", f"{self.pods}/{name}/status", body, content_type=STRATEGIC_MERGE_PATCH)


@pytest.fixture
def bench(real_cluster: RealCluster, namespace: str) -> Bench:
    return Bench(real_cluster, namespace)


def version(seen: Any) -> str:
    return str(seen["metadata"]["resourceVersion"])


# ── one case, one answer ─────────────────────────────────────────────────────────────────────────────

CASES: dict[str, Callable[[Bench], Answer]] = {}


def case(title: str) -> Callable[[Callable[[Bench], Answer]], Callable[[Bench], Answer]]:
    def enter(act: Callable[[Bench], Answer]) -> Callable[[Bench], Answer]:
        CASES[title] = act
        return act

    return enter


@case("bind: uid and resourceVersion are right")
def _(bench: Bench) -> Answer:
    return bench.bind(bench.new_pod())


@case("bind: uid alone, and it is right")
def _(bench: Bench) -> Answer:
    return bench.bind(bench.new_pod(), leave_out=("resourceVersion",))


@case("bind: both are right, to a node that does not exist")
def _(bench: Bench) -> Answer:
    return bench.bind(bench.new_pod(), "no-such-node")


@case("bind: both are right, as a dry run")
def _(bench: Bench) -> Answer:
    answer = bench.bind(bench.new_pod(), query="?dryRun=All")
    assert "nodeName" not in bench.now()["spec"]
    return answer


@case("bind: resourceVersion is stale")
def _(bench: Bench) -> Answer:
    seen = bench.new_pod()
    bench.admin.patch(f"{bench.pods}/pod", {"metadata": {"annotations": {"touched": "yes"}}})
    return bench.bind(seen)


@case("bind: resourceVersion is of the future")
def _(bench: Bench) -> Answer:
    return bench.bind(bench.new_pod(), resourceVersion="999999999999")


@case("bind: resourceVersion is 0")
def _(bench: Bench) -> Answer:
    return bench.bind(bench.new_pod(), resourceVersion="0")


@case("bind: resourceVersion is no number")
def _(bench: Bench) -> Answer:
    return bench.bind(bench.new_pod(), resourceVersion="newest")


@case("bind: uid is another's")
def _(bench: Bench) -> Answer:
    return bench.bind(bench.new_pod(), uid=ANOTHER_UID)


@case("bind: uid is another's, and resourceVersion stale")
def _(bench: Bench) -> Answer:
    return bench.bind(bench.new_pod(), uid=ANOTHER_UID, resourceVersion="1")


@case("bind: the pod was deleted and made again under its name")
def _(bench: Bench) -> Answer:
    seen = bench.new_pod()
    bench.admin.delete(f"{bench.pods}/pod", grace=0)
    bench.new_pod()
    return bench.bind(seen)


@case("bind: the same binding once more, after it was applied")
def _(bench: Bench) -> Answer:
    seen = bench.new_pod()
    bench.bind(seen).must_be(201)
    return bench.bind(seen)


@case("bind: the pod is bound to this very node, both are right")
def _(bench: Bench) -> Answer:
    bench.bind(bench.new_pod()).must_be(201)
    return bench.bind(bench.now())


@case("bind: the pod is bound to another node, no preconditions")
def _(bench: Bench) -> Answer:
    bench.bind(bench.new_pod()).must_be(201)
    return bench.bind(bench.now(), "node-b", leave_out=("uid", "resourceVersion"))


@case("bind: the pod is being deleted, both are right")
def _(bench: Bench) -> Answer:
    bench.new_pod()
    held = bench.admin.patch(f"{bench.pods}/pod", {"metadata": {"finalizers": ["example.com/held"]}})
    bench.admin.delete(f"{bench.pods}/pod")
    answer = bench.bind(held, resourceVersion=version(bench.now()))
    bench.admin.patch(f"{bench.pods}/pod", {"metadata": {"finalizers": None}})
    return answer


@case("bind: the pod has a scheduling gate, both are right")
def _(bench: Bench) -> Answer:
    return bench.bind(bench.new_pod(schedulingGates=[{"name": "example.com/gate"}]))


@case("bind: there is no such pod")
def _(bench: Bench) -> Answer:
    seen = bench.new_pod()
    bench.admin.delete(f"{bench.pods}/pod", grace=0)
    return bench.bind(seen)


@case("bind: the names in the path and in the binding differ")
def _(bench: Bench) -> Answer:
    return bench.bind(bench.new_pod(), name="another")


@case("bind: no node is named")
def _(bench: Bench) -> Answer:
    return bench.bind(bench.new_pod(), "")


@case("bind: a user without the right to")
def _(bench: Bench) -> Answer:
    token = bench.cluster.service_account_token(bench.namespace, robot(bench))
    return bench.bind(bench.new_pod(), client=Client(bench.cluster.url, bench.cluster.trust(), token))


@case("fence: a condition that is new, resourceVersion as seen")
def _(bench: Bench) -> Answer:
    return bench.fence(resourceVersion=version(bench.new_pod()))


@case("fence: resourceVersion is stale")
def _(bench: Bench) -> Answer:
    seen = bench.new_pod()
    bench.bind(seen).must_be(201)
    return bench.fence(resourceVersion=version(seen))


@case("fence: uid is another's")
def _(bench: Bench) -> Answer:
    bench.new_pod()
    return bench.fence(uid=ANOTHER_UID)


@case("fence: there is no such pod")
def _(bench: Bench) -> Answer:
    return bench.fence()


def robot(bench: Bench) -> str:
    bench.admin.create(f"/api/v1/namespaces/{bench.namespace}/serviceaccounts", {"metadata": {"name": "robot"}})
    return "robot"


def recorded() -> Mapping[str, tuple[str, ...]]:
    """The rows of the document's table of answers: case → status, reason, kind, message."""
    rows = [[cell.strip().strip("`") for cell in line.strip("| \n").split(" | ")]
            for line in DOCUMENT.read_text().splitlines() if line.startswith(("| bind:", "| fence:"))]
    return {row[0]: tuple(row[1:]) for row in rows}


def measured(answer: Answer, namespace: str) -> tuple[str, ...]:
    body = answer.json
    if body["kind"] != "Status":
        return str(answer.status), "–", body["kind"], "–"
    message = body.get("message", "–").replace(namespace, "NAMESPACE")
    message = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", message)
    message = re.sub(r"(ResourceVersion in (?:precondition|object meta): )\d+", r"\1N", message)
    return str(answer.status), body.get("reason", "–"), body.get("details", {}).get("kind", "–"), message


@pytest.mark.parametrize("title", CASES)
def test_the_server_answers_as_the_document_says(title: str, bench: Bench) -> None:
    answer = CASES[title](bench)
    row = measured(answer, bench.namespace)
    assert recorded().get(title) == row, "in the document this line should read:\n" + " | ".join(
        [f"| {title}", *row[:3], f"`{row[3]}` |" if row[3] != "–" else "– |"])


def test_the_document_has_a_row_for_each_case_and_no_more() -> None:
    assert list(recorded()) == list(CASES)


# ── facts put together ───────────────────────────────────────────────────────────────────────────────


def test_a_binding_sets_the_node_and_the_condition_and_a_new_version(bench: Bench) -> None:
    seen = bench.new_pod()
    bench.bind(seen).must_be(201)
    bound = bench.now()
    [condition] = bound["status"]["conditions"]
    assert bound["spec"]["nodeName"] == "node-a"
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert int(version(bound)) > int(version(seen))


def test_after_any_patch_that_changes_the_status_the_old_binding_can_only_fail(bench: Bench) -> None:
    seen = bench.new_pod()
    fenced = bench.fence().must_be(200).json
    assert version(fenced) != version(seen)
    assert "nodeName" not in fenced["spec"]

    for _ in range(3):
        late = bench.bind(seen)
        assert (late.status, late.reason, late.json["details"]["kind"]) == (409, "Conflict", "pods")
    assert "nodeName" not in bench.now()["spec"]

    bench.bind(fenced).must_be(201)     # the version the patch returned is the one to go on with


def test_a_patch_that_changes_nothing_fences_nothing(bench: Bench) -> None:
    bench.new_pod()
    once = bench.fence(note="outcome unknown").must_be(200).json
    again = bench.fence(note="outcome unknown").must_be(200).json
    assert version(again) == version(once)
    bench.bind(once).must_be(201)


def test_a_fence_without_a_version_tells_lies_about_a_pod_that_was_bound(bench: Bench) -> None:
    bench.bind(bench.new_pod()).must_be(201)
    fenced = bench.fence().must_be(200).json
    [condition] = fenced["status"]["conditions"]
    assert (fenced["spec"]["nodeName"], condition["status"]) == ("node-a", "False")


def lost(bench: Bench, fault: LoseResponse | LoseRequest | HoldRequest) -> tuple[Any, Order, Callable[[], None]]:
    """Bind through a proxy that leaves the client without an answer: the pod as seen, the order, and its release."""
    proxy = bench.cluster.proxy()
    order = proxy.on(r"^POST \S+/binding ", fault)
    seen = bench.new_pod()
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        bench.bind(seen, client=bench.cluster.client(SCHEDULER, via=proxy))
    return seen, order, lambda: proxy.release(order)


def test_a_binding_whose_answer_is_lost_was_applied_and_cannot_be_applied_again(bench: Bench) -> None:
    seen, order, _ = lost(bench, LoseResponse())
    assert order.wait_for_answer() == 201
    assert bench.now()["spec"]["nodeName"] == "node-a"

    assert bench.bind(seen, "node-b").status == 409
    assert bench.fence(resourceVersion=version(seen)).status == 409
    assert bench.now()["spec"]["nodeName"] == "node-a"
    assert bench.now()["status"]["conditions"][0]["status"] == "True"


def test_a_binding_that_never_arrived_leaves_the_pod_as_it_was(bench: Bench) -> None:
    seen, _, _ = lost(bench, LoseRequest())
    assert version(bench.now()) == version(seen)
    bench.bind(seen, "node-b").must_be(201)


def test_a_binding_still_under_way_is_kept_out_by_a_fence(bench: Bench) -> None:
    seen, order, release = lost(bench, HoldRequest())
    assert "nodeName" not in bench.now()["spec"]        # a read cannot tell: it is neither applied nor lost
    fenced = bench.fence(resourceVersion=version(seen)).must_be(200).json

    release()

    assert order.wait_for_answer() == 409
    bench.bind(fenced, "node-b").must_be(201)
    assert bench.now()["spec"]["nodeName"] == "node-b"


def test_without_a_fence_a_binding_still_under_way_is_applied_late(bench: Bench) -> None:
    _, order, release = lost(bench, HoldRequest())
    assert "nodeName" not in bench.now()["spec"]

    release()

    assert order.wait_for_answer() == 201
    assert bench.now()["spec"]["nodeName"] == "node-a"


def test_of_many_bindings_at_once_one_wins(bench: Bench) -> None:
    """Requests held at the door and let in together race in the server itself."""
    proxy = bench.cluster.proxy()
    orders = [proxy.on(rf'^POST \S+/binding .*"node-{number}"', HoldRequest()) for number in range(8)]
    seen = bench.new_pod()
    for number in range(8):
        with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
            bench.bind(seen, f"node-{number}", client=bench.cluster.client(SCHEDULER, via=proxy))
    for order in orders:
        proxy.release(order)
    answers = [order.wait_for_answer() for order in orders]
    assert sorted(answers) == [201, *[409] * 7]
    assert bench.now()["spec"]["nodeName"] == f"node-{answers.index(201)}"


def test_the_answers_are_json_a_client_can_rely_on(bench: Bench) -> None:
    """Conflicts of a precondition and of a state differ in details.kind, which is what a program should look at."""
    seen = bench.new_pod()
    bench.bind(seen).must_be(201)
    stale, taken = bench.bind(seen).json, bench.bind(bench.now()).json
    assert json.dumps(stale["details"]) == json.dumps({"name": "pod", "kind": "pods"})
    assert json.dumps(taken["details"]) == json.dumps({"name": "pod", "kind": "pods/binding"})
