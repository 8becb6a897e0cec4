"""`python -m tests.device` runs on this machine: without a GPU it says so, and its checks pass on the CPU."""

import json
import sys

import pytest
import torch

from core.models.family import FAMILIES
from tests.device import __main__ as command
from tests.device import checks
from tests.device.times import times
from tests.families.tiny import tiny_of_record

CPU = torch.device("cpu")


@pytest.mark.parametrize("as_json", [True, False])
def test_without_a_gpu_it_says_so_and_exits_0(as_json, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["device", *(["--json"] if as_json else [])])
    assert command.main() == 0
    said = capsys.readouterr().out
    assert "0 checks ran" in said
    if as_json:
        assert json.loads(said)["ran"] == 0


def test_every_family_has_a_self_check():
    assert all(tiny_of_record(family) for family in FAMILIES)


@pytest.mark.slow  # opens three checkpoints and fine-tunes in both
def test_checks_pass_on_the_cpu_in_both_precisions():
    found = list(checks.all_checks(CPU, ["bert", "llama"]))
    assert [one.seen for one in found if not one.passed] == []
    assert [one.dtype for one in found] == ["float32"] * 7 + ["bfloat16"] * 7


def test_a_device_that_is_off_fails_with_the_figure(monkeypatch):
    honest = checks.moved

    def off(checkpoint, device, dtype):
        made = honest(checkpoint, device, dtype)
        with torch.no_grad():
            next(made.model.parameters()).mul_(1.5)
        return made

    monkeypatch.setattr(checks, "moved", off)
    failed = checks._tried("capture", "float32", lambda: checks.captured(CPU, "float32"))
    assert not failed.passed
    assert "bound 0.001" in failed.seen


def test_a_check_that_cannot_run_has_failed_in_words():
    failed = checks._tried("capture", "float32", lambda: 1 / 0)
    assert (failed.passed, failed.seen) == (False, "ZeroDivisionError: division by zero")


@pytest.mark.slow  # a pass of every benchmark
def test_times_are_of_everything_that_is_promised():
    found = times(CPU, size="small", rows=4)
    assert set(found) == {
        "gemm_tflops_float32",
        "p1_capture_over_bare_128",
        "p2_passes_over_sweep",
        "p5_features_over_bare",
        "sweep_seconds",
        "sweep_seconds_bfloat16",
        "sweep_share_of_gemm",
    }
    assert all(value > 0 for value in found.values())
