"""When a pod that fits nowhere is tried again."""

from kubesched.assemble import default_profile
from kubesched.explain.waking import retried_when
from kubesched.framework.status import SUCCESS, Status

PLUGINS = default_profile().plugins


class Silent:
    def filter(self, cycle, pod, node) -> Status:
        return SUCCESS


def test_the_events_of_the_rejectors_are_named() -> None:
    assert retried_when(PLUGINS, ["NodeName"]) == "a Node is added"
    assert retried_when(PLUGINS, ["NodePorts"]) == "a Node is added; a Pod is deleted"


def test_events_of_several_plugins_are_joined() -> None:
    told = retried_when(PLUGINS, ["NodeAffinity", "TaintToleration"])

    assert told.startswith("a Node is added, changes its labels or changes its taints")
    assert told.endswith("; a Pod changes its tolerations")


def test_other_kinds_come_last_without_their_group() -> None:
    told = retried_when(PLUGINS, ["VolumeZone"])

    assert told.endswith("a PersistentVolume is added or changes; a PersistentVolumeClaim is added or changes; "
                         "a StorageClass is added")


def test_a_plugin_that_does_not_say_listens_to_everything() -> None:
    assert retried_when([Silent()], ["Silent"]) == "anything in the cluster changes"


def test_nobody_in_particular() -> None:
    assert retried_when(PLUGINS, []) == ""
    assert retried_when(PLUGINS, ["Extender"]) == ""
