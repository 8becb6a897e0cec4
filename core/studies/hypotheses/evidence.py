"""What a run says of a hypothesis, whatever its predicate is."""

from typing import Any

from core.attention import Head
from core.studies.hypotheses import intervention_readings, readings, share_readings
from core.studies.hypotheses.predicates import Hypothesis
from core.studies.hypotheses.readings import Evidence

READERS = {**readings.READERS, **share_readings.READERS, **intervention_readings.READERS}  # by predicate


def evidence_of(hypothesis: Hypothesis, partial: Any, head: Head) -> Evidence:
    """What a run's merged partial result says. head: the hypothesis' own, or its counterpart."""
    return READERS[hypothesis.predicate](hypothesis, partial, head)
