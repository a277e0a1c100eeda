"""Reading a KubeSchedulerConfiguration: strictly, and with every fault named by its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kubesched.config.defaults import complete
from kubesched.config.faults import InvalidConfiguration
from kubesched.config.schema import API_VERSION, KIND, Configuration
from kubesched.config.strict import faults_of


def load(raw: Mapping[str, Any]) -> Configuration:
    """The configuration a mapping describes, completed with the defaults.  Raises ConfigError."""
    body = without_nulls({key: value for key, value in raw.items() if key not in ("apiVersion", "kind")})
    faults = list(faults_of(body, Configuration))
    if faults:
        raise InvalidConfiguration(faults)
    return complete(msgspec.convert(body, Configuration))


def without_nulls(value: Any) -> Any:
    """Kept from kube-scheduler: a field that is null is a field that is not there."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
