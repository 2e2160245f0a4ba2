"""The lake: what is kept of checkpoints, evaluations and decisions, and how it stays whole.

Read the modules in this order: tables, connection (transactions), migrate, one module per noun
(checkpoints, evaluations, items, requests, responses, scores, decisions), spool (responses
before the lake has them), ledger, and store, which is what a job uses. DuckDB is imported
nowhere else.
"""
