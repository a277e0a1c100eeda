"""What is weighed: objects as long as real ones, and a core that knows all of them."""

import subprocess
import sys
from pathlib import Path

from kubesched.bench import memory

PODS = 400
KEPT_AT_MOST = 3_200  # bytes; some of them for what all pods share


def test_the_objects_are_as_long_as_real_ones() -> None:
    footprint = memory.measure(4, 20)
    assert (footprint.nodes, footprint.pods) == (4, 20)
    assert 10_000 <= footprint.node_json_bytes <= 12_000
    assert 6_000 <= footprint.pod_json_bytes <= 8_000
    assert footprint.resident_mib > 0


def test_a_bound_pod_keeps_no_more_than_it_did() -> None:
    script = Path(__file__).with_name("weighing.py")
    done = subprocess.run([sys.executable, str(script), str(PODS)], capture_output=True, text=True, check=True)
    assert 500 < float(done.stdout) <= KEPT_AT_MOST
