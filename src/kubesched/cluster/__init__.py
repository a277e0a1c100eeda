"""The mirror: what we believe the cluster looks like, laid out in columns."""
