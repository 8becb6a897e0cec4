"""Former names of studies, which commands, exports, crates, scripts and stored options may still use."""

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
    """The present name of a study, given its present or a former one."""
    return CURRENT_NAMES.get(study, study)
