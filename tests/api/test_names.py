"""The sentences for badly spelled names are the ones an API server gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.names import (
    check_dns1123_label,
    check_dns1123_subdomain,
    check_label_key,
    check_label_value,
    check_qualified_name,
)

NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize("key", ["a", "A.b_c-d", "example.com/MyName", "x" * 63, "a." * 126 + "a/x"])
def test_good_keys_pass(key):
    assert check_label_key(key) is None
    assert check_qualified_name(key) is None


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("", f"name part must be non-empty; {NAME_PART}"),
        ("-a", NAME_PART),
        ("a\n", NAME_PART),
        ("é", NAME_PART),
        ("x" * 64, "name part must be no more than 63 bytes"),
        ("/a", "prefix part must be non-empty"),
        ("Example.com/a", f"prefix part {SUBDOMAIN}"),
        ("a." * 127 + "a/x", "prefix part must be no more than 253 bytes"),
        ("a/", f"name part must be non-empty; {NAME_PART}"),
        (
            "a/b/c",
            (
                f"a valid label key {NAME_PART.removeprefix('name part ')} "
                "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ),
        ),
    ],
)
def test_bad_keys_are_told_why(key, sentence):
    assert check_qualified_name(key) == sentence
    assert check_label_key(key) == sentence


@pytest.mark.parametrize("value", ["", "a", "A_b.c-1", "x" * 63])
def test_good_values_pass(value):
    assert check_label_value(value) is None


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("x" * 64, "must be no more than 63 bytes"),
        ("a b", VALUE),
        ("-", VALUE),
        ("a/b", VALUE),
        ("é" * 32, f"must be no more than 63 bytes; {VALUE}"),
    ],
)
def test_bad_values_are_told_why(value, sentence):
    assert check_label_value(value) == sentence


def test_object_names_are_dns_names():
    assert check_dns1123_subdomain("web-0.example.com") is None
    assert check_dns1123_subdomain("Web") == SUBDOMAIN
    assert check_dns1123_subdomain("a" * 254) == "must be no more than 253 characters"
    assert check_dns1123_label("kube-system") is None
    assert check_dns1123_label("a.b") == "must not contain dots"
    assert check_dns1123_label("a" * 64) == "must be no more than 63 characters"
    assert (check_dns1123_label("-a") or "").startswith("a lowercase RFC 1123 label must consist of lower case")


@given(st.text("ab-.", max_size=12))
def test_a_dns_label_is_a_subdomain_without_dots(text):
    assert (check_dns1123_label(text) is None) == (check_dns1123_subdomain(text) is None and "." not in text)


@given(st.text("aB0-_.", max_size=8), st.text("ab.-", max_size=8))
def test_a_prefix_and_a_name_are_checked_apart(name, prefix):
    alone, domain = check_qualified_name(name), check_dns1123_subdomain(prefix)
    assert (check_qualified_name(f"{prefix}/{name}") is None) == (alone is None and domain is None)


def test_checking_a_very_long_text_is_quick():
    assert check_qualified_name("a." * 200_000 + "!/x") is not None
    assert check_label_value("a-" * 200_000) is not None
    assert check_dns1123_subdomain(("a" + "-" * 1_000 + ".") * 200) is not None
