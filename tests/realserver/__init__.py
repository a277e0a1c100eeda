"""Real Kubernetes servers for tests: a harness that starts them, a proxy that breaks their connections, and facts."""
