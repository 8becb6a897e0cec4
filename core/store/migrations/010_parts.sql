-- Scores of heads of an encoder-decoder, each with the set it is in, so that "Enc L1H2" and "Cross L1H2" stay apart.

CREATE TABLE part_score (
    run VARCHAR NOT NULL,
    statistic VARCHAR NOT NULL,
    feature VARCHAR,
    layer INTEGER NOT NULL,               -- of the set, zero-based
    head INTEGER NOT NULL,                -- of the layer, zero-based
    value DOUBLE,
    low DOUBLE,
    high DOUBLE,
    n BIGINT,
    baseline DOUBLE,
    p DOUBLE,
    q DOUBLE,
    checkpoint VARCHAR,                   -- NULL: the run's
    task VARCHAR,                         -- likewise
    part VARCHAR NOT NULL                 -- encoder, decoder or cross
);

CREATE VIEW every_score AS                -- of all heads; part is NULL where a model has one set of them
SELECT * FROM head_score UNION ALL BY NAME SELECT * FROM part_score;
