"""A criterion of a hypothesis, for tests of what shows it."""

from core.studies.hypotheses.records import Criterion


def met(sentence: str, **columns) -> Criterion:
    """A criterion that 150 inputs meet; `columns` in place of its own."""
    known = {"subject": "L1H2", "measure": "weight", "amount": 0.75, "low": 0.7, "high": 0.8, "baseline": 0.1}
    known |= {"n": 150, "adjusted": 0.003, "level": 0.05, "measured_by": "run"} | columns
    return Criterion(hypothesis="1", sentence=sentence, criterion="held out", state="met", **known)
