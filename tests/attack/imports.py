"""Attacks through what comes in from elsewhere: options, runs, exports and crates."""

CATEGORIES = {
    "paths in the options of studies": ("tests/robustness/test_paths.py",),
    "invented results that come in": ("tests/store/test_imported_marks.py",),
    "rows, options and jobs of runs that come in": ("tests/store/test_imported_bodies.py",),
    "crates of hypotheses that were altered": ("tests/findings/test_hypothesis_crate.py",),
}
