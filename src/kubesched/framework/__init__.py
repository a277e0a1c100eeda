"""The contract between the core and plugins — and nothing that runs."""
