"""Names that Dagster's records and Pawl share."""

from __future__ import annotations

PARTITIONS = "checkpoints"
"""The dynamic partitions: one a checkpoint, ``RUN@STEP``."""

PARTITION_TAG = "dagster/partition"
"""Dagster's own tag of a run that is about one partition."""

JOB = "evaluate_checkpoint"
"""The job that takes one checkpoint from its folder to a decision."""

ATTEMPTS = 3
"""How often a checkpoint's job may fail before the checkpoint is given up."""
