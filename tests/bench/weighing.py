"""How many bytes a core keeps for each pod it is told of: printed, by a process in which nothing else has happened."""

import gc
import json
import sys
import tracemalloc

import msgspec

from kubesched.api.objects import Node, Pod, read
from kubesched.assemble import build
from kubesched.bench import memory
from kubesched.bench.throughput import tell
from kubesched.bench.workload import nodes_of


def weigh(pods: int) -> float:
    core = build(checks=False, seed=1)
    for one in nodes_of(20):
        tell(core, read(msgspec.to_builtins(one), Node))
    gc.collect()
    tracemalloc.start()
    for i in range(pods):
        of_few_workloads = 500 * (i // 20) + i % 20
        raw = json.loads(json.dumps(memory._pod(of_few_workloads, f"node-{i % 20}")))
        tell(core, read(raw, Pod))
    del raw
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    assert len(core.mirror.placed) == pods
    return kept / pods


if __name__ == "__main__":
    print(weigh(int(sys.argv[1])))
