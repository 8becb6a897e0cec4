-- What came in from elsewhere says so, and what had been measured on the judging inputs before hypotheses about them.

ALTER TABLE run ADD COLUMN imported TIMESTAMP;        -- when it came in from a file that this app cannot vouch for; UTC
ALTER TABLE hypothesis_event ADD COLUMN imported TIMESTAMP;  -- likewise
ALTER TABLE hypothesis_batch ADD COLUMN runs JSON;    -- runs of these weights that were stored before; NULL: not asked

CREATE OR REPLACE VIEW atlas AS           -- one row a head, score, checkpoint, weights and task: of the newest run of it,
                                          -- and another one where the newest of those imported has it
SELECT checkpoint, task, layer, head, score, value, low, high, n, baseline, p, q,
       study, statistic, feature, run, weights_hash, code_version, created, imported,
       study || CASE WHEN imported IS NULL THEN '' ELSE ', imported' END
       || ', run ' || left(run, 8) || ', ' || strftime(created, '%Y-%m-%d') AS source
FROM (
    SELECT *, row_number() OVER (
        PARTITION BY checkpoint, weights_hash, task, score, layer, head, imported IS NULL ORDER BY ordinal DESC
    ) AS place
    FROM (
        SELECT coalesce(head_score.checkpoint, about.checkpoint) AS checkpoint,
               coalesce(head_score.task, about.task) AS task, layer, head, value, low, high, n, baseline, p, q, study,
               statistic, feature, about.run, code_version, created, imported, ordinal,
               CASE WHEN len(hashes) = 1 THEN hashes[1]
                    WHEN len(hashes) = len(names)
                    THEN hashes[list_position(names, coalesce(head_score.checkpoint, about.checkpoint))]
                    ELSE about.weights_hash END AS weights_hash,  -- of several, whose is not told
               study || '/' || statistic
               || CASE WHEN feature IS NULL OR feature = coalesce(head_score.task, about.task) THEN ''
                       ELSE '/' || feature END AS score
        FROM head_score JOIN (
            SELECT *, regexp_split_to_array(weights_hash, ', | and ') AS hashes,
                   list_filter(
                       list_append(regexp_split_to_array(checkpoint, ', | and '), options->>'$.compare'),
                       lambda name: name IS NOT NULL
                   ) AS names
            FROM run
        ) AS about USING (run)
    )
)
WHERE place = 1 AND checkpoint IS NOT NULL AND checkpoint != 'difference';
