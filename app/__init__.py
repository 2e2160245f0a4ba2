"""The app: which checkpoint may be promoted, what changed, on which items, and why.

`pawl app` runs main.py. Read the modules in this order: main (pages), query (what stands in the
URL), loading (cached reads), frames and charts, series and run_chart (pure: records in, tables and
charts out), views (given data, they draw it and return nothing).
"""
