"""Prove on a GPU what holds on the CPU: `python -m tests.device [--json]`.

Self-checks of every family, capture, statistics without maps, sweeps, racing and fine-tuning, in float32 and bfloat16,
each beside the CPU's float32 to a stated bound; then times. A line a check; exit status 1 where one failed. Without
CUDA it says so and exits 0. The results page *Benchmarks* has what was measured.
"""

import argparse
import json
import sys
from dataclasses import asdict

import torch

from tests.device.checks import Checked, all_checks
from tests.device.times import times

NONE = "0 checks ran: this machine has no GPU that PyTorch can use (torch.cuda.is_available() is False)."


def report(device: torch.device, name: str) -> dict[str, object]:
    """What was found on a device."""
    checked = list(all_checks(device))
    return {
        "device": name,
        "torch": torch.__version__,
        "checks": [asdict(one) for one in checked],
        "ran": len(checked),
        "failed": sum(not one.passed for one in checked),
        "times": times(device),
    }


def said(checked: Checked) -> str:
    """A line of a check."""
    verdict = "passed" if checked.passed else "FAILED"
    return f"{verdict}  {checked.dtype:<9} {checked.name}: {checked.seen}"


def main() -> int:
    """Print what was found; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.device", description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    if not torch.cuda.is_available():
        print(json.dumps({"device": None, "ran": 0, "failed": 0, "checks": [], "said": NONE}) if as_json else NONE)
        return 0
    found = report(torch.device("cuda"), torch.cuda.get_device_name())
    if as_json:
        print(json.dumps(found))
    else:
        for one in found["checks"]:  # type: ignore[attr-defined]
            print(said(Checked(**one)))
        print(f"{found['ran']} checks ran on {found['device']}, {found['failed']} failed")
        for name, value in found["times"].items():  # type: ignore[attr-defined]
            print(f"{name}: {value:.4g}")
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
