"""Former names of studies, which may still appear in commands, exports, crates, scripts and stored options."""

CURRENT_NAMES = {
    "race": "sequential-test",
    "held": "fixed-pattern",
    "crossed": "cross-fitted",
    "crossed-scores": "cross-fitted-scores",
    "crossed-prune": "cross-fitted-prune",
    "match": "counterparts",
    "classify-maps": "pattern-shares",
}


def current_name(study: str) -> str:
    """Return the current name of a study, given its current or a former name."""
    return CURRENT_NAMES.get(study, study)
