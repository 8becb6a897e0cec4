-- Of which checkpoint and task each score is, where a run has several; and the atlas: every head's newest scores.

ALTER TABLE head_score ADD COLUMN checkpoint VARCHAR;  -- NULL: the run's
ALTER TABLE head_score ADD COLUMN task VARCHAR;        -- NULL: the run's

UPDATE head_score SET checkpoint = said.checkpoint, task = said.task
FROM (
    SELECT run, body->>'$.statistic' AS statistic, body->>'$.feature' AS feature,
           TRY_CAST(body->>'$.layer' AS INTEGER) AS layer, TRY_CAST(body->>'$.head' AS INTEGER) AS head,
           TRY_CAST(body->>'$.value' AS DOUBLE) AS value,
           coalesce(body->>'$.checkpoint', body->>'$.after') AS checkpoint, body->>'$.task' AS task
    FROM study_row
) AS said
WHERE head_score.run = said.run AND head_score.statistic = said.statistic AND head_score.layer = said.layer
  AND head_score.head = said.head AND head_score.feature IS NOT DISTINCT FROM said.feature
  AND head_score.value IS NOT DISTINCT FROM said.value;

CREATE VIEW atlas AS                      -- one row a head, score, checkpoint and task: of the newest run that has it
SELECT checkpoint, task, layer, head, score, value, low, high, n, baseline, p, q,
       study, statistic, feature, run, weights_hash, code_version, created,
       study || ', run ' || left(run, 8) || ', ' || strftime(created, '%Y-%m-%d') AS source
FROM (
    SELECT *, row_number() OVER (PARTITION BY checkpoint, task, score, layer, head ORDER BY ordinal DESC) AS place
    FROM (
        SELECT coalesce(head_score.checkpoint, run.checkpoint) AS checkpoint, coalesce(head_score.task, run.task) AS task,
               layer, head, value, low, high, n, baseline, p, q, study, statistic, feature, run.run, weights_hash,
               code_version, created, ordinal,
               study || '/' || statistic
               || CASE WHEN feature IS NULL OR feature = coalesce(head_score.task, run.task) THEN ''
                       ELSE '/' || feature END AS score
        FROM head_score JOIN run USING (run)
    )
)
WHERE place = 1 AND checkpoint IS NOT NULL AND checkpoint != 'difference';
