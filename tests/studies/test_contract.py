"""Options from one declaration, their identity, and partial results through JSON."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from core.attention import Head
from core.errors import InputError, JobError
from core.jobs import worker
from core.scoring.intervals import Means
from core.studies.ablation import disable
from core.studies.contract import WITHDRAWN, as_json, declared, identity
from core.studies.frames import frame_heads
from core.studies.lookup import find_study, study_modules
from core.studies.transport import decode, encode


@dataclass(frozen=True)
class Inner:
    name: str | None
    heads: tuple[Head, ...]


@dataclass(frozen=True)
class Outer:
    values: np.ndarray
    inner: tuple[Inner, ...]
    lengths: dict[int, tuple[float, float]]
    worst: float
    means: Means
    maybe: np.ndarray | None = None


def test_a_record_comes_back_from_json_as_it_was():
    means = Means(1, 2, 1)
    means.update(0, np.array([[[0.1], [0.2]]]), np.array([[1.0]]), [0])
    values = np.array([[0.1, np.nan], [np.inf, 1e-17]], dtype=np.float32)
    record = Outer(values, (Inner(None, (Head(1, 2),)),), {8: (0.5, 1.0)}, float("nan"), means)
    again = decode(Outer, json.loads(json.dumps(encode(record), allow_nan=False)))
    np.testing.assert_array_equal(again.values, values)
    assert again.values.dtype == np.float32
    assert again.inner == record.inner
    assert isinstance(again.inner[0].heads[0], Head)
    assert again.lengths == {8: (0.5, 1.0)}
    assert np.isnan(again.worst)
    assert again.maybe is None
    np.testing.assert_array_equal(again.means.sums, means.sums)


def test_a_partial_result_of_another_version_is_refused_with_what_to_do():
    with pytest.raises(JobError, match=r"another version .*Start the job again"):
        decode(disable.Ablations, {"layers": 3, "exact": None})  # as before float32 had a record of its own


def test_what_has_no_form_in_json_is_refused():
    with pytest.raises(TypeError, match="got object"):
        encode(object())


def test_options_are_the_same_however_they_are_written():
    study = disable.STUDY
    one = study.read({"checkpoint": "c", "limit": 0, "dtype": "bf16"})
    other = study.read({"dtype": "bfloat16", "limit": None, "checkpoint": "c", "seed": "0"})
    assert one == other
    assert (
        identity("disable", one)
        == identity("disable", as_json(other))
        != identity("disable", study.read({"checkpoint": "c"}))
    )
    with pytest.raises(InputError, match="got 'cuont'"):
        study.read({"checkpoint": "c", "cuont": 1})
    with pytest.raises(InputError, match="checkpoint of the study disable cannot be nothing"):
        study.read({})


@pytest.mark.parametrize(
    ("study", "given", "says"),
    [
        ("seeds", {"side": 11}, r"option side of the study seeds must be at least 3 and at most 10; got 11\. Change"),
        ("seeds", {"top": 0}, r"option top of the study seeds must be at least 1; got 0\. Change this value\.$"),
        ("disable", {"limit": -1}, "option limit of the study disable must be at least 0; got -1"),
        ("patch", {"floor": float("nan")}, r"option floor of the study patch must be at least 0\.0; got nan"),
    ],
)
def test_the_bounds_of_an_option_hold_for_callers_other_than_the_terminal_too(study, given, says):
    with pytest.raises(InputError, match=says):
        find_study(study).read({"checkpoint": "c", "task": "sst2"} | given)


def test_the_bounds_of_an_option_can_be_chosen():
    for side in (3, 10):
        assert find_study("seeds").read({"checkpoint": "c", "task": "sst2", "side": side, "top": 1}).side == side
    assert find_study("prune").read({"checkpoint": "c", "task": "sst2", "order_rows": None}).order_rows is None


def test_a_declaration_has_defaults_and_help():
    known = declared(disable.DisableOptions)
    assert known["checkpoint"].required
    assert (known["limit"].default, known["limit"].help[:26]) == (500, "maximum number of examples")
    assert declared(frame_heads.FrameHeadsOptions)["rows"].flag is None


def test_what_a_job_of_before_says_of_the_device_is_left_to_the_machine():
    """Stored jobs, runs and the record have it among their options: they open, and are the same job as one of today."""
    for name in study_modules():
        study = find_study(name)
        assert not WITHDRAWN & set(declared(study.options)), name
    now = disable.STUDY.read({"checkpoint": "c"})
    before = as_json(now) | {"device": "cpu"}
    assert disable.STUDY.read(before) == now
    assert worker.complete(disable.STUDY, before) == as_json(now)
