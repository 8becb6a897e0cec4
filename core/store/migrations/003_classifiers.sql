-- Trained pattern classifiers, each with the labels it saw and how it scored, and which one suggests.

CREATE SEQUENCE classifier_order;
CREATE TABLE classifier (
    classifier VARCHAR PRIMARY KEY,
    ordinal BIGINT NOT NULL DEFAULT nextval('classifier_order'),
    class_set VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,                -- paper replication baseline
    recipe JSON NOT NULL,
    classes JSON NOT NULL,                -- names in the order of its outputs
    weights BLOB NOT NULL,                -- safetensors
    labels INTEGER NOT NULL,
    snapshot JSON NOT NULL,               -- [map_id, class, event] of every label it was trained on
    snapshot_hash VARCHAR NOT NULL,
    scores JSON NOT NULL,                 -- held-out scores, confusion, predictions
    annotator VARCHAR NOT NULL,
    stored TIMESTAMP NOT NULL
);

CREATE SEQUENCE classifier_choice_order;
CREATE TABLE classifier_choice (          -- append-only: the newest one of a class set suggests
    ordinal BIGINT NOT NULL DEFAULT nextval('classifier_choice_order'),
    class_set VARCHAR NOT NULL,
    classifier VARCHAR,                   -- NULL: none suggests
    annotator VARCHAR NOT NULL,
    stored TIMESTAMP NOT NULL
);
