-- Runs and jobs have the present names of studies; core/study_names.py maps the former ones, also of later imports.

UPDATE run SET study = CASE study
    WHEN 'race' THEN 'sequential-test'
    WHEN 'held' THEN 'fixed-pattern'
    WHEN 'crossed' THEN 'cross-fitted'
    WHEN 'crossed-scores' THEN 'cross-fitted-scores'
    WHEN 'crossed-prune' THEN 'cross-fitted-prune'
    WHEN 'match' THEN 'counterparts'
    WHEN 'classify-maps' THEN 'pattern-shares'
    ELSE study END
WHERE study IN ('race', 'held', 'crossed', 'crossed-scores', 'crossed-prune', 'match', 'classify-maps');

UPDATE job SET study = CASE study
    WHEN 'race' THEN 'sequential-test'
    WHEN 'held' THEN 'fixed-pattern'
    WHEN 'crossed' THEN 'cross-fitted'
    WHEN 'crossed-scores' THEN 'cross-fitted-scores'
    WHEN 'crossed-prune' THEN 'cross-fitted-prune'
    WHEN 'match' THEN 'counterparts'
    WHEN 'classify-maps' THEN 'pattern-shares'
    ELSE study END
WHERE study IN ('race', 'held', 'crossed', 'crossed-scores', 'crossed-prune', 'match', 'classify-maps');
