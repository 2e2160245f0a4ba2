"""Readers of what training logged: from the files of a run's folder to points.

Read the modules in this order: rows (what every reader returns), jsonl, trainer_state and
tensorboard (one file format each), dialects (names as logged to canonical series), run (which
files a layout has, and their way into the lake).
"""
