"""The scheduler itself: a value you fold events into."""
