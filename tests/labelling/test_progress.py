"""How a project goes: pace, the end it leads to, and agreement as labels come, against counting by hand."""

from datetime import datetime, timedelta

import pandas as pd
import pytest

from core.labelling.progress import agreement_curve, pace
from core.patterns.agreement import alpha_of_counts, alpha_with_interval

NOW = datetime(2026, 1, 31, 12)


def test_pace_is_of_the_last_hour_or_of_hours_with_labels():
    recent = pd.Series([NOW - timedelta(minutes=k) for k in range(30)])
    assert pace(recent, NOW) == pytest.approx(30 / (29 / 60))
    old = pd.Series([NOW - timedelta(days=2, minutes=k) for k in (1, 2, 3, 70)])
    assert pace(old, NOW) == 2  # four labels in two hours of the clock
    assert pace(pd.Series([], dtype="datetime64[us]"), NOW) == 0


def test_the_curve_ends_at_the_alpha_of_all_labels():
    rows = [
        (f"m{k % 10}", who, "ab"[(k + (who == "bob" and k % 10 < 3)) % 2]) for who in ("ada", "bob") for k in range(10)
    ]
    given = pd.DataFrame(rows, columns=["map_id", "annotator", "class"])
    given["stored"] = NOW
    curve = agreement_curve(given, 4)
    assert list(curve["labels"]) == [5, 10, 15, 20]
    assert curve["alpha"].iloc[:2].isna().all()  # one label a map
    full = given.assign(**{"pass": 1, "queue_order": "random"})
    assert curve["alpha"].iloc[-1] == pytest.approx(alpha_with_interval(full).alpha)
    assert agreement_curve(given.iloc[:0]).empty


def test_alpha_of_counts_leaves_single_labels_out():
    import numpy as np

    shared = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    assert alpha_of_counts(np.vstack([shared, [[1.0, 0.0]]])) == alpha_of_counts(shared)
