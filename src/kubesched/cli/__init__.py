"""The commands: one file each, listed in `main.py`."""
