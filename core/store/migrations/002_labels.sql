-- Attention maps that were drawn to be labelled, what people did with them, and what happened to classes.
-- Labels, undos and class changes are events: nothing here is ever updated or deleted.

CREATE TABLE attention_map (
    map_id VARCHAR PRIMARY KEY,           -- hash of weights, input and head: the same map is stored once
    checkpoint VARCHAR NOT NULL,
    weights_hash VARCHAR NOT NULL,
    task VARCHAR NOT NULL,
    split VARCHAR,
    row_id VARCHAR NOT NULL,
    layer INTEGER NOT NULL,               -- zero-based
    head INTEGER NOT NULL,                -- zero-based
    length INTEGER NOT NULL,
    tokens JSON NOT NULL,
    separators JSON NOT NULL,             -- positions, zero-based
    causal BOOLEAN NOT NULL,
    maximum DOUBLE NOT NULL,              -- of a causal map without query 0
    seed BIGINT,                          -- that drew it
    weights BLOB NOT NULL,                -- float16, little-endian, [query, key] row by row
    stored TIMESTAMP NOT NULL             -- UTC
);

CREATE SEQUENCE label_event_order;
CREATE TABLE label_event (
    event VARCHAR PRIMARY KEY,            -- batch:sequence, so that sending a batch again changes nothing
    ordinal BIGINT NOT NULL DEFAULT nextval('label_event_order'),
    batch VARCHAR NOT NULL,               -- one outbox: a tab of a browser, or a file
    sequence INTEGER NOT NULL,            -- its number there, from 1
    kind VARCHAR NOT NULL,                -- label skip flag note undo
    class_set VARCHAR NOT NULL,
    map_id VARCHAR NOT NULL,
    annotator VARCHAR NOT NULL,
    pass INTEGER NOT NULL,                -- 1, or 2 and more for the same person again
    class VARCHAR,                        -- of a label, as it was called then
    note VARCHAR,
    undoes VARCHAR,                       -- the event that an undo takes back
    supersedes VARCHAR,                   -- the label or skip of this map that stood before
    seconds DOUBLE,                       -- since the event before
    scale VARCHAR,                        -- absolute, or own (up to the map's largest weight)
    way VARCHAR,                          -- sheet, single, image (a rendered sheet), file
    queue_order VARCHAR,                  -- random, uncertain, disagreement, adjudication
    suggestion VARCHAR,                   -- class that was shown as suggested; NULL where none was shown
    probability DOUBLE,                   -- of the suggestion
    classifier VARCHAR,                   -- that made it
    happened TIMESTAMP NOT NULL,          -- UTC, in the browser
    stored TIMESTAMP NOT NULL             -- UTC
);

CREATE VIEW standing AS                   -- what each annotator thinks of each map now
SELECT * EXCLUDE (place) FROM (
    SELECT *, row_number() OVER (PARTITION BY class_set, map_id, annotator, pass ORDER BY ordinal DESC) AS place
    FROM label_event
    WHERE kind IN ('label', 'skip')
      AND event NOT IN (SELECT undoes FROM label_event WHERE kind = 'undo' AND undoes IS NOT NULL)
) WHERE place = 1;

CREATE SEQUENCE class_event_order;
CREATE TABLE class_event (
    ordinal BIGINT NOT NULL DEFAULT nextval('class_event_order'),
    class_set VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,                -- add rename merge
    class VARCHAR NOT NULL,
    into_class VARCHAR,                   -- of a merge
    title VARCHAR,
    eye VARCHAR,
    colour VARCHAR,
    key VARCHAR,
    annotator VARCHAR NOT NULL,
    stored TIMESTAMP NOT NULL
);
