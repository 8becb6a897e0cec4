"""Fuzz a reader: `python -m tests.fuzz NAME --seconds N`. A finding ends it, and lies in crash-* for `--again FILE`.

Coverage-guided by atheris where it is installed (Linux); otherwise random changes of the seeds.
"""

import argparse
import random
import sys
import time
from pathlib import Path

from tests.fuzz.readers import READERS, tried


def guided(name: str, seconds: int, corpus: Path) -> None:
    """Fuzz by coverage of `core`; libFuzzer ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=["core.frames", "core.tasks", "core.store"]):
        for data in READERS[name][1]:
            tried(name, data)
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(READERS[name][1]):
        (corpus / f"seed-{number}").write_bytes(data)
    words = [sys.argv[0], str(corpus), f"-max_total_time={seconds}", "-max_len=2000", "-print_final_stats=1"]
    atheris.Setup(words, lambda data: tried(name, data))
    atheris.Fuzz()


def changed(draw: random.Random, data: bytes) -> bytes:
    """A seed with a few bytes changed, cut, doubled or put in."""
    found = bytearray(data)
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(found) + 1)
        kind = draw.randrange(4)
        if kind == 0:
            found[at : at + 1] = bytes([draw.randrange(256)])
        elif kind == 1:
            del found[at : at + draw.randint(1, 9)]
        elif kind == 2:
            found[at:at] = found[at : at + draw.randint(1, 30)]
        else:
            found[at:at] = draw.choice(
                [b'"', b"\\", b"[", b"{", b"null", b"-1", b"1e999", b"\xff", b"\0", b"\t", b"\n"]
            )
    return bytes(found)


def unguided(name: str, seconds: float, *, seed: int = 0) -> int:
    """Random changes of the seeds for `seconds`; returns how many were tried. A finding raises."""
    draw, end, count = random.Random(seed), time.monotonic() + seconds, 0  # noqa: S311 - inputs, not secrets
    while time.monotonic() < end:
        data = changed(draw, draw.choice(READERS[name][1]))
        try:
            tried(name, data)
        except Exception:
            Path("crash-unguided").write_bytes(data)
            raise
        count += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=READERS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, default=None, help="folder for inputs that reach new code")
    parser.add_argument("--again", type=Path, help="a finding to try again")
    options = parser.parse_args()
    if options.again:
        tried(options.name, options.again.read_bytes())
        return
    try:
        import atheris  # noqa: F401 - only asked for
    except ImportError:
        print(f"{unguided(options.name, options.seconds)} inputs without a finding; atheris is not installed")
    else:
        guided(options.name, options.seconds, options.corpus or Path("build") / "fuzz" / options.name)


if __name__ == "__main__":
    main()
