"""Run one benchmark: `python -m tests.benchmarks NAME [--json]`.

Each module of this package has `main() -> dict[str, object]`, whose figures are printed as a table or as one
JSON object; `add_options`, if there, adds the options that `main` takes. Ratios are measured in one run, interleaved;
absolute times are for this machine only, which the line above the table describes.
"""

import argparse
import importlib
import json
import os
import pkgutil
from pathlib import Path

from rich.console import Console
from rich.table import Table

import tests.benchmarks as package


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__) if module.name != "__main__")


def machine() -> str:
    """The instruction sets, BLAS kernels and load of this machine."""
    import numpy  # noqa: F401  its BLAS is listed
    import torch
    from threadpoolctl import threadpool_info

    libraries = [one for one in threadpool_info() if one["user_api"] == "blas"]
    blas = {f"{one['internal_api']} {one.get('architecture', '')}".strip() for one in libraries}
    flags = Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].split("\n", 1)[0].split()
    found = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "avx_vnni", "amx_bf16") if flag in flags]
    forced = [f"{name}={os.environ[name]}" for name in FORCED if name in os.environ]
    return (
        f"{' '.join(found)} · torch {torch.backends.cpu.get_cpu_capability()}, {torch.get_num_threads()} threads · "
        f"{', '.join(sorted(blas))} · load {os.getloadavg()[0]:.1f}" + (f" · {' '.join(forced)}" if forced else "")
    )


FORCED = ("ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "OPENBLAS_CORETYPE", "OMP_NUM_THREADS")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=names())
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    known, _ = parser.parse_known_args()
    module = importlib.import_module(f"tests.benchmarks.{known.name}")
    if hasattr(module, "add_options"):
        module.add_options(parser)
    options = vars(parser.parse_args())
    name, as_json = options.pop("name"), options.pop("json")
    began = machine()
    figures = module.main(**options)
    if as_json:
        print(json.dumps({"benchmark": name, "machine": began, **figures}))
        return
    table = Table("figure", "value", title=name)
    for figure, value in figures.items():
        table.add_row(figure, f"{value:.4g}" if isinstance(value, float) else str(value))
    Console().print(began, table)


if __name__ == "__main__":
    main()
