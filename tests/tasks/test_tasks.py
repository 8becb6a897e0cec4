"""The tasks end right within their clicks, in a real browser."""

import pytest

from tests.tasks.__main__ import TASKS, run


@pytest.mark.slow  # three minutes: every task begins with a new page of a server of its own
@pytest.mark.browser
def test_every_task_ends_right_within_its_clicks():
    found = run(list(TASKS))
    assert {letter: one for letter, one in found.items() if not one["done"]} == {}
