"""Random storage: both tiers of every volume plugin agree, and what is reserved can be given back."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.plugins.small_cluster import Cluster, node
from tests.plugins.storage import (
    BETA_ZONE,
    DRIVER,
    SELECTED_NODE,
    ZONE,
    attachment,
    capacity,
    claim,
    csi_driver,
    csi_node,
    pod,
    storage_class,
    volume,
)

from kubesched.api.objects import KubeObject, Pod
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.framework.status import Status
from kubesched.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.plugins.volume_binding import VolumeBinding
from kubesched.plugins.volume_restrictions import VolumeRestrictions
from kubesched.plugins.volume_zone import VolumeZone

NAMES = ("n0", "n1", "n2", "n3")
CLAIMS = ("c0", "c1", "c2", "c3")
ZONES = ("za", "zb", "zc")
EBS, EBS_ZONE = "kubernetes.io/aws-ebs", "topology.ebs.csi.aws.com/zone"

zones = st.sampled_from(ZONES)
sizes = st.sampled_from(["1Gi", "2Gi", "3Gi"])
classes = st.sampled_from(["made", "there", "late", "now", "missing", ""])
labels = st.dictionaries(st.sampled_from([ZONE, BETA_ZONE, EBS_ZONE, "disk"]), zones, max_size=3)
modes = st.sampled_from([["ReadWriteOnce"], ["ReadWriteOncePod"], ["ReadWriteOnce", "ReadOnlyMany"]])


@st.composite
def affinities(draw: st.DrawFn) -> Any:
    """Terms with labels in every operator, and now and then a field or nonsense."""
    requirement = st.fixed_dictionaries(
        {
            "key": st.sampled_from([ZONE, BETA_ZONE, "disk"]),
            "operator": st.sampled_from(["In", "In", "In", "NotIn", "Exists", "DoesNotExist", "Nonsense"]),
        }
    )
    terms = []
    for _ in range(draw(st.integers(0, 2))):
        written = [
            {**one, "values": draw(st.lists(zones, min_size=1, max_size=2)) if one["operator"].endswith("In") else []}
            for one in draw(st.lists(requirement, max_size=2))
        ]
        field = {"key": "metadata.name", "operator": "In", "values": [draw(st.sampled_from(NAMES))]}
        terms.append({"matchExpressions": written, "matchFields": [field] if draw(st.booleans()) else []})
    return {"required": {"nodeSelectorTerms": terms}}


@st.composite
def volumes(draw: st.DrawFn, name: str) -> KubeObject:
    more: dict[str, Any] = {"nodeAffinity": draw(affinities())} if draw(st.booleans()) else {}
    kind = draw(st.sampled_from(["csi", "ebs", "local"]))
    if kind == "ebs":
        more["awsElasticBlockStore"] = {"volumeID": f"vol-{draw(st.integers(0, 3))}"}
    owner = draw(st.sampled_from([None, None, *CLAIMS]))
    return volume(
        name,
        size=draw(sizes),
        storage_class=draw(classes),
        modes=draw(modes),
        labels=draw(labels),
        handle=name if kind == "csi" else "",
        of=None if owner is None else claim(owner),
        phase=draw(st.sampled_from(["Available", "Available", "Bound"])),
        **more,
    )


@st.composite
def claims(draw: st.DrawFn, name: str) -> KubeObject:
    promised = draw(st.sampled_from([None, None, None, *NAMES]))
    return claim(
        name,
        draw(st.sampled_from(["", "", "v0", "v1", "gone"])),
        storage_class=draw(classes),
        size=draw(st.one_of(st.none(), sizes)),
        modes=draw(modes),
        annotations={} if promised is None else {SELECTED_NODE: promised},
        bound=draw(st.sampled_from([None, None, None, False])),
    )


@st.composite
def pods(draw: st.DrawFn, name: str, on: str = "") -> Pod:
    disk = st.one_of(
        st.builds(lambda n: {"awsElasticBlockStore": {"volumeID": f"vol-{n}"}}, st.integers(0, 3)),
        st.builds(
            lambda n, ro: {"gcePersistentDisk": {"pdName": f"d{n}", "readOnly": ro}}, st.integers(0, 1), st.booleans()
        ),
    )
    inline = [{"name": f"i{i}", **one} for i, one in enumerate(draw(st.lists(disk, max_size=1)))]
    return pod(name, *draw(st.lists(st.sampled_from(CLAIMS), max_size=3)), volumes=inline, on=on)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    objects: list[KubeObject] = [
        storage_class("made", DRIVER, allowed=draw(st.sampled_from([[], [{ZONE: ["za", "zb"]}]]))),
        storage_class("there", "kubernetes.io/no-provisioner"),
        storage_class("late", EBS),
        storage_class("now", DRIVER, "Immediate"),
    ]
    if draw(st.booleans()):
        objects.append(csi_driver())
    for i in range(draw(st.integers(0, 3))):
        where = draw(st.sampled_from([None, {}, {ZONE: "za"}, {ZONE: "zb"}]))
        objects.append(capacity(f"k{i}", draw(sizes), where=where, storage_class="made"))
    for name in NAMES:
        objects.append(node(name, labels=draw(labels)))
        limit = draw(st.one_of(st.none(), st.integers(0, 3)))
        migrated = draw(st.sampled_from(["", EBS]))
        objects.append(csi_node(name, csi_example_com=limit, ebs_csi_aws_com=limit, migrated=migrated))
    objects += [draw(volumes(f"v{i}")) for i in range(draw(st.integers(0, 6)))]
    objects += [draw(claims(name)) for name in CLAIMS]
    objects += [attachment(f"a{i}", f"v{i}", node=draw(st.sampled_from(NAMES))) for i in range(draw(st.integers(0, 3)))]
    objects += [draw(pods(f"there-{i}", draw(st.sampled_from(NAMES)))) for i in range(draw(st.integers(0, 4)))]
    return Cluster(*objects)


@given(clusters(), pods("p"))
def test_both_tiers_say_the_same(cluster: Cluster, wanted: Pod) -> None:
    for plugin in (VolumeRestrictions(), NodeVolumeLimits(), VolumeBinding(), VolumeZone()):
        cluster.filter(plugin, wanted)  # asks both, and compares


@given(clusters(), pods("p"), st.data())
def test_what_is_reserved_can_be_given_back(cluster: Cluster, wanted: Pod, data: st.DataObject) -> None:
    plugin, cycle = VolumeBinding(), cluster.cycle(wanted)
    before = plugin.pre_filter(cycle, cycle.pod, cycle.nodes)
    assert isinstance(before, Status)
    fitting = [info.name for info in cycle.nodes if before.ok and plugin.filter(cycle, cycle.pod, info).ok]
    if not fitting:
        return
    chosen = data.draw(st.sampled_from(fitting))
    answers = cluster.filter(plugin, wanted)

    assert plugin.reserve(cycle, cycle.pod, chosen).ok
    assumed = cycle.objects.assumed()
    assert len({(obj.kind, obj.key) for obj in assumed}) == len(assumed)
    plugin.unreserve(cycle, cycle.pod, chosen)

    assert cycle.objects.assumed() == []
    assert cluster.filter(plugin, wanted) == answers


@given(clusters(), pods("p"))
def test_thinking_pods_away_and_back_changes_nothing(cluster: Cluster, wanted: Pod) -> None:
    plugin, cycle = VolumeRestrictions(), cluster.cycle(wanted)
    before = plugin.pre_filter(cycle, cycle.pod, cycle.nodes)
    assert isinstance(before, Status)
    if not before.ok:
        return
    answers = [plugin.filter(cycle, cycle.pod, info) for info in cycle.nodes]
    for row, there in enumerate(cycle.table.pods):
        for other in there:
            plugin.remove_pod(cycle, cycle.pod, other, NodeInfo(cycle.table, row))
            plugin.add_pod(cycle, cycle.pod, other, NodeInfo(cycle.table, row))
    assert [plugin.filter(cycle, cycle.pod, info) for info in cycle.nodes] == answers
