"""What is deployed follows from a configuration: no right too many, nothing written by hand, nothing stale."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubesched import __version__
from kubesched.assemble import profiles_of
from kubesched.cli.main import run
from kubesched.config.load import load, load_text
from kubesched.config.schema import LeaderElection
from kubesched.framework.errors import ConfigError
from kubesched.live.deploying import chart_template, deploy_files
from kubesched.live.manifests import Placing, objects, placed, role_objects
from kubesched.live.role import Right, cluster_rights, lease_rights, merged, rules

DEPLOY = Path(__file__).parents[2] / "deploy"


def rights(**said: Any) -> dict[str, tuple[str, ...]]:
    """By resource, the verbs a configuration needs in the whole cluster."""
    return {right.resource: right.verbs for right in cluster_rights(profiles_of(load(said)))}


def without(*plugins: str) -> dict[str, Any]:
    disabled = [{"name": name} for name in plugins]
    return {"profiles": [{"schedulerName": "own", "plugins": {"multiPoint": {"disabled": disabled}}}]}


# ── rights ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_default_profile_may_read_what_its_plugins_read() -> None:
    found = rights()
    assert found["nodes"] == ("list", "watch")
    assert found["pods"] == ("get", "list", "watch", "delete")
    assert found["pods/binding"] == ("create",)
    assert found["persistentvolumeclaims"] == ("list", "watch", "patch")
    assert "secrets" not in found
    assert "configmaps" not in found


def test_nothing_is_granted_by_star() -> None:
    for one in role_objects(LeaderElection(), profiles_of(load({})), Placing()):
        assert "*" not in json.dumps(one.get("rules", []))


@pytest.mark.parametrize(
    ("plugins", "gone"),
    [
        (("DefaultPreemption",), ("poddisruptionbudgets",)),
        (("InterPodAffinity",), ("namespaces",)),
        (("PodTopologySpread",), ("services", "replicationcontrollers", "replicasets", "statefulsets")),
        (("NodeVolumeLimits",), ("volumeattachments",)),
        (("VolumeBinding",), ("csistoragecapacities",)),
    ],
)
def test_a_plugin_that_is_off_takes_its_rights_along(plugins: tuple[str, ...], gone: tuple[str, ...]) -> None:
    assert set(rights()) - set(rights(**without(*plugins))) == set(gone)


def test_without_preemption_no_pod_may_be_deleted() -> None:
    assert "delete" not in rights(**without("DefaultPreemption"))["pods"]


def test_without_volume_binding_no_volume_may_be_changed() -> None:
    assert rights(**without("VolumeBinding"))["persistentvolumes"] == ("list", "watch")


def test_the_lease_is_named_but_for_its_creation() -> None:
    assert lease_rights(LeaderElection(resource_name="own")) == [
        Right("coordination.k8s.io", "leases", ("create",)),
        Right("coordination.k8s.io", "leases", ("get", "watch", "update"), ("own",)),
    ]
    assert lease_rights(LeaderElection(leader_elect=False)) == []


def test_rights_are_merged_and_resources_alike_share_a_rule() -> None:
    told = merged([Right("", "b", ("watch",)), Right("", "a", ("list",)), Right("", "b", ("list",))])
    assert told == [Right("", "a", ("list",)), Right("", "b", ("list", "watch"))]
    same = [Right("", "a", ("list",)), Right("", "b", ("list",)), Right("x", "c", ("list",))]
    assert [rule["resources"] for rule in rules(same)] == [["a", "b"], ["c"]]


# ── a configuration, placed ──────────────────────────────────────────────────────────────────────────────────


def test_beside_kube_scheduler_it_has_a_name_and_a_lease_of_its_own() -> None:
    told = load(placed({}, Placing(name="mine", namespace="tools")))
    assert [profile.scheduler_name for profile in told.profiles] == ["mine"]
    assert (told.leader_election.resource_name, told.leader_election.resource_namespace) == ("mine", "tools")


def test_in_its_place_it_holds_its_lease() -> None:
    told = load(placed({}, Placing(name="mine", namespace="tools", as_default=True)))
    assert [profile.scheduler_name for profile in told.profiles] == ["default-scheduler"]
    assert told.leader_election == LeaderElection()


def test_what_the_file_says_stays_but_for_what_belongs_to_this_machine() -> None:
    said = {
        "clientConnection": {"kubeconfig": "/home/me/config", "qps": 90},
        "profiles": [{"schedulerName": "fast"}],
        "leaderElection": {"resourceName": "fast-lease", "leaseDuration": "5s", "renewDeadline": "4s"},
        "podInitialBackoffSeconds": 2,
    }
    told = placed(said, Placing())
    assert told["clientConnection"] == {"qps": 90}
    assert told["profiles"] == [{"schedulerName": "fast"}]
    assert told["leaderElection"] == said["leaderElection"]
    assert said["clientConnection"] == {"kubeconfig": "/home/me/config", "qps": 90}


def test_names_that_cannot_work_are_refused_with_a_remedy() -> None:
    two = {"profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "b"}]}
    with pytest.raises(ConfigError, match="or deploy with --as-default"):
        placed(two, Placing())
    assert placed(two, Placing(as_default=True))["profiles"] == two["profiles"]
    with pytest.raises(ConfigError, match="leave --as-default out"):
        placed({"profiles": [{"schedulerName": "b"}]}, Placing(as_default=True))


# ── the objects ──────────────────────────────────────────────────────────────────────────────────────────────


def made(**told: Any) -> dict[str, Any]:
    placing = Placing(**told)
    said = placed({}, placing)
    configuration = load(said)
    listed = objects(said, configuration.leader_election, profiles_of(configuration), placing)
    return {one["kind"]: one for one in listed}


def test_the_pod_keeps_to_the_restricted_standard() -> None:
    spec = made()["Deployment"]["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {tuple(volume) for volume in spec["volumes"]} == {("name", "configMap"), ("name", "emptyDir")}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()


def test_the_configuration_in_the_map_is_the_one_that_was_placed() -> None:
    text = made(name="mine")["ConfigMap"]["data"]["config.yaml"]
    assert [profile.scheduler_name for profile in load_text(text.encode()).configuration.profiles] == ["mine"]


def test_the_deployment_runs_the_account_that_has_the_roles() -> None:
    told = made(name="mine", namespace="tools")
    account = told["Deployment"]["spec"]["template"]["spec"]["serviceAccountName"]
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "tools"}
    assert told["ClusterRoleBinding"]["subjects"] == told["RoleBinding"]["subjects"] == [subject]
    assert told["ServiceAccount"]["metadata"]["name"] == account


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────


def documents(text: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(text))


def test_commands_print_what_kubectl_applies(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- schedulerName: own\n  plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}\n"
    )
    assert run(["manifests", "--config", str(file), "--image", "x/y:1", "--namespace", "tools"]) == 0
    told = {one["kind"]: one for one in documents(capsys.readouterr().out)}
    assert list(told) == [
        *("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
        *("ConfigMap", "Deployment"),
    ]
    assert told["Deployment"]["spec"]["template"]["spec"]["containers"][0]["image"] == "x/y:1"
    assert run(["rbac", "--config", str(file), "--namespace", "tools"]) == 0
    alone = documents(capsys.readouterr().out)
    assert alone[0]["rules"] == told["ClusterRole"]["rules"]
    assert "delete" not in json.dumps(alone)


def test_a_configuration_that_is_wrong_is_refused_as_everywhere(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparalelism: 3\n")
    assert run(["manifests", "--config", str(file)]) == 1
    assert "wrong.yaml:3" in capsys.readouterr().err


# ── deploy/ ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_deploy_is_fresh() -> None:
    """`make deploy-files` writes these."""
    for name, text in deploy_files(__version__).items():
        assert (DEPLOY / name).read_text(encoding="utf-8") == text, name


@pytest.mark.parametrize("as_default", [False, True])
def test_the_chart_says_what_the_command_says(as_default: bool) -> None:
    filled = filled_in(chart_template(), as_default)
    placing = Placing(name="mine", namespace="tools", image="x/y:1", replicas=3, as_default=as_default)
    said = placed({}, placing)
    configuration = load(said)
    told = objects(said, configuration.leader_election, profiles_of(configuration), placing)
    assert told[0]["kind"] == "Namespace"  # which Helm makes by itself, when it is asked to
    assert documents(filled) == told[1:]


def filled_in(template: str, as_default: bool) -> str:
    """What Helm makes of the few things the chart uses."""
    condition = r"\{\{- if \.Values\.asDefault \}\}\n(.*?)\{\{- else \}\}\n(.*?)\{\{- end \}\}\n"
    text = re.sub(condition, r"\1" if as_default else r"\2", template, flags=re.DOTALL)
    values = {
        ".Release.Name": "mine",
        ".Release.Namespace": "tools",
        ".Values.image.repository": "x/y",
        ".Values.image.tag | default .Chart.AppVersion": "1",
        ".Values.replicas": "3",
    }
    return re.sub(r"\{\{ (.*?) \}\}", lambda found: values[found[1]], text)
