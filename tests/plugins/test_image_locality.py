from typing import Any

import pytest
from tests.plugins.small_cluster import Cluster, container, node, pod

from kubesched.cluster.podinfo import PodInfo
from kubesched.plugins.image_locality import ImageLocality, normalized_image_name

MIB = 1024 * 1024


def images(*names: str, init: tuple[str, ...] = ()) -> dict[str, Any]:
    """The containers of a pod with these images."""
    return {
        "containers": [container(image=name) for name in names],
        "initContainers": [container(image=name) for name in init],
    }


CLUSTER = Cluster(
    node("web", images={"web:1": 500 * MIB, "proxy:1": 23 * MIB}),
    node("both", images={"web:1": 500 * MIB, "db:latest": 2000 * MIB}),
    node("none"),
    node("small", images={"tiny:1": 60 * MIB}),
)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        # half of the nodes have it: 250 MiB of it count; (250 − 23) / (1000 − 23) = 23.2 %
        pytest.param(images("web:1"), {"web": 23, "both": 23, "none": 0, "small": 0}, id="an image two nodes have"),
        # a quarter: 500 MiB; (500 − 23) / 977
        pytest.param(images("db"), {"web": 0, "both": 48, "none": 0, "small": 0}, id="no tag is the latest"),
        # a quarter of 60 MiB is below the floor
        pytest.param(images("tiny:1"), {"web": 0, "both": 0, "none": 0, "small": 0}, id="too small to matter"),
        # two containers: the ceiling is 2000 MiB; (250 + 500 − 23) / 1977
        pytest.param(images("web:1", "db:latest"), {"web": 11, "both": 36, "none": 0, "small": 0}, id="two images"),
        pytest.param(images("web:1", init=("db",)), {"web": 11, "both": 36, "none": 0, "small": 0}, id="init counts"),
        pytest.param(images("web:1", "web:1"), {"web": 24, "both": 24, "none": 0, "small": 0}, id="twice the same"),
        pytest.param(images("web:2"), {"web": 0, "both": 0, "none": 0, "small": 0}, id="another tag"),
    ],
)
def test_scores(spec: dict[str, Any], expected: dict[str, int]) -> None:
    assert CLUSTER.scores(ImageLocality(), pod(**spec)) == expected


def test_an_image_volume_adds_its_size_but_does_not_raise_the_ceiling() -> None:
    volume = {"name": "data", "image": {"reference": "db"}}
    assert CLUSTER.scores(ImageLocality(), pod(**images("web:1"), volumes=[volume]))["both"] == 74


def test_more_than_enough_is_enough() -> None:
    cluster = Cluster(node("n1", images={"huge:1": 9000 * MIB}))
    assert cluster.scores(ImageLocality(), pod(**images("huge:1"))) == {"n1": 100}


def test_every_node_counts_with_the_size_it_reports() -> None:
    cluster = Cluster(node("n1", images={"a:1": 1000 * MIB}), node("n2", images={"a:1": 100 * MIB}))
    assert cluster.scores(ImageLocality(), pod(**images("a:1"))) == {"n1": 100, "n2": 7}


def test_an_image_that_was_removed_counts_no_more() -> None:
    cluster = Cluster(node("n1", images={"a:1": 500 * MIB}), node("n2", images={"a:1": 500 * MIB}))
    wanted = pod(**images("a:1"))
    assert cluster.scores(ImageLocality(), wanted) == {"n1": 48, "n2": 48}

    cluster.mirror.observe(node("n2"))

    assert cluster.scores(ImageLocality(), wanted) == {"n1": 23, "n2": 0}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("root", "root:latest"),
        ("root:tag", "root:tag"),
        ("gcr.io:5000/root", "gcr.io:5000/root:latest"),
        ("gcr.io:5000/root:tag", "gcr.io:5000/root:tag"),
        ("root@sha256:abc", "root@sha256:abc"),
        ("", ":latest"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(name: str, expected: str) -> None:
    assert normalized_image_name(name) == expected


def test_the_order_of_images_does_not_sign_and_their_number_does() -> None:
    signs = [ImageLocality().sign_pod(PodInfo(pod(**images(*names)))) for names in (("a", "b:1"), ("b:1", "a:latest"))]
    assert signs[0] == signs[1]
    assert ImageLocality().sign_pod(PodInfo(pod(**images("a", "b:1", "a")))) != signs[0]
