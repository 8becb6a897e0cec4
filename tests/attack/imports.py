"""Attacks through what comes in from elsewhere: options, runs, exports and crates."""

CATEGORIES = {
    "paths in the options of studies": ("tests/robustness/test_paths.py",),
    "invented results that come in": ("tests/store/test_imported_marks.py",),
    "rows, options and jobs of runs that come in": ("tests/store/test_imported_bodies.py",),
    "given files that are links, pipes or change between check and use": (
        "tests/test_reading.py",
        "tests/robustness/test_opened_files.py",
    ),
    "names in results of counterparts and probes": ("tests/pages/test_hostile_results.py",),
    "config.json and training.json with anything in them": ("tests/reports/test_hostile_files.py",),
    "crates of hypotheses that were altered": ("tests/findings/test_hypothesis_crate.py",),
}
