-- The atlas keeps scores of other weights under one name apart: each row says the weights of its own checkpoint.

CREATE OR REPLACE VIEW atlas AS           -- one row a head, score, checkpoint, weights and task: of the newest run of it
SELECT checkpoint, task, layer, head, score, value, low, high, n, baseline, p, q,
       study, statistic, feature, run, weights_hash, code_version, created,
       study || ', run ' || left(run, 8) || ', ' || strftime(created, '%Y-%m-%d') AS source
FROM (
    SELECT *, row_number() OVER (
        PARTITION BY checkpoint, weights_hash, task, score, layer, head ORDER BY ordinal DESC
    ) AS place
    FROM (
        SELECT coalesce(head_score.checkpoint, about.checkpoint) AS checkpoint,
               coalesce(head_score.task, about.task) AS task, layer, head, value, low, high, n, baseline, p, q, study,
               statistic, feature, about.run, code_version, created, ordinal,
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
