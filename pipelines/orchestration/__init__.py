"""Dagster, thin: when a checkpoint is evaluated. What is done is in plain functions elsewhere.

``chain`` is one checkpoint's way as plain functions, ``assets`` and ``checks`` give its steps to
Dagster, ``pickup`` is the sensor, ``nightly`` the schedule, and ``definitions`` is what Dagster
loads.
"""
