"""Checkpoints as they appear on disk: layouts as data, looks at a run's folder, pins."""
