"""Looking for trouble: clusters drawn from a seed, faults of every kind, and a judge who reads the store's history."""
