-- Columns are described in storage/tables.py.
ALTER TABLE lake.requests ADD COLUMN branches VARCHAR;
ALTER TABLE lake.responses ADD COLUMN log_likelihoods VARCHAR;
