"""Equal parts of pods are kept once, and nobody can tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.objects import Pod, read
from kubesched.cluster.mirror import Mirror
from kubesched.cluster.sharing import Sharing

QUANTITIES = st.one_of(st.integers(), st.floats(), st.text(max_size=3), st.sampled_from([1, 1.0, "1", 2**70, -0.0, 0]))
TEXTS = st.one_of(st.text(max_size=3), st.sampled_from(["", "a", "\ud800"]))
CONDITIONS = st.fixed_dictionaries({"type": TEXTS, "status": TEXTS}, optional={"lastTransitionTime": TEXTS})


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    container = {
        "name": draw(TEXTS),
        "resources": {"requests": draw(st.dictionaries(TEXTS, QUANTITIES, max_size=2))},
    }
    raw = {
        "metadata": {
            "name": draw(TEXTS),
            "labels": draw(st.dictionaries(TEXTS, TEXTS, max_size=2)),
            "annotations": draw(st.dictionaries(TEXTS, TEXTS, max_size=2)),
            "ownerReferences": [{"name": draw(TEXTS)}],
        },
        "spec": {"nodeName": draw(TEXTS), "containers": [container], "priority": draw(st.none() | st.integers(0, 2))},
        "status": {
            "conditions": draw(st.lists(CONDITIONS, max_size=2)),
            "startTime": draw(st.none() | TEXTS),
            "containerStatuses": [{"name": draw(TEXTS)}],
        },
    }
    return read(raw, Pod)


@given(st.lists(pods(), max_size=5), st.integers(1, 8))
def test_what_comes_out_is_what_came_in(some: list[Pod], at_most: int) -> None:
    sharing = Sharing(at_most)
    assert [repr(sharing.pod(one)) for one in some] == [repr(one) for one in some]


def web(number: int, **status: object) -> Pod:
    raw = {
        "metadata": {"name": f"web-{number}", "namespace": "shop", "uid": f"u{number}", "labels": {"app": "web"}},
        "spec": {"nodeName": f"node-{number}", "containers": [{"name": "c"}], "tolerations": [{"key": "x"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], **status},
    }
    return read(raw, Pod)


def test_pods_of_one_workload_share_their_parts() -> None:
    mirror = Mirror()
    for number in range(2):
        mirror.observe(web(number))
    one, other = mirror.pods["shop/web-0"], mirror.pods["shop/web-1"]
    assert one.metadata.labels is other.metadata.labels
    assert one.spec.containers is other.spec.containers
    assert one.spec.tolerations is other.spec.tolerations
    assert one.status.conditions[0] is other.status.conditions[0]
    assert (one.spec.node_name, other.spec.node_name) == ("node-0", "node-1")


@pytest.mark.parametrize("when", [None, "2026-01-01T00:00:00Z"])
def test_times_stay_their_own(when: str | None) -> None:
    sharing = Sharing()
    sharing.pod(web(0, startTime="2026-01-02T00:00:00Z"))
    assert sharing.pod(web(1, startTime=when)).status.start_time == when


def test_it_does_not_grow_without_end() -> None:
    sharing = Sharing(at_most=10)
    for number in range(100):
        sharing.pod(web(number, phase=f"phase-{number}"))
        assert len(sharing) <= 20
