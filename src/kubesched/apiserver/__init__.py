"""A small Kubernetes API server inside the process: store, watch, patch, and its HTTP face."""
