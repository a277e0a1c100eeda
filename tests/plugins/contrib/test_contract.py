"""The four keep the rules that every plugin keeps."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.config.registry import Registry
from kubesched.testing import conformance

OFFERS: list[dict[str, Any]] = [  # each in two versions, so that one becomes the other
    {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ClusterScopedResource",
        "metadata": {"name": f"n{number}"},
        "spec": {"resourcesFilter": {"cpu": cpu, "memory": number % 2 == 0}, "resourcesScore": {"cpu": score}},
    }
    for number in range(1, 4)
    for cpu, score in ((True, number * 10), (number == 1, 200 - 100 * number))
]

SEEN = {  # what must have happened for the answer to mean anything
    "NodeNumber": ("scored above 0",),
    "SampleFilter": ("turned down", "let through", "fits at last"),
    "QOSSort": ("sorted",),
    "ScoreByLabel": ("scored above 0", "told apart"),
    "NodeCRDResourceFit": ("turned down", "let through", "scored above 0", "fits at last"),
}

HOW: dict[str, dict[str, Any]] = {
    "NodeNumber": {},
    "SampleFilter": {"labels": {"cpu": ("true", "false")}},
    "QOSSort": {},
    "ScoreByLabel": {"labels": {"score-by-label": ("10", "5", "1", "-3", "many")}},
    "NodeCRDResourceFit": {"objects": OFFERS},
}


@pytest.mark.parametrize("name", HOW)
def test_it_keeps_the_rules(name: str) -> None:
    report = conformance(Registry().get(name), **HOW[name])
    assert [what for what in SEEN[name] if not report.seen[what]] == []
