"""Wall-clock worlds: a scheduler on a real cluster, or on an API server in the same process; and what runs it."""
