-- Runs of studies with their provenance, the rows and head statistics they gave, and jobs with their units.

CREATE SEQUENCE run_order;
CREATE TABLE run (
    run VARCHAR PRIMARY KEY,              -- random, so runs of two files can be brought together
    ordinal BIGINT NOT NULL DEFAULT nextval('run_order'),
    study VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    checkpoint VARCHAR,
    weights_hash VARCHAR,
    task VARCHAR,
    split VARCHAR,
    row_ids JSON,                         -- ids of the task's rows, in the order used
    seed BIGINT,
    dtype VARCHAR,
    operator VARCHAR,
    device VARCHAR,
    options JSON NOT NULL,
    code_version VARCHAR NOT NULL,
    created TIMESTAMP NOT NULL            -- UTC
);

CREATE TABLE study_row (
    run VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    body JSON NOT NULL,
    PRIMARY KEY (run, position)
);

CREATE TABLE head_score (
    run VARCHAR NOT NULL,
    statistic VARCHAR NOT NULL,
    feature VARCHAR,                      -- the relation, frame element or pattern it is about; NULL for none
    layer INTEGER NOT NULL,               -- zero-based
    head INTEGER NOT NULL,                -- zero-based
    value DOUBLE,                         -- NULL where undefined
    low DOUBLE,
    high DOUBLE,
    n BIGINT,
    baseline DOUBLE,
    p DOUBLE,
    q DOUBLE
);

CREATE SEQUENCE job_order;
CREATE TABLE job (
    job VARCHAR PRIMARY KEY,
    ordinal BIGINT NOT NULL DEFAULT nextval('job_order'),
    study VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    asked VARCHAR NOT NULL,               -- the options as given, JSON text
    options JSON NOT NULL,                -- with the study's defaults, once it is divided into units
    state VARCHAR NOT NULL,               -- queued running done failed cancelled interrupted
    error VARCHAR,
    run VARCHAR,                          -- the run its rows were stored as, once done
    created TIMESTAMP NOT NULL,
    started TIMESTAMP,
    finished TIMESTAMP
);

CREATE TABLE job_unit (
    job VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    key VARCHAR NOT NULL,
    size BIGINT NOT NULL,                 -- tokens
    arguments JSON NOT NULL,
    PRIMARY KEY (job, position)
);

CREATE SEQUENCE job_event_order;
CREATE TABLE job_outcome (                -- append-only: the newest outcome of a unit is its state
    job VARCHAR NOT NULL,
    position INTEGER NOT NULL,
    ordinal BIGINT NOT NULL DEFAULT nextval('job_event_order'),
    state VARCHAR NOT NULL,               -- done failed again (a retry was asked for)
    error VARCHAR,
    seconds DOUBLE,
    worker VARCHAR,
    provenance JSON,                      -- what the unit said of where its rows come from
    finished TIMESTAMP NOT NULL
);

CREATE TABLE job_row (
    job VARCHAR NOT NULL,
    position INTEGER NOT NULL,            -- of the unit
    place INTEGER NOT NULL,               -- of the row within the unit
    body JSON NOT NULL
);
