-- Results that somebody pinned with a note: whole in themselves, so that they stay when their run is deleted.

CREATE SEQUENCE finding_order;
CREATE TABLE finding (
    finding VARCHAR PRIMARY KEY,          -- random
    ordinal BIGINT NOT NULL DEFAULT nextval('finding_order'),
    kind VARCHAR NOT NULL,                -- run (of a study) or maps (of one input)
    title VARCHAR NOT NULL,
    note VARCHAR NOT NULL,
    run VARCHAR,                          -- the run it is of
    about VARCHAR NOT NULL,               -- task, rows, seed, operator ... in one line
    command VARCHAR NOT NULL,             -- what gives it again; "" where no command does
    checkpoint VARCHAR,
    weights_hash VARCHAR,
    numbers JSON NOT NULL,                -- [{name, what, value, low, high, n}]
    pictures JSON NOT NULL,               -- Vega-Lite specifications
    maps VARCHAR,                         -- the packed maps of core.drawing.packing, or NULL
    annotator VARCHAR NOT NULL,
    stored TIMESTAMP NOT NULL             -- UTC
);
