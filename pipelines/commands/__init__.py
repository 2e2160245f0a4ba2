"""The commands of ``pawl``, one file for each kind; each returns its exit code."""
