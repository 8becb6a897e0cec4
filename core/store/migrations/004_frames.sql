-- FrameNet releases as they were indexed, to search their annotated sentences.

CREATE TABLE frame_release (
    release VARCHAR PRIMARY KEY,          -- fndata-1.7
    folder VARCHAR NOT NULL,
    run VARCHAR NOT NULL,                 -- the run of the index-frames study it came from
    annotations BIGINT NOT NULL,
    skipped JSON NOT NULL,                -- what the reader rejected: [{where, why}]
    indexed TIMESTAMP NOT NULL            -- UTC
);

CREATE TABLE frame_annotation (
    release VARCHAR NOT NULL,
    id VARCHAR NOT NULL,
    frame VARCHAR NOT NULL,
    unit VARCHAR NOT NULL,                -- lexical unit, "walk.v"
    elements VARCHAR[] NOT NULL,          -- names of the elements that the sentence expresses
    text VARCHAR NOT NULL,
    words INTEGER NOT NULL,               -- white-space separated
    body JSON NOT NULL                    -- the sentence as a line of our own form
);
