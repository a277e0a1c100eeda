"""The client half of the Kubernetes API, without sockets: what to ask, and what to make of the answers."""
