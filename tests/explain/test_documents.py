"""Files as kubectl prints them, cut into objects; files that are none, refused in a sentence."""

import json
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import msgspec
import pytest
import yaml

from kubesched.api import objects
from kubesched.explain.documents import DEPTH_MAX, UNREAD, Part, UnreadableFile, parts

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"zone": "a"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}


def data_of(part: Part) -> Any:
    return part.data if isinstance(part.data, dict) else msgspec.json.decode(part.data)


def read(text: str | bytes) -> list[tuple[str, Any]]:
    data = text.encode() if isinstance(text, str) else text
    return [(part.where, data_of(part)) for part in parts(data, "x")]


def test_one_object() -> None:
    assert read(json.dumps(NODE)) == [("x", NODE)]
    assert read(yaml.safe_dump(NODE)) == [("x", NODE)]


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump])
def test_a_list_is_opened(dump: Any) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [NODE, POD]}

    assert read(dump(listed)) == [("x: item 0", NODE), ("x: item 1", POD)]


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump])
def test_the_items_of_a_raw_list_are_of_its_kind(dump: Any) -> None:
    """As `kubectl get --raw /api/v1/nodes` prints them."""
    bare = {"metadata": {"name": "n1"}}
    [part] = parts(dump({"kind": "NodeList", "apiVersion": "v1", "items": [bare]}).encode(), "x")

    assert part.kind == "Node"
    assert data_of(part) == bare


def test_several_documents() -> None:
    expected = [("x: document 0", NODE), ("x: document 1", POD)]
    assert read(yaml.safe_dump_all([NODE, POD])) == expected
    assert read("---\n---\n" + yaml.safe_dump_all([NODE, POD]) + "---\n") == expected
    assert read(json.dumps(NODE) + "\n" + json.dumps(POD, indent=2) + "\n") == expected


def test_an_array_of_objects() -> None:
    assert read(json.dumps([NODE, POD])) == [("x: item 0", NODE), ("x: item 1", POD)]


def test_a_byte_order_mark_is_no_obstacle() -> None:
    assert read(b"\xef\xbb\xbf" + json.dumps(NODE).encode()) == [("x", NODE)]
    assert read(b"\xef\xbb\xbf" + yaml.safe_dump(NODE).encode()) == [("x", NODE)]


def test_scalars_mean_what_they_mean_to_kubernetes() -> None:
    [(_, told)] = read("kind: Node\na: yes\nb: 010\nc: 2026-01-01\nd: 'yes'\ne: ~\nf: |\n  two\n  lines\n")

    assert told == {"kind": "Node", "a": True, "b": 8, "c": "2026-01-01", "d": "yes", "e": None, "f": "two\nlines\n"}


def test_what_no_scheduler_reads_is_not_kept() -> None:
    text = "kind: Pod\nspec:\n  containers:\n  - name: c\n    env:\n    - {name: A, value: b}\n    image: i\n"
    [(_, told)] = read(text)

    assert told == {"kind": "Pod", "spec": {"containers": [{"name": "c", "image": "i"}]}}


def test_a_label_may_be_called_like_it() -> None:
    [(_, told)] = read("kind: Pod\nmetadata:\n  labels:\n    env: prod\n")

    assert told["metadata"]["labels"] == {"env": "prod"}


def test_no_view_has_a_field_that_is_not_kept() -> None:
    rooms = [import_module(f"{objects.__name__}.{room.name}") for room in iter_modules(objects.__path__)]
    named = {kind for room in rooms for kind in vars(room).values() if isinstance(kind, type)}
    views = [kind for kind in named if issubclass(kind, msgspec.Struct)]
    assert len(views) > 50
    for view in views:
        assert not UNREAD.intersection(view.__struct_encode_fields__), view


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x: is empty"),
        ("  \n", "x: is empty"),
        ('{"kind": "Node"', "x:1: is not JSON"),
        ('{\n"kind": Node}', "x:2: is not JSON"),
        ('{"kind": 3}', r"x: is no Kubernetes object: Expected `str`, got `int` - at `\$.kind`"),
        ('{"items": {}, "kind": "List"}', "x: is no Kubernetes object"),
        ("just words", "x: is no Kubernetes object, but the str 'just words'"),
        ("- a\n- b\n", "x: is no Kubernetes object, but a list"),
        ("kind: [Node\n", "x:2: is neither JSON nor YAML"),
        ("a: b: c\n", "x:1: is neither JSON nor YAML"),
        ("kind: Node\nkind: Pod\n", "x:2: has the key 'kind' twice"),
        ("a: &x [1]\nb: *x\n", r"x:2: has the alias \*x"),
        ("a: !!python/object:os.system []\n", "x:1: has the tag tag:yaml.org,2002:python/object:os.system"),
        ("a: !!str 3\n", "x:1: has the tag"),
        ("? [a]\n: b\n", "x:1: has a key that is a mapping or a list"),
        ("a: " + "[" * DEPTH_MAX + "]" * DEPTH_MAX, f"x:1: nests more than {DEPTH_MAX} levels deep"),
        ("a: \x01\n", "x: has a character no text has, #x0001"),
    ],
)
def test_what_is_no_dump_is_refused(text: str, said: str) -> None:
    with pytest.raises(UnreadableFile, match=said):
        read(text)


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfea\x00", b"{\xff}", b"[" * 100_000, b'{"items":' * 50_000, b'{"a":' + b"1" * 9000 + b"", b"\x00"],
)
def test_bytes_that_make_no_sense_are_refused(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match="x"):
        read(data)


def test_a_bomb_of_aliases_does_not_go_off() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 30))]

    with pytest.raises(UnreadableFile, match="alias"):
        read("\n".join(lines))


def test_what_a_file_says_is_escaped() -> None:
    with pytest.raises(UnreadableFile) as refused:
        read('"\\e[31mred": 1\n"\\e[31mred": 2\n')
    assert "\x1b" not in str(refused.value)
