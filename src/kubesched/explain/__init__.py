"""A Decision for people and programs: sentences, tables, JSON, and what the closest nodes lack."""
