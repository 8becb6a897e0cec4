-- Which file this is, whose each outbox is, and undos that count only for who made what they take back.

CREATE TABLE store_id (id VARCHAR NOT NULL);  -- of this file and its copies; outboxes of browsers name it
INSERT INTO store_id SELECT CAST(uuid() AS VARCHAR);

CREATE TABLE label_batch (
    batch VARCHAR PRIMARY KEY,
    owner VARCHAR NOT NULL,               -- who sent it first: name:..., or browser:... (a hash of a secret it keeps)
    stored TIMESTAMP NOT NULL             -- UTC
);

CREATE VIEW undone AS                     -- events that somebody took back: their own, and later than they made them
SELECT target.event FROM label_event AS target
JOIN label_event AS undo ON undo.undoes = target.event AND undo.kind = 'undo'
WHERE undo.annotator = target.annotator AND undo.ordinal > target.ordinal AND target.kind != 'undo';

CREATE OR REPLACE VIEW standing AS        -- what each annotator thinks of each map now
SELECT * EXCLUDE (place) FROM (
    SELECT *, row_number() OVER (PARTITION BY class_set, map_id, annotator, pass ORDER BY ordinal DESC) AS place
    FROM label_event
    WHERE kind IN ('label', 'skip') AND event NOT IN (SELECT event FROM undone)
) WHERE place = 1;
