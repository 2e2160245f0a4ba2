-- Columns are described in storage/tables.py. DuckLake has no keys: see guards.
CREATE TABLE lake.migrations (version INTEGER, name VARCHAR, applied_at VARCHAR);

-- One row per table that takes only rows whose key it lacks; such a write changes its row, so
-- that two of them at once conflict.
CREATE TABLE lake.guards (name VARCHAR, writes BIGINT);
INSERT INTO lake.guards VALUES
    ('checkpoints', 0), ('evaluations', 0), ('items', 0), ('requests', 0), ('responses', 0),
    ('scores', 0), ('decisions', 0);

CREATE TABLE lake.checkpoints (
    run VARCHAR, step BIGINT, digest VARCHAR, path VARCHAR, files VARCHAR, state VARCHAR,
    registered_at VARCHAR
);

CREATE TABLE lake.evaluations (
    evaluation_id VARCHAR, run VARCHAR, step BIGINT, checkpoint_digest VARCHAR,
    checkpoint_path VARCHAR, suite VARCHAR, suite_version VARCHAR, suite_fingerprint VARCHAR,
    tasks VARCHAR, engine VARCHAR, engine_digest VARCHAR, sampling VARCHAR, attempt INTEGER,
    state VARCHAR, planned_items BIGINT, created_at VARCHAR, completed_at VARCHAR
);

CREATE TABLE lake.items (
    task VARCHAR, task_version VARCHAR, item_id VARCHAR, doc VARCHAR, target VARCHAR,
    cluster VARCHAR, stratum VARCHAR
);

CREATE TABLE lake.requests (
    evaluation_id VARCHAR, request_id VARCHAR, position BIGINT, task VARCHAR, item_id VARCHAR,
    kind VARCHAR, token_ids INTEGER[], stops VARCHAR[], max_tokens INTEGER, sampling VARCHAR,
    repeats INTEGER[]
);
ALTER TABLE lake.requests SET PARTITIONED BY (evaluation_id);

CREATE TABLE lake.responses (
    evaluation_id VARCHAR, request_id VARCHAR, repeat INTEGER, text VARCHAR, token_ids INTEGER[],
    finish_reason VARCHAR, prompt_tokens INTEGER, output_tokens INTEGER, error VARCHAR
);
ALTER TABLE lake.responses SET PARTITIONED BY (evaluation_id);

CREATE TABLE lake.scores (
    evaluation_id VARCHAR, task VARCHAR, item_id VARCHAR, repeat INTEGER, metric VARCHAR,
    outcome VARCHAR, value DOUBLE, answer VARCHAR, detail VARCHAR, scorer_version VARCHAR,
    scoring INTEGER
);
ALTER TABLE lake.scores SET PARTITIONED BY (evaluation_id);

CREATE TABLE lake.decisions (
    decision VARCHAR, verdict VARCHAR, candidate VARCHAR, baseline VARCHAR, policy VARCHAR,
    snapshot BIGINT, recorded_at VARCHAR, document VARCHAR
);

CREATE TABLE lake.ledger (
    seq BIGINT, kind VARCHAR, payload VARCHAR, who VARCHAR, recorded_at VARCHAR, previous VARCHAR,
    hash VARCHAR
);
CREATE TABLE lake.ledger_head (seq BIGINT, hash VARCHAR);
INSERT INTO lake.ledger_head VALUES (0, repeat('0', 64));
