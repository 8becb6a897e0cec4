-- An admin's undo of somebody else's label. Only an admin can write one, so that it counts whoever made the label.

CREATE OR REPLACE VIEW undone AS          -- events that were taken back: by who made them, or by an admin, and later
SELECT target.event FROM label_event AS target
JOIN label_event AS undo ON undo.undoes = target.event AND undo.ordinal > target.ordinal
WHERE target.kind NOT IN ('undo', 'retire')
  AND (undo.kind = 'retire' OR undo.kind = 'undo' AND undo.annotator = target.annotator);
