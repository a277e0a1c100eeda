"""Reading YAML: what it means, what is refused, with its line, and that nothing makes it slow or large."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.config.faults import InvalidConfiguration
from kubesched.config.yaml import Limits, line_of, parse, without_nulls


def refused(data: bytes, **limits: int) -> str:
    """The one line that says why a document is not read."""
    with pytest.raises(InvalidConfiguration) as caught:
        parse(data, "f.yaml", Limits(**limits))
    [line] = caught.value.lines()
    return line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-5", -5),
        ("+7", 7),
        ("0", 0),
        ("1_000", 1000),
        ("0x1F", 31),
        ("-0x10", -16),
        ("0b101", 5),
        ("010", 8),
        ("0o17", 15),
        ("-010", -8),
        ("00", 0),
        ("08", 8.0),  # no octal number, and so a decimal one, as in Go
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.", 1.0),
        ("true", True),
        ("Yes", True),
        ("on", True),
        ("OFF", False),
        ("n", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("'1'", "1"),
        ('"on"', "on"),
        ("2020-01-01", "2020-01-01"),
        ("1:30", "1:30"),
        ("10s", "10s"),
        (".nan", ".nan"),
        ("+", "+"),
        ("0x", "0x"),
        ("9" * 41, "9" * 41),
        ("leases", "leases"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_a_plain_scalar_means_what_it_means_to_kubernetes(text: str, value: Any) -> None:
    read = parse(f"key: {text}".encode())["key"]

    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": [1, {"b": "c\\/d"}]}', {"a": [1, {"b": "c/d"}]}),
        (b'{\n\t"a":\t1\n}', {"a": 1}),
        (b"\xef\xbb\xbfa: 1", {"a": 1}),
        (b"---\na: 1\n---\n", {"a": 1}),
        (b"%YAML 1.1\n---\na: 1\n...\n", {"a": 1}),
        (b"a: &unused [1]", {"a": [1]}),
        (b"on: 1\n1: 2\n", {"on": 1, "1": 2}),
        (b"", None),
        (b"# nothing\n", None),
    ],
)
def test_json_and_the_plain_part_of_yaml_are_read(data: bytes, value: Any) -> None:
    assert parse(data) == value


REFUSED = [
    (b"a: 1\nb:\n  c: 2\n  c: 3\n", 'f.yaml:4: key "c" already set in map (first on line 3)'),
    (b'{"a": 1,\n"a": 2}', 'f.yaml:2: key "a" already set in map (first on line 1)'),
    (b"a: &x [1]\nb: *x", "f.yaml:2: has the alias *x (write the value where it is needed)"),
    (b"a: 1\n<<: {b: 2}", 'f.yaml:2: has a merge key "<<" (write the fields out)'),
    (b"a: 1\n---\nb: 2", "f.yaml:3: has a second document (a configuration is one)"),
    (b"? [a]\n: b", "f.yaml:1: has a key that is a mapping or a list (keys are names)"),
    (b"a: !!str 1", "f.yaml:1: has the tag tag:yaml.org,2002:str (values need none here)"),
    (b"a: ! 1", "f.yaml:1: has the tag ! (values need none here)"),
    (b"a: 1\nb: \x00", "f.yaml:2: has a character no text has, #x0000"),
    (b"a: 1\nb: \x1b[31m", "f.yaml:2: has a character no text has, #x001b"),
    ("a: 1".encode("utf-16"), "f.yaml:1: is not UTF-8: byte 1 is 0xff"),
    (b"a: 1\nb: \xe9", "f.yaml:2: is not UTF-8: byte 9 is 0xe9"),
    (b"a: b: c", "f.yaml:1: is not YAML: mapping values are not allowed in this context"),
    (b"a:\n\tb: 1", "f.yaml:2: is not YAML: while scanning for the next token found character that cannot start any"),
    (b"a: [1,", "f.yaml:1: is not YAML: while parsing a flow node"),
    (b'a: "unfinished', "f.yaml:1: is not YAML: while scanning a quoted scalar"),
    (b"- a\nb: 1", "f.yaml:2: is not YAML: while parsing a block collection did not find expected"),
    (b"%YAML 9.9\n---\na: 1", "f.yaml:1: is not YAML: found incompatible YAML document"),
    (b'a: "\\ud800"', "f.yaml:1: is not YAML: while parsing a quoted scalar"),
]


@pytest.mark.parametrize(("data", "line"), REFUSED)
def test_what_a_configuration_has_no_use_for_is_refused_with_its_line(data: bytes, line: str) -> None:
    assert refused(data).startswith(line)


TAGS = [
    *("!!python/object:os.system {}", "!!python/object/apply:os.system [id]", "!!python/name:os.system ''"),
    *("!!python/object/new:subprocess.Popen [[id]]", "!!python/module:os ''", "!!binary aGk=", "!!set {a, b}"),
    *("!!omap [a: 1]", "!!timestamp 2020-01-01", "!local x", "!<tag:yaml.org,2002:int> 1", "!!float 1"),
]


@pytest.mark.parametrize("tagged", TAGS)
@pytest.mark.parametrize("around", ["{}", "a: {}", "- {}", "a:\n  - b: {}"])
def test_no_tag_is_obeyed_wherever_it_stands(tagged: str, around: str) -> None:
    assert "(values need none here)" in refused(around.replace("{}", tagged, 1).encode())


def laughs(levels: int, width: int) -> bytes:
    """A document of aliases to aliases, which is width^levels leaves when followed."""
    lines = ["a0: &a0 [" + ",".join(["lol"] * width) + "]"]
    lines += [f"a{i}: &a{i} [" + ",".join([f"*a{i - 1}"] * width) + "]" for i in range(1, levels)]
    return "\n".join(lines).encode()


BOMBS = {
    "a billion laughs": laughs(9, 10),
    "merge keys": b"a: &a {x: 1}\n" + b"\n".join(b"b%d: {<<: [*a, *a]}" % i for i in range(1000)),
    "a mapping that holds itself": b"&a {b: *a}",
    "deep flow lists": b"[" * 100_000,
    "deep flow mappings": b'{"a":' * 100_000,
    "deep block lists": b"- " * 100_000,
    "deep block mappings": b"\n".join(b" " * i + b"a:" for i in range(1000)),
    "many scalars": b"a: [" + b"1," * 300_000 + b"]",
    "many empty lists": b"[" + b"[]," * 300_000 + b"]",
    "many keys": b"\n".join(b"k%d: 1" % i for i in range(80_000)),
    "many documents": b"---\na\n" * 150_000,
    "too long": b"a: " + b"x" * (1 << 20),
    "anchors without end": b"&a " * 100_000 + b"1",
    "directives without end": b"%TAG ! tag:x\n" * 50_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_it_takes_memory(name: str) -> None:
    tracemalloc.start()
    try:
        refused(BOMBS[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 32 << 20


def test_long_scalars_are_read_as_long_as_the_document_may_be() -> None:
    assert parse(b"a: " + b"x" * 1_000_000) == {"a": "x" * 1_000_000}
    assert parse(b"#" * 1_000_000) is None


@pytest.mark.parametrize("depth", [64, 65])
def test_the_limit_of_depth_is_sixty_four(depth: int) -> None:
    data = b"[" * depth + b"]" * depth
    if depth == 64:
        assert parse(data)
    else:
        assert refused(data) == "f.yaml:1: nests more than 64 levels deep (a dozen are enough)"


def test_limits_can_be_set() -> None:
    assert refused(b"a: 1", size=3) == "f.yaml: is 4 bytes long; at most 3 are read"
    assert refused(b"[1, 2, 3]", nodes=3) == "f.yaml:1: has more than 3 values (that is no configuration)"


def said_of(data: bytes) -> Any:
    """The value of a document, or why it is refused; anything else is an accident."""
    try:
        return parse(data)
    except InvalidConfiguration as error:
        return error.lines()


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused_and_nothing_else(data: bytes) -> None:
    said_of(data)


@given(st.text(alphabet="ab:-[]{},&*!|>'\"%@#?\n \t1", max_size=80))
def test_anything_that_looks_like_yaml_is_read_or_refused_and_nothing_else(text: str) -> None:
    said_of(text.encode())


# ── where things are ─────────────────────────────────────────────────────────────────────────────────────────

DOCUMENT = b"""\
parallelism: 4
profiles:
- schedulerName: a
  plugins:
    score:
      enabled:
      - name: x
      -
        name: y
        weight: 3
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("parallelism", 1),
        ("profiles", 2),
        ("profiles[0].schedulerName", 3),
        ("profiles[0].plugins.score.enabled[0].name", 7),
        ("profiles[0].plugins.score.enabled[1].weight", 10),
        ("profiles[0].plugins.score.enabled[1].missing", 9),
        ("profiles[0].plugins.filter.enabled[0]", 4),
        ("profiles[7]", 2),
        ("", 1),
    ],
)
def test_a_path_leads_to_its_line_or_to_the_last_part_that_is_there(path: str, line: int) -> None:
    tree = parse(DOCUMENT)

    assert line_of(tree, path) == line
    assert line_of(without_nulls(tree), path) == line


def test_nulls_go_and_lines_stay() -> None:
    tree = parse(b"a:\nb: [1, null]\nc: {d: ~, e: 2}\n")

    kept = without_nulls(tree)

    assert kept == {"b": [1, None], "c": {"e": 2}}
    assert line_of(kept, "c.e") == 3
