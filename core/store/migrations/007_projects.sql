-- Projects: maps that several people label, what each was handed, and which label events answer that. Only added to.

CREATE SEQUENCE project_order;            -- one order for claims, answers and what admins do
CREATE TABLE project (
    project VARCHAR PRIMARY KEY,          -- random
    ordinal BIGINT NOT NULL DEFAULT nextval('project_order'),
    title VARCHAR NOT NULL,
    class_set VARCHAR NOT NULL,
    recipe JSON NOT NULL,                 -- how its maps were chosen, with the seed
    rules JSON NOT NULL,                  -- people a map, lapse of claims, gold, repeats, who may label
    codebook VARCHAR NOT NULL,            -- words of its own beside those of the classes
    annotator VARCHAR NOT NULL,           -- who made it
    stored TIMESTAMP NOT NULL             -- UTC
);

CREATE TABLE project_map (
    project VARCHAR NOT NULL,
    place INTEGER NOT NULL,               -- in the order they are handed out
    map_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,                -- label gold exemplar
    class VARCHAR,                        -- of gold and exemplars, as it was called then
    PRIMARY KEY (project, map_id)
);

CREATE TABLE project_event (
    ordinal BIGINT NOT NULL DEFAULT nextval('project_order'),
    project VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,                -- pause open close archive; admit exclude (a person); order (of maps)
    person VARCHAR,
    body JSON,                            -- of order: ids of maps
    annotator VARCHAR NOT NULL,           -- who did it
    stored TIMESTAMP NOT NULL
);

CREATE TABLE claim (
    ordinal BIGINT NOT NULL DEFAULT nextval('project_order'),
    project VARCHAR NOT NULL,
    map_id VARCHAR NOT NULL,
    annotator VARCHAR NOT NULL,
    pass INTEGER NOT NULL,
    purpose VARCHAR NOT NULL,             -- label gold repeat training
    given TIMESTAMP NOT NULL,
    until TIMESTAMP NOT NULL              -- it lapses then, unless its holder goes on working
);

CREATE TABLE project_label (              -- the newest row of an event holds
    ordinal BIGINT NOT NULL DEFAULT nextval('project_order'),
    event VARCHAR NOT NULL,               -- of label_event
    project VARCHAR NOT NULL,
    purpose VARCHAR NOT NULL,
    counted BOOLEAN NOT NULL              -- false: surplus
);

CREATE TABLE erasure (                    -- that a person was taken out of the record, never who
    ordinal BIGINT NOT NULL DEFAULT nextval('project_order'),
    kind VARCHAR NOT NULL,                -- name events
    pseudonym VARCHAR NOT NULL,           -- what stands in the place of the name
    events BIGINT NOT NULL,               -- how many it touched
    annotator VARCHAR NOT NULL,           -- who did it
    stored TIMESTAMP NOT NULL
);

CREATE VIEW project_standing AS           -- each person's newest label or skip of a map in a project and pass
SELECT * EXCLUDE (place) FROM (
    SELECT answer.project, answer.purpose, answer.counted, label_event.*,
           row_number() OVER (PARTITION BY answer.project, map_id, annotator, pass ORDER BY label_event.ordinal DESC)
           AS place
    FROM label_event
    JOIN (SELECT event, arg_max(project, ordinal) AS project, arg_max(purpose, ordinal) AS purpose,
                 arg_max(counted, ordinal) AS counted FROM project_label GROUP BY event) AS answer USING (event)
    WHERE kind IN ('label', 'skip') AND event NOT IN (SELECT event FROM undone)
) WHERE place = 1;
