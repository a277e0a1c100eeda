"""What is weighed: objects as long as real ones, and a core that knows all of them."""

import gc
import json
import tracemalloc

import msgspec

from kubesched.api.objects import Node, Pod, read
from kubesched.assemble import build
from kubesched.bench import memory
from kubesched.bench.throughput import tell
from kubesched.bench.workload import nodes_of

PODS = 400
KEPT_AT_MOST = 3_200  # bytes; some of them for what all pods share


def test_the_objects_are_as_long_as_real_ones() -> None:
    footprint = memory.measure(4, 20)
    assert (footprint.nodes, footprint.pods) == (4, 20)
    assert 10_000 <= footprint.node_json_bytes <= 12_000
    assert 6_000 <= footprint.pod_json_bytes <= 8_000
    assert footprint.resident_mib > 0


def test_a_bound_pod_keeps_no_more_than_it_did() -> None:
    core = build(checks=False, seed=1)
    for one in nodes_of(20):
        tell(core, read(msgspec.to_builtins(one), Node))
    gc.collect()
    tracemalloc.start()
    try:
        for i in range(PODS):
            of_few_workloads = 500 * (i // 20) + i % 20
            raw = json.loads(json.dumps(memory._pod(of_few_workloads, f"node-{i % 20}")))
            tell(core, read(raw, Pod))
        del raw
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(core.mirror.placed) == PODS
    assert kept / PODS <= KEPT_AT_MOST
