"""The spelling rules for names, keys and values, and Kubernetes' sentences for breaking them.

Labels, taints, resources and objects are named by strings that an API server checks against a handful of patterns.
Every check here returns the error sentence an API server would give, or None when the text is fine, so a caller
can put the sentence behind whatever path it is looking at.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = [
    "check_dns1123_label",
    "check_dns1123_subdomain",
    "check_label_key",
    "check_label_value",
    "check_qualified_name",
]

_NAME_MAX: Final = 63
_SUBDOMAIN_MAX: Final = 253

_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN: Final = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_NAME})?"

_dns_label = re.compile(_DNS_LABEL).fullmatch
_dns_subdomain = re.compile(_DNS_SUBDOMAIN).fullmatch
_name = re.compile(_NAME).fullmatch
_value = re.compile(_VALUE).fullmatch

_DNS_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_DNS_LABEL}')"
)
_DNS_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_DNS_SUBDOMAIN}')"
)
_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_VALUE}')"
)


def check_dns1123_label(text: str) -> str | None:
    """A namespace's name, say: lower case letters, digits and dashes."""
    return _sentence(_dns_label_faults(text))


def check_dns1123_subdomain(text: str) -> str | None:
    """Most objects' names: DNS labels with dots between them."""
    return _sentence(_dns_subdomain_faults(text))


@lru_cache(maxsize=16384)
def check_qualified_name(text: str) -> str | None:
    """A name with an optional DNS prefix: `example.com/MyName`."""
    return _sentence(_qualified_name_faults(text))


def check_label_key(text: str) -> str | None:
    """A label's, taint's or annotation's key, which is a qualified name."""
    return check_qualified_name(text)


@lru_cache(maxsize=16384)
def check_label_value(text: str) -> str | None:
    """A label's or taint's value; it may be empty."""
    faults = [_too_long(_NAME_MAX)] if len(text.encode()) > _NAME_MAX else []
    if not _value(text):
        faults.append(_VALUE_RULE)
    return _sentence(faults)


def _dns_label_faults(text: str) -> list[str]:
    faults = [_too_long(_NAME_MAX, "characters")] if len(text.encode()) > _NAME_MAX else []
    if not _dns_label(text):
        faults.append("must not contain dots" if _dns_subdomain(text) else _DNS_LABEL_RULE)
    return faults


def _dns_subdomain_faults(text: str, unit: str = "characters") -> list[str]:
    faults = [_too_long(_SUBDOMAIN_MAX, unit)] if len(text.encode()) > _SUBDOMAIN_MAX else []
    if not _dns_subdomain(text):
        faults.append(_DNS_SUBDOMAIN_RULE)
    return faults


def _qualified_name_faults(text: str) -> list[str]:
    faults = []
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if slash:
        found = _dns_subdomain_faults(prefix, "bytes") if prefix else ["must be non-empty"]
        faults += [f"prefix part {fault}" for fault in found]
    if not name:
        faults.append("name part must be non-empty")
    elif len(name.encode()) > _NAME_MAX:
        faults.append(f"name part {_too_long(_NAME_MAX)}")
    if not _name(name):
        faults.append(f"name part {_NAME_RULE}")
    return faults


def _too_long(limit: int, unit: str = "bytes") -> str:
    # Kept from Kubernetes: every limit counts bytes, but the sentences for objects' names call them characters.
    return f"must be no more than {limit} {unit}"


def _sentence(faults: list[str]) -> str | None:
    return "; ".join(faults) or None
