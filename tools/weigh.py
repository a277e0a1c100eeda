"""Weigh what we stand on: the figures of docs/dependencies.md, measured again on this machine.

    python tools/weigh.py

Each line compares a library with what we would do without it.  Trust the ratios; the microseconds belong to the
machine.
"""

import json
import subprocess
import sys
import timeit
import tracemalloc
from collections.abc import Callable
from http.client import parse_headers
from io import BytesIO
from typing import Any

import httptools
import msgspec
import numpy as np
import yaml
from prometheus_client import CollectorRegistry, Counter

from kubesched.api.objects import Pod


def pod_as_sent(index: int) -> dict[str, Any]:
    """A pod as an API server sends it: mostly what no scheduler reads."""
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}
    container = {
        "image": "registry/app:v1",
        "env": [{"name": f"SETTING_{n}", "value": "x" * 40} for n in range(12)],
        "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
        "terminationMessagePath": "/dev/termination-log",
        "securityContext": {"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
    }
    field: dict[str, Any] = {"f:name": {}, "f:value": {}, "f:resources": {"f:limits": {}}}
    managed = {f"k:{n}": field for n in range(30)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"web-{index}",
            "namespace": "default",
            "uid": f"00000000-0000-0000-0000-{index:012}",
            "resourceVersion": str(index),
            "labels": {"app": "web", "tier": "front"},
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": managed}],
        },
        "spec": {"nodeName": "node-3", "containers": [{"name": name, **container} for name in ("app", "side")]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}] * 4},
    }


def microseconds(run: Callable[[], object]) -> float:
    """The best of five tries, each of about a fifth of a second."""
    timer = timeit.Timer(run)
    count, took = timer.autorange()
    count = max(1, int(count * 0.2 / max(took, 1e-9)))
    return min(timer.repeat(5, count)) / count * 1e6


def kilobytes_kept(make: Callable[[bytes], object], texts: list[bytes]) -> float:
    """What one decoded object holds on to."""
    tracemalloc.start()
    kept = [make(text) for text in texts]
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used / len(kept) / 1e3


def import_milliseconds(*modules: str) -> float:
    """How much longer an interpreter takes to start with these modules, at best."""

    def start(program: str) -> float:
        command = [sys.executable, "-c", program]
        return min(timeit.repeat(lambda: subprocess.run(command, check=True), number=1, repeat=5))

    return (start(f"import {', '.join(modules)}") - start("pass")) * 1e3


def least_free(count: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """One filter and one score over some nodes: with objects, and in columns."""
    luck = np.random.default_rng(1)
    allocatable = luck.integers(8, 64, count) * 1000
    requested = luck.integers(0, 8, count) * 1000
    nodes = [{"allocatable": int(a), "requested": int(r)} for a, r in zip(allocatable, requested, strict=True)]

    def objects() -> int:
        fit = [n for n in nodes if n["allocatable"] - n["requested"] >= 500]
        return max((n["allocatable"] - n["requested"] - 500) * 100 // n["allocatable"] for n in fit)

    def columns() -> Any:
        free = allocatable - requested - 500
        return (free * 100 // allocatable)[free >= 0].max()

    assert objects() == columns()
    return objects, columns


REQUEST = b"\r\n".join(
    [b"GET /api/v1/namespaces/default/pods/web-7 HTTP/1.1", b"Host: 127.0.0.1:6443", b"Accept: application/json",
     b"Authorization: Bearer 0123456789012345678901234567890123456789012", b"User-Agent: kubectl/v1.36.4", b"", b""]
)  # fmt: skip


class Parsed:
    """What is to be known of a request, as callbacks tell it."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}

    def on_url(self, url: bytes) -> None:
        self.url = url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value


def parsed_in_c() -> None:
    httptools.HttpRequestParser(Parsed()).feed_data(REQUEST)


def parsed_in_python() -> None:
    """By the standard library, which reads headers as those of a letter."""
    first, _, rest = REQUEST.partition(b"\r\n")
    first.split()
    parse_headers(BytesIO(rest))


def main() -> None:
    texts = [json.dumps(pod_as_sent(index)).encode() for index in range(500)]
    decode = msgspec.json.Decoder(Pod).decode
    manifest = yaml.safe_dump(pod_as_sent(1))
    objects, columns = least_free(5_000)
    child = Counter("seen", "Things seen.", ["kind"], registry=CollectorRegistry()).labels("Pod")
    text = texts[7]

    def compare(what: str, unit: str, **figures: float) -> None:
        print(f"{what:<46}", " · ".join(f"{name} {figure:,.2f} {unit}" for name, figure in figures.items()))

    compare(
        f"decode a pod of {len(text) / 1e3:.1f} kB",
        "µs",
        msgspec=microseconds(lambda: decode(text)),
        json=microseconds(lambda: json.loads(text)),
    )
    compare(
        "keep it",
        "kB",
        msgspec=kilobytes_kept(decode, texts),
        json=kilobytes_kept(json.loads, texts),
    )
    compare("a filter and a score over 5,000 nodes", "µs", numpy=microseconds(columns), objects=microseconds(objects))
    compare(
        "read the head of a request",
        "µs",
        httptools=microseconds(parsed_in_c),
        python=microseconds(parsed_in_python),
    )
    compare("count one thing", "µs", prometheus_client=microseconds(child.inc))
    compare(
        f"read {len(manifest) / 1e3:.1f} kB of YAML",
        "µs",
        libyaml=microseconds(lambda: yaml.load(manifest, yaml.CSafeLoader)),
        python=microseconds(lambda: yaml.load(manifest, yaml.SafeLoader)),
    )
    compare("import", "ms", click=import_milliseconds("click"), both=import_milliseconds("click", "rich.table"))


if __name__ == "__main__":
    main()
