-- Columns are described in storage/tables.py.
CREATE TABLE lake.runs (run VARCHAR, folder VARCHAR, layout VARCHAR, config VARCHAR, registered_at VARCHAR);

CREATE TABLE lake.sightings (
    run VARCHAR, step BIGINT, path VARCHAR, state VARCHAR, detail VARCHAR, changed_at VARCHAR
);

CREATE TABLE lake.channels (
    channel VARCHAR, policy VARCHAR, policy_document VARCHAR, suite VARCHAR, holder_run VARCHAR,
    holder_step BIGINT, holder_digest VARCHAR, moves BIGINT, changed_at VARCHAR
);

CREATE TABLE lake.telemetry (
    run VARCHAR, attempt INTEGER, series VARCHAR, raw_name VARCHAR, step BIGINT, value DOUBLE,
    logged_at VARCHAR
);
ALTER TABLE lake.telemetry SET PARTITIONED BY (run);

INSERT INTO lake.guards VALUES ('runs', 0), ('sightings', 0), ('channels', 0), ('telemetry', 0);
