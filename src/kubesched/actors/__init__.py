"""The rest of a cluster, played: kubelets, controllers, garbage collection, volumes.  Each has the core's shape."""
