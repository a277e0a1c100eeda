"""Configurations for tests: the two lines every file begins with, and what is under test."""

import textwrap
from typing import Any

import pytest

from kubesched.config.load import Loaded, load_text
from kubesched.framework.errors import ConfigError

V1 = "kubescheduler.config.k8s.io/v1"


def document(text: str, version: str = "v1") -> bytes:
    """A KubeSchedulerConfiguration with this body; its first line is line 3."""
    head = f"apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n"
    return (head + textwrap.dedent(text).lstrip("\n")).encode()


def loaded(text: str, version: str = "v1", **settings: Any) -> Loaded:
    return load_text(document(text, version), "f.yaml", **settings)


def refused(data: str | bytes, version: str = "v1", **settings: Any) -> list[str]:
    """The lines that say why a configuration is not used."""
    body = document(data, version) if isinstance(data, str) else data
    with pytest.raises(ConfigError) as caught:
        load_text(body, "f.yaml", **settings)
    lines = getattr(caught.value, "lines", None)
    assert lines is not None, "an error of a file has lines"
    return list(lines())
