"""The mirror and its trials against a model that keeps lists and counts everything afresh, whatever happens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubesched.api.objects import Invalid, Node, ObjectMeta, Pod
from kubesched.cluster.columns import Nodes
from kubesched.cluster.mirror import Mirror
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.table import NodeTable
from kubesched.cluster.trial import Trial
from kubesched.testing import changed, node, pod

NODES = ("n1", "n2", "n3", "n4")
PODS = ("a", "b", "c", "d", "e")
names, places = st.sampled_from(PODS), st.sampled_from((*NODES, "nowhere"))
zones = st.sampled_from(("", "za", "zb"))
CLOSE = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
shapes = st.fixed_dictionaries(
    {"cpu": st.sampled_from((None, 0, 1, "1500m")), "labels": st.sampled_from(({}, {"app": "x"}, {"app": "y"}))},
    optional={
        "ports": st.sampled_from(([80], [81], [80, 81])),
        "claims": st.sampled_from((["data"], ["data", "logs"], ["data", "data"])),
        "affinity": st.just(CLOSE),
        "resources": st.sampled_from(({"example.com/gpu": 1}, {"example.com/rare": 2})),
        "deleting": st.just(True),
    },
)


@dataclass
class Model:
    """What has been told last, and what is assumed beyond it."""

    nodes: dict[str, Node] = field(default_factory=dict)
    tree: list[tuple[str, list[str]]] = field(default_factory=list)  # zones in order, nodes in them in order
    listed: list[str] = field(default_factory=list)
    pods: dict[str, Pod] = field(default_factory=dict)
    assumed: dict[str, tuple[Pod, str]] = field(default_factory=dict)  # by uid

    def where(self) -> list[tuple[Pod, str]]:
        """Everybody who holds room, and where."""
        told = [(pod, pod.spec.node_name) for pod in self.pods.values() if pod.spec.node_name]
        settled = {pod.uid for pod, _ in told}
        return told + [held for uid, held in self.assumed.items() if uid not in settled]

    def on(self, name: str) -> list[PodInfo]:
        return [PodInfo(pod) for pod, where in self.where() if where == name]

    def put(self, name: str, zone: str) -> None:
        for key, inside in self.tree:
            if key == zone:
                inside.append(name)
                return
        self.tree.append((zone, [name]))

    def take(self, name: str) -> None:
        for _, inside in self.tree:
            if name in inside:
                inside.remove(name)
        self.tree = [(key, inside) for key, inside in self.tree if inside]

    def relist(self) -> None:
        deepest = max((len(inside) for _, inside in self.tree), default=0)
        self.listed = [inside[i] for i in range(deepest) for _, inside in self.tree if i < len(inside)]


def fingerprint(table: NodeTable) -> object:
    """Everything about a table that a reader can see."""
    rows = sorted(table.row_of.values())
    classes = {
        (kind.namespace, tuple(sorted(kind.labels.items())), kind.terminating): dict(sorted(kind.rows.items()))
        for kind in table.neighbours.classes()
    }
    holders = {held.example.affinity_key: dict(sorted(held.rows.items())) for held in table.neighbours.holders()}
    return (
        {name: [pod.uid for pod in table.pods[row]] for name, row in table.row_of.items()},
        {name: sorted(pods) for name, pods in table.stray.items()},
        [table.requested[row].tolist() for row in rows],
        [table.nonzero_requested[row].tolist() for row in rows],
        [int(table.generation[row]) for row in rows],
        [dict(table.ports[row]) for row in rows],
        {claim: dict(sorted(counts.items())) for claim, counts in table.claims.items()},
        classes,
        holders,
        dict(table.place_of),
        table.clock,
    )


class MirrorAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.mirror = Mirror()
        self.model = Model()
        self.version = 100
        self.born = 0
        self.trial: Trial | None = None
        self.marks: list[tuple[int, list[tuple[PodInfo, str]], list[tuple[PodInfo, str]]]] = []
        self.untouched: object = None
        self.tried: list[tuple[PodInfo, str]] = []  # what the trial adds to the model
        self.missing: list[tuple[PodInfo, str]] = []  # and what it takes away

    def next_version(self) -> int:
        self.version += 1
        return self.version

    # ── nodes ────────────────────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.trial is None)
    @rule(name=st.sampled_from(NODES), zone=zones, cpu=st.sampled_from((1, 4)), again=st.booleans())
    def a_node_is_told(self, name: str, zone: str, cpu: int, again: bool) -> None:
        known = self.model.nodes.get(name)
        keep = known is not None and not again
        self.born += not keep
        uid = known.uid if keep and known is not None else f"{name}-{self.born}"
        new = node(name, cpu=cpu, zone=zone, uid=uid, version=self.next_version(), labels={"rack": zone or "none"})
        self.mirror.observe(new)
        if not keep:
            self.model.take(name)
        self.move_in_tree(name, zone, known if keep else None)
        self.model.nodes[name] = new
        if not keep:
            self.model.relist()

    def move_in_tree(self, name: str, zone: str, known: Node | None) -> None:
        before = None if known is None else known.labels.get("topology.kubernetes.io/zone", "")
        if before != zone:
            self.model.take(name)
            self.model.put(name, zone)

    @precondition(lambda self: self.trial is None and self.model.nodes)
    @rule(data=st.data(), readable=st.booleans())
    def a_node_goes(self, data: st.DataObject, readable: bool) -> None:
        gone = self.model.nodes.pop(data.draw(st.sampled_from(sorted(self.model.nodes))))
        self.model.take(gone.name)
        self.model.relist()
        self.mirror.observe(gone if readable else self.unreadable(gone), gone=True)

    # ── pods ─────────────────────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.trial is None)
    @rule(name=names, shape=shapes, on=st.one_of(st.just(""), places), again=st.booleans())
    def a_pod_is_told(self, name: str, shape: dict, on: str, again: bool) -> None:
        known = self.model.pods.get(name)
        keep = known is not None and not again
        if keep and known is not None:
            on = known.spec.node_name or on  # nobody is ever unbound
        self.born += not keep
        uid = known.uid if keep and known is not None else f"{name}-{self.born}"
        new = pod(name, on=on, uid=uid, version=self.next_version(), **shape)
        self.mirror.observe(new)
        if known is not None and not keep:
            self.forget_in_model(known.uid)
        if on:
            self.forget_in_model(uid)
        self.model.pods[name] = new

    def forget_in_model(self, uid: str) -> None:
        """A namesake of an assumed pod: its flight is over, and the core gives its room back."""
        if self.model.assumed.pop(uid, None) is not None:
            self.mirror.forget(uid)

    @precondition(lambda self: self.trial is None and self.model.pods)
    @rule(data=st.data(), how=st.sampled_from(("gone", "finished", "unreadable")))
    def a_pod_goes(self, data: st.DataObject, how: str) -> None:
        gone = self.model.pods.pop(data.draw(st.sampled_from(sorted(self.model.pods))))
        self.forget_in_model(gone.uid)
        if how == "finished":
            meta = {"resourceVersion": str(self.next_version())}
            self.mirror.observe(changed(gone, status={"phase": "Failed"}, metadata=meta))
        else:
            self.mirror.observe(gone if how == "gone" else self.unreadable(gone), gone=True)

    @precondition(lambda self: self.trial is None and (self.model.pods or self.model.nodes))
    @rule(data=st.data(), late=st.booleans())
    def something_is_told_again_or_late_or_unreadably(self, data: st.DataObject, late: bool) -> None:
        """None of which changes anything."""
        known = [*self.model.pods.values(), *self.model.nodes.values()]
        obj = data.draw(st.sampled_from(known))
        if data.draw(st.booleans(), label="unreadable"):
            self.mirror.observe(self.unreadable(obj))
        else:
            old = {"resourceVersion": "1", "uid": data.draw(st.sampled_from((obj.uid, "an earlier one")))}
            self.mirror.observe(changed(obj, metadata=old) if late else obj)

    def unreadable(self, obj: Node | Pod) -> Invalid:
        meta = ObjectMeta(
            name=obj.name, namespace=obj.namespace, uid=obj.uid, resource_version=str(self.next_version())
        )
        return Invalid(metadata=meta, of=obj.kind, error="spec: expected object, got str")

    @precondition(lambda self: self.trial is None)
    @rule(name=names, on=places)
    def a_pod_is_assumed(self, name: str, on: str) -> None:
        waiting = self.model.pods.get(name)
        if waiting is not None and not waiting.spec.node_name and waiting.uid not in self.model.assumed:
            self.mirror.assume(PodInfo(waiting), on)
            self.model.assumed[waiting.uid] = (waiting, on)

    @precondition(lambda self: self.trial is None and self.model.assumed)
    @rule(data=st.data())
    def an_assumed_pod_is_forgotten(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.model.assumed)))
        assert self.mirror.forget(uid)
        assert not self.mirror.forget(uid)
        del self.model.assumed[uid]

    # ── trials ───────────────────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.trial is None)
    @rule()
    def a_trial_begins(self) -> None:
        self.untouched = fingerprint(self.mirror.table)
        self.trial = Trial(self.mirror.table)

    def now_on_nodes(self) -> list[tuple[PodInfo, str]]:
        gone = {info.uid for info, _ in self.missing}
        told = [(PodInfo(pod), where) for pod, where in self.model.where() if pod.uid not in gone]
        return told + self.tried

    @precondition(lambda self: self.trial is not None)
    @rule(shape=shapes, on=places)
    def a_pod_is_tried(self, shape: dict, on: str) -> None:
        assert self.trial is not None
        self.born += 1
        info = PodInfo(pod("tried", uid=f"tried-{self.born}", **shape))
        self.trial.place(info, on)
        self.tried.append((info, on))

    @precondition(lambda self: self.trial is not None and self.now_on_nodes())
    @rule(data=st.data())
    def a_pod_is_evicted(self, data: st.DataObject) -> None:
        assert self.trial is not None
        info, where = data.draw(st.sampled_from(self.now_on_nodes()))
        self.trial.evict(info, where)
        if (info, where) in self.tried:
            self.tried.remove((info, where))
        else:
            self.missing.append((info, where))

    @precondition(lambda self: self.trial is not None)
    @rule()
    def a_mark_is_set(self) -> None:
        assert self.trial is not None
        self.marks.append((self.trial.checkpoint(), [*self.tried], [*self.missing]))

    @precondition(lambda self: self.marks)
    @rule(data=st.data())
    def a_trial_goes_back_to_a_mark(self, data: st.DataObject) -> None:
        assert self.trial is not None
        index = data.draw(st.integers(0, len(self.marks) - 1))
        mark, self.tried, self.missing = self.marks[index]
        del self.marks[index:]
        self.trial.rollback(mark)

    @precondition(lambda self: self.trial is not None)
    @rule()
    def a_trial_ends_and_leaves_no_trace(self) -> None:
        assert self.trial is not None
        with self.trial:
            pass
        self.trial, self.marks, self.tried, self.missing = None, [], [], []
        assert fingerprint(self.mirror.table) == self.untouched

    # ── what must hold at any moment ─────────────────────────────────────────────────────────────────────────

    @invariant()
    def the_nodes_are_those_told_in_their_order(self) -> None:
        table = self.mirror.table
        assert [table.names[row] for row in table.rows.tolist()] == self.model.listed
        assert {name: table.nodes[row] for name, row in table.row_of.items()} == self.model.nodes
        assert len(table) == len(self.model.nodes)

    @invariant()
    def every_row_is_the_sum_of_its_pods(self) -> None:
        table = self.mirror.table
        for name, row in table.row_of.items():
            pods = [info for info, where in self.now_on_nodes() if where == name]
            info = NodeInfo(table, row)
            assert sorted(p.uid for p in info.pods) == sorted(p.uid for p in pods)
            wanted: Counter[str] = Counter()
            for p in pods:
                wanted.update(p.usage)
            for resource in table.resources:
                assert info.requested(resource) == (len(pods) if resource == "pods" else wanted[resource])
            for i, resource in enumerate(("cpu", "memory")):
                assert info.nonzero_requested(resource) == sum(p.nonzero_usage[i] for p in pods)
            assert dict(info.ports) == Counter(port for p in pods for port in p.host_ports)
            assert info.allocatable("cpu") == int(str(self.model.nodes[name].status.allocatable["cpu"])) * 1000

    @invariant()
    def neighbours_and_claims_are_counted_by_row(self) -> None:
        table = self.mirror.table
        here = [(info, table.row_of[where]) for info, where in self.now_on_nodes() if where in table.row_of]
        classes = Counter((info.class_key, row) for info, row in here)
        told = {(key, row): n for key, rows in self.classes().items() for row, n in rows.items()}
        assert told == classes
        held = Counter((info.affinity_key, row) for info, row in here if info.has_affinity)
        assert {
            (h.example.affinity_key, row): n for h in table.neighbours.holders() for row, n in h.rows.items()
        } == held
        claims = Counter((f"default/{claim}", row) for info, row in here for claim in info.claims)
        assert {(claim, row): n for claim, rows in table.claims.items() for row, n in rows.items()} == claims

    def classes(self) -> dict[object, dict[int, int]]:
        kinds = self.mirror.table.neighbours.classes()
        return {(k.namespace, tuple(sorted(k.labels.items())), k.terminating): k.rows for k in kinds}

    @invariant()
    def those_on_nodes_nobody_told_of_are_kept_aside(self) -> None:
        table = self.mirror.table
        aside = {(info.uid, where) for info, where in self.now_on_nodes() if where not in table.row_of}
        assert {(uid, where) for where, pods in table.stray.items() for uid in pods} == aside

    @invariant()
    def labels_are_columns(self) -> None:
        nodes = Nodes(self.mirror.table, self.mirror.table.rows)
        values = nodes.label_values("rack")
        racks = [values[code] if code >= 0 else None for code in nodes.label("rack").tolist()]
        assert racks == [self.model.nodes[name].labels["rack"] for name in nodes.names]

    @invariant()
    def a_fork_stays_as_it_was(self) -> None:
        if self.trial is None:
            assert fingerprint(self.mirror.table.fork()) == fingerprint(self.mirror.table)

    @invariant()
    def generations_never_repeat_and_never_pass_the_clock(self) -> None:
        table = self.mirror.table
        rows = list(table.row_of.values())
        assert np.all(table.generation[rows] <= table.clock)
        if self.trial is None:
            assert len(set(table.generation[rows].tolist())) == len(rows)

    @initialize()
    def begin(self) -> None:
        self.mirror.table.label("rack")

    def teardown(self) -> None:
        if self.trial is not None:
            self.trial.rollback()


TestMirrorAgainstModel = MirrorAgainstModel.TestCase
