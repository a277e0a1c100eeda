"""Hypothesis strategies for nodes, pods and clusters: the same the conformance kit draws from.

    from hypothesis import given
    from kubesched.testing.strategies import nodes, pods

    @given(pod=pods(about=("taints",)), node=nodes(about=("taints",)))
    def test_of_your_own(pod, node): ...

What varies is said by themes (`THEMES`): labels, taints, resources, ports, images, spread, affinity, storage, gates,
features, priority, names, claims, and `words` for labels of your own.  Values are few, so that things happen to meet;
what fails is made smaller the way Hypothesis does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st
from msgspec import Struct

from kubesched.api.objects import KINDS, KubeObject, Node, Pod, read
from kubesched.testing.kit import generator
from kubesched.testing.kit.dice import Dice
from kubesched.testing.kit.generator import NODES, THEMES, Plan
from kubesched.testing.kit.situation import Json
from kubesched.testing.kit.themes import Words

__all__ = ["THEMES", "Drawn", "clusters", "nodes", "pods"]

Labels = Mapping[str, Sequence[str]]


class Drawn(Struct, frozen=True):
    """A cluster and who wants in.

    Attributes:
        objects: nodes, the pods on them, and whatever else the themes are about.
        pod: a pod without a node.
        others: more of them.
    """

    objects: tuple[KubeObject, ...]
    pod: Pod
    others: tuple[Pod, ...]


@st.composite
def nodes(draw: st.DrawFn, name: str | None = None, *, about: Sequence[str] = (), labels: Labels | None = None) -> Node:
    """A node.

    Args:
        name: its name; one of a few where none is given.
        about: the themes; all where none is named.
        labels: labels of your own with the values they may have.
    """
    dice, (themes, words) = _dice(draw), _chosen(about, labels)
    return read(generator.node(dice, words, name or dice.pick(NODES), [THEMES[one] for one in themes]), Node)


@st.composite
def pods(
    draw: st.DrawFn, name: str = "p", *, on: str = "", about: Sequence[str] = (), labels: Labels | None = None
) -> Pod:
    """A pod; `on` is the node it is on already."""
    themes, words = _chosen(about, labels)
    return read(generator.pod(_dice(draw), words, name, [THEMES[one] for one in themes], on=on), Pod)


@st.composite
def clusters(draw: st.DrawFn, *, about: Sequence[str] = (), labels: Labels | None = None) -> Drawn:
    """A cluster of one to three nodes, with pods on them and pods that want in."""
    themes, words = _chosen(about, labels)
    found, _ = generator.situation(_dice(draw), Plan(dict.fromkeys(themes, 1), words))
    return Drawn(tuple(map(_view, found.objects)), read(found.pod, Pod), tuple(read(one, Pod) for one in found.others))


def _dice(draw: st.DrawFn) -> Dice:
    return Dice(lambda below: draw(st.integers(0, below - 1)))


def _chosen(about: Sequence[str], labels: Labels | None) -> tuple[list[str], Words]:
    words = Words({key: tuple(values) for key, values in (labels or {}).items()})
    chosen = [name for name in generator.themes(about, words) if about or name != "names"]  # names: it has a node
    return chosen, words


def _view(raw: Json) -> KubeObject:
    return read(raw, KINDS[raw["kind"]])
