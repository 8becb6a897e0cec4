-- Scores of heads whose row names a part that is no set of heads (a class's share, say) belong with the others.

INSERT INTO head_score BY NAME SELECT * EXCLUDE (part) FROM part_score WHERE part NOT IN ('encoder', 'decoder', 'cross');
DELETE FROM part_score WHERE part NOT IN ('encoder', 'decoder', 'cross');
