"""Fixtures of the core's tests."""

from kubesched.testing.fixtures import cluster as cluster
