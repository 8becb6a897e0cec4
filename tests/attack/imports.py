"""Attacks through what comes in from elsewhere: options, runs, exports and crates."""

CATEGORIES = {
    "paths in the options of studies": ("tests/robustness/test_paths.py",),
}
