"""From a class to a CustomResourceDefinition, and from the definition to what a server makes of objects."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, Struct, field

from kubesched.api.crd import UnfitKind, definition_of
from kubesched.api.kinds import KNOWN, Column, CustomResource, kind_of, plural_of
from kubesched.api.objects import Pod, UnreadableObject, read


class Mode(enum.Enum):
    SOFT = "Soft"
    HARD = "Hard"


class Limit(Struct, frozen=True, rename="camel"):
    """How much, and of what."""

    max_pods: Annotated[int, Meta(ge=0, le=100)]
    zone: Annotated[str, Meta(pattern="^[a-z]+$", min_length=1)] = "a"


class BudgetSpec(Struct, frozen=True, rename="camel"):
    limits: list[Limit] = []
    by_zone: dict[str, Annotated[int, Meta(gt=0)]] = {}
    mode: Literal["pack", "spread"] = "spread"
    strictness: Mode = Mode.SOFT
    share: Annotated[float, Meta(lt=1)] = 0.5
    note: str | None = None
    port: int | str = 80
    anything: Any = None
    names: frozenset[str] = frozenset()
    reserve: Limit = Limit(max_pods=3)


class BudgetStatus(Struct, frozen=True, rename="camel"):
    used: int = 0


class Budget(CustomResource, frozen=True):
    """How many pods a zone may hold."""

    group = "acme.example"
    version = "v1alpha1"
    scope = "Cluster"
    short_names = ("bu",)
    columns = (
        Column("Used", ".status.used"),
        Column("Mode", ".spec.mode"),
        Column("Age", ".metadata.creationTimestamp"),
    )

    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


def spec_schema() -> dict[str, Any]:
    [version] = definition_of(Budget)["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]


def test_names_and_scope_follow_from_the_class() -> None:
    definition = definition_of(Budget)

    assert definition["metadata"] == {"name": "budgets.acme.example"}
    assert definition["spec"]["group"] == "acme.example"
    assert definition["spec"]["scope"] == "Cluster"
    assert definition["spec"]["names"] == {
        "kind": "Budget",
        "listKind": "BudgetList",
        "plural": "budgets",
        "singular": "budget",
        "shortNames": ["bu"],
    }


def test_a_status_has_its_own_endpoint_and_columns_know_their_types() -> None:
    [version] = definition_of(Budget)["spec"]["versions"]

    assert version["subresources"] == {"status": {}}
    assert version["additionalPrinterColumns"] == [
        {"name": "Used", "type": "integer", "jsonPath": ".status.used"},
        {"name": "Mode", "type": "string", "jsonPath": ".spec.mode"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    assert version["schema"]["openAPIV3Schema"]["description"] == "How many pods a zone may hold."


def test_every_annotation_becomes_the_schema_it_means() -> None:
    fields = spec_schema()["properties"]

    limit = fields["limits"]["items"]
    assert limit["description"] == "How much, and of what."
    assert limit["required"] == ["maxPods"]
    assert limit["properties"]["maxPods"] == {"type": "integer", "format": "int64", "minimum": 0, "maximum": 100}
    assert limit["properties"]["zone"] == {"type": "string", "minLength": 1, "pattern": "^[a-z]+$", "default": "a"}
    positive = {"type": "integer", "format": "int64", "minimum": 0, "exclusiveMinimum": True}
    assert fields["byZone"] == {"type": "object", "additionalProperties": positive}
    assert fields["mode"] == {"type": "string", "enum": ["pack", "spread"], "default": "spread"}
    assert fields["strictness"] == {"type": "string", "enum": ["Soft", "Hard"], "default": "Soft"}
    assert fields["share"] == {"type": "number", "maximum": 1, "exclusiveMaximum": True, "default": 0.5}
    assert fields["note"] == {"type": "string", "nullable": True}
    assert fields["port"] == {"x-kubernetes-int-or-string": True, "default": 80}
    assert fields["anything"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert fields["names"]["x-kubernetes-list-type"] == "set"


def test_a_default_says_only_what_its_own_fields_do_not() -> None:
    assert spec_schema()["default"] == {}, "its fields have defaults, so an empty spec is more than none"
    assert spec_schema()["properties"]["reserve"]["default"] == {"maxPods": 3}
    assert "default" not in spec_schema()["properties"]["limits"]


def test_a_group_of_the_community_asks_for_a_word_of_approval() -> None:
    class Guarded(CustomResource, frozen=True):
        group = "scheduling.x-k8s.io"

    class Protected(CustomResource, frozen=True):
        group = "scheduling.k8s.io"

    assert "annotations" in definition_of(Protected)["metadata"]
    assert "annotations" not in definition_of(Guarded)["metadata"]


class Endless(Struct, frozen=True):
    inner: Endless | None = None


def unfit(annotation: Any) -> type[CustomResource]:
    return type(
        "Unfit",
        (CustomResource,),
        {"__annotations__": {"thing": annotation}, "group": "acme.example", "thing": None, "__module__": __name__},
        frozen=True,
    )


@pytest.mark.parametrize(
    ("annotation", "sentence"),
    [
        (bytes, "Unfit.thing: Bytes has no place in a structural schema"),
        (Endless | None, "Unfit.thing.inner: Endless contains itself"),
        (dict[int, str], "Unfit.thing: the keys of a map are strings; write dict[str, …]"),
        (list[bool | str], "Unfit.thing[]: a field is of one type"),
        (Literal["a", 1], "Unfit.thing: the choices of a Literal are all strings, or all integers"),
    ],
)
def test_what_no_schema_can_say_is_refused_with_its_place(annotation: Any, sentence: str) -> None:
    with pytest.raises(UnfitKind, match="^" + sentence.replace("[", r"\[").replace("]", r"\]").replace("|", r"\|")):
        definition_of(unfit(annotation))


def test_a_kind_that_does_not_say_where_it_lives_is_refused() -> None:
    class Homeless(CustomResource, frozen=True):
        pass

    with pytest.raises(UnfitKind, match="Homeless does not say where it lives: give the class group ="):
        definition_of(Homeless)


def test_a_column_must_lead_somewhere() -> None:
    class Blind(CustomResource, frozen=True):
        group = "acme.example"
        columns = (Column("Size", ".spec.size"),)
        spec: BudgetSpec = field(default_factory=BudgetSpec)

    with pytest.raises(UnfitKind, match=r"Blind.columns: \.spec\.size leads to no field of it"):
        definition_of(Blind)


def test_objects_are_read_through_the_class() -> None:
    head = {"apiVersion": "acme.example/v1alpha1", "kind": "Budget", "metadata": {"name": "z"}}
    raw = {**head, "spec": {"byZone": {"a": 2}}}

    assert read(raw, Budget).spec.by_zone == {"a": 2}
    with pytest.raises(UnreadableObject, match=r"Budget 'z': spec.byZone\[...\]: expected int"):
        read({**raw, "spec": {"byZone": {"a": 0}}}, Budget)


@pytest.mark.parametrize(
    ("name", "plural"),
    [("Budget", "budgets"), ("Policy", "policies"), ("Gateway", "gateways"), ("Class", "classes"), ("Box", "boxes")],
)
def test_plurals(name: str, plural: str) -> None:
    assert plural_of(name) == plural


def test_paths_follow_from_where_a_kind_lives() -> None:
    assert kind_of(Budget).path(name="z", subresource="status") == "/apis/acme.example/v1alpha1/budgets/z/status"
    assert KNOWN["Pod"].path("default", "web", "binding") == "/api/v1/namespaces/default/pods/web/binding"
    assert KNOWN["Pod"].path() == "/api/v1/pods"
    assert KNOWN["ReplicaSet"].path("a") == "/apis/apps/v1/namespaces/a/replicasets"
    assert KNOWN["Node"].path("ignored", "n1") == "/api/v1/nodes/n1"
    assert kind_of(Pod) is KNOWN["Pod"]
