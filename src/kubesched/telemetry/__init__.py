"""Records, decisions and notes made into log lines, stories and metrics.  It reads; it never influences."""
