-- Hypotheses about heads: registered before they are tested, withdrawn but never changed or deleted.

CREATE SEQUENCE hypothesis_order;
CREATE TABLE hypothesis_batch (
    batch VARCHAR PRIMARY KEY,            -- random
    ordinal BIGINT NOT NULL DEFAULT nextval('hypothesis_order'),
    checkpoint VARCHAR NOT NULL,
    weights_hash VARCHAR NOT NULL,        -- of the weights that it is about
    thought JSON NOT NULL,                -- rows it was thought of on: {task, split, limit, seed, data}
    judged JSON NOT NULL,                 -- rows that judge it
    thought_rows JSON NOT NULL,           -- [[id, hash of its texts]]
    judged_rows JSON NOT NULL,
    number INTEGER NOT NULL,              -- of the batches on these weights that share a judging row, from 1
    level DOUBLE NOT NULL,                -- alpha 6 / (pi^2 number^2)
    annotator VARCHAR NOT NULL,
    stored TIMESTAMP NOT NULL             -- UTC
);
CREATE TABLE hypothesis (
    hypothesis VARCHAR PRIMARY KEY,       -- random
    ordinal BIGINT NOT NULL DEFAULT nextval('hypothesis_order'),
    batch VARCHAR NOT NULL,
    layer INTEGER NOT NULL,
    head INTEGER NOT NULL,
    predicate VARCHAR NOT NULL,
    parameters JSON NOT NULL              -- [[name, value]]
);
CREATE TABLE hypothesis_event (
    ordinal BIGINT NOT NULL DEFAULT nextval('hypothesis_order'),
    hypothesis VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,                -- withdrawn, or tested
    run VARCHAR,                          -- of a test
    criteria JSON,                        -- of a test: its rows
    note VARCHAR NOT NULL,
    annotator VARCHAR NOT NULL,
    stored TIMESTAMP NOT NULL             -- UTC
);
