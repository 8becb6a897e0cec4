"""The report of the record that ships, made once in a process: 3 CPU seconds, and half a dozen tests look at it."""

from collections.abc import Sequence
from functools import cache

import pytest

from core import config
from core.report import recorded_report, report
from core.report.evidence import Evidence
from core.report.records import Records


@cache
def evidence() -> Sequence[Evidence]:
    """Of both checkpoints, made without samples and models; not to be changed, as others see it too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "DATA", config.PROJECT / "no such folder")
        return recorded_report.recorded_evidence()


@cache
def records() -> Records:
    """What the report says of them."""
    return report.records_of(evidence())
