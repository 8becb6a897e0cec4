"""Attacks on labels and projects, and on the database file when it is put back."""

CATEGORIES = {
    "decisions of somebody else": ("tests/labelling/test_deciding.py",),
    "orders of events that make counts differ": ("tests/labelling/test_live_state.py",),
    "clocks that were ahead": (
        "tests/labelling/test_assignment.py::test_a_reservation_that_begins_in_the_future_has_expired",
        "tests/labelling/test_deciding.py::test_a_decision_closes_a_doubt_whatever_the_clocks_say",
    ),
    "labels of Label Studio and names that look alike": ("tests/reports/test_labels.py",),
    "two admins at once": (
        "tests/patterns/test_class_races.py",
        "tests/store/test_restore.py::test_of_two_who_restore_at_once_one_is_told",
    ),
    "restoring beside a log, and newer backups": ("tests/store/test_restore.py",),
    "sessions of others": ("tests/test_sign_in_sessions.py",),
    "an annotator at the controls of an admin": ("tests/pages/test_annotator_presses.py",),
}
