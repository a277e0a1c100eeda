"""ImageLocality: go where the images are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Literal

import numpy as np

from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Scores
from kubesched.framework.cycle import Cycle
from kubesched.framework.hooks import Signature
from kubesched.framework.profile import MAX_SCORE

_MEBIBYTE = 1024 * 1024
_FLOOR = 23 * _MEBIBYTE  # less than this on a node is as good as nothing
_CEILING = 1000 * _MEBIBYTE  # per container; more than this is not better still


class ImageLocality:
    """Prefer nodes that already have the pod's images.

    What it does:  adds up the sizes of those images of the pod that a node has, each scaled by the share of all
                   nodes that have it, so that one early node does not draw every pod to itself.
    Answers:       0 below 23 MiB, 100 above 1000 MiB per container, in proportion between.
    Wakes on:      nothing; it turns no pod down.
    Tiers:         score, score_all.
    Same as:       kube-scheduler ImageLocality, v1.36, but that an image counts on each node with the size that this
                   node reports, where a running kube-scheduler keeps the size it heard of first.
    """

    name = "ImageLocality"
    board: Literal["node", "row"] = "node"

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        here = 0
        for image in _images(pod):
            sizes = node.table.images.get(image, {})
            if node.row in sizes:
                here += int(float(sizes[node.row]) * _spread(sizes, cycle))
        return _mark(here, _ceiling(pod))

    def score_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Scores:
        known = [sizes for image in _images(pod) if (sizes := nodes.table.images.get(image))]
        if not known:
            return np.full(len(nodes), _mark(0, _ceiling(pod)), dtype=np.int64)
        here: Scores = np.zeros(len(nodes), dtype=np.int64)
        for sizes in known:
            here += (nodes.by_row(sizes).astype(np.float64) * _spread(sizes, cycle)).astype(np.int64)
        ceiling = _ceiling(pod)
        scores: Scores = MAX_SCORE * (np.maximum(np.minimum(here, ceiling), _FLOOR) - _FLOOR) // (ceiling - _FLOOR)
        return scores

    def outlook(self, cycle: Cycle, pod: PodInfo) -> Hashable:
        images = cycle.table.images
        return len(cycle.table), tuple(len(images[image]) if image in images else 0 for image in _images(pod))

    def sign_pod(self, pod: PodInfo) -> Signature:
        return (("v1.Pod.Spec.CanonicalImageNames()", (_container_count(pod), tuple(sorted(_images(pod))))),)


def normalized_image_name(name: str) -> str:
    """An image as nodes report it: without a tag it is the latest."""
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name


def _images(pod: PodInfo) -> list[str]:
    """The images the pod will need, once per use."""
    spec = pod.pod.spec
    names = [container.image for container in spec.init_containers + spec.containers]
    names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return [normalized_image_name(name) for name in names]


def _container_count(pod: PodInfo) -> int:
    return len(pod.pod.spec.init_containers) + len(pod.pod.spec.containers)


def _mark(here: int, ceiling: int) -> int:
    return MAX_SCORE * (max(min(here, ceiling), _FLOOR) - _FLOOR) // (ceiling - _FLOOR)


def _ceiling(pod: PodInfo) -> int:
    return _CEILING * _container_count(pod)


def _spread(sizes: Mapping[int, int], cycle: Cycle) -> float:
    """The share of all nodes that have an image."""
    return float(len(sizes)) / float(len(cycle.nodes))
