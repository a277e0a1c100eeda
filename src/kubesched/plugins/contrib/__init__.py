"""Plugins that people know from tutorials and examples: nothing runs by default, every one can be named.

They read like the first plugin one writes oneself: one file each, its docstring the manual page.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

CONTRIB: Mapping[str, str] = MappingProxyType(
    {
        "NodeNumber": "kubesched.plugins.contrib.node_number:NodeNumber",
        "SampleFilter": "kubesched.plugins.contrib.sample_filter:SampleFilter",
        "QOSSort": "kubesched.plugins.contrib.qos_sort:QOSSort",
        "ScoreByLabel": "kubesched.plugins.contrib.score_by_label:ScoreByLabel",
        "NodeCRDResourceFit": "kubesched.plugins.contrib.node_crd_resource_fit:NodeCRDResourceFit",
    }
)
"""Each as `module:Class`."""
