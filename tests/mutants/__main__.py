"""Would a test notice? Mutants of modules of core (mutmut's operators), each tried on the tests of its own room.

    python -m tests.mutants                                        # modules that differ from HEAD
    python -m tests.mutants core/scoring --share 0.05              # a seeded sample of a room
    python -m tests.mutants core/store core/jobs --sample 300      # of each, in turn, on the tests of both
    python -m tests.mutants core/capture --minutes 10              # as many as that, in a seeded order
    python -m tests.mutants core/store/people.py --only tests/store/test_people.py   # where a room's tests take minutes
    python -m tests.mutants core/scoring --again                   # first what survived earlier, on today's tests
    python -m tests.mutants core/scoring --marked "not slow and not browser and not thorough"  # soon; then the rest:
    python -m tests.mutants core/scoring --marked thorough --again
    python -m tests.mutants --table                                # what is known of each room

A mutant meets first the tests of its own room that reach its lines, then those of other rooms; thorough ones too, and
no slow ones. `killed elsewhere` means that only those of other rooms noticed.

A copy of the tracked files is what is changed and run, never the tree. Each result, with the test that failed, is a
line of build/mutants/results.jsonl as soon as it is known, so a run that was stopped goes on where it was. Mutants
that no test can kill are listed, with the reason, in tests/mutants/equivalent.txt. Mutants of words for people (error
messages, log, prose) are not drawn; how many those are is printed. The checks of array shapes are off, so that what
kills a mutant is a test.
"""

import argparse
import hashlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from core.scoring.intervals import wilson_interval

PROJECT = Path(__file__).resolve().parents[2]
RESULTS = Path(os.environ.get("MUTANT_RESULTS", PROJECT / "build" / "mutants" / "results.jsonl"))
EQUIVALENT = PROJECT / "tests" / "mutants" / "equivalent.txt"
PYTEST = [
    "-o",
    "addopts=--strict-markers",
    "-p",
    "no:cacheprovider",
    "-o",
    "faulthandler_timeout=0",
    "--assert=plain",
    "-q",
    "-q",
]
MARKED = "not slow and not browser"
RULES = {
    re.compile(rule): why
    for rule, why in {
        r'float\("nan"\).* \+ .*float\("NAN"\)': "the same number",
        r"strict=True\).* \+ .*(strict=None|strict=False|, )\)": "a guard: the sides are always of one length",
        r"strict=False\).* \+ .*(strict=None|, )\)": "the same default",
        r"astype\(np.float64\).* \+ .*astype\(None\)": "None is float64",
        r"astype\(float\).* \+ .*astype\(None\)": "None is float64",
        r"np\.(zeros|ones)\(.*dtype=(float|np.float64)\).* \+ .*(dtype=None|, )\)": "None is float64",
        r"np\.full(_like)?\(.*np\.nan\).* \+ .*np\.full(_like)?\([^+]*None\)": "None becomes NaN among floats",
        r"np\.errstate\(": "warnings, no results",
        r": - def .*: \.\.\. \+ def ": "a protocol's signature, which never runs",
    }.items()
}
ALIVE = ("survived", "uncovered")  # no test failed, no test runs the line


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 1 where fewer than --least of the tried mutants were killed or are equivalent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="files or folders of core; default: files that differ from HEAD")
    parser.add_argument("--share", type=float, default=1.0, help="of the mutants, drawn with --seed")
    parser.add_argument(
        "--sample", type=int, help="so many of the mutants, those on record included, the others drawn with --seed"
    )
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--least", type=float, default=0.9, help="share that has to be killed")
    parser.add_argument("--tests", nargs="*", default=[], help="folders of tests beside the room's own")
    parser.add_argument("--only", nargs="*", default=[], help="these files of tests in place of the room's folder")
    parser.add_argument("--marked", default=MARKED, help="pytest's expression of which tests; default: %(default)s")
    parser.add_argument("--again", action="store_true", help="try again what survived")
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after these; what was tried is a fair sample")
    parser.add_argument("--patience", type=float, default=30.0, help="seconds that the tests of one mutant may take")
    parser.add_argument("--workers", type=int, default=2, help="so many mutants at a time")
    parser.add_argument("--table", action="store_true", help="what earlier runs found, by room")
    asked = parser.parse_args(arguments)
    if asked.table:
        print("\n".join([*(f"    listed, and no mutant any more: {key}" for key in gone()), table(standing())]))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # ends the child, removes the copy
    modules = files(asked.modules) or changed_modules()
    try_all(modules, asked)
    statuses = {key: status for key, status in standing().items() if key.split(" ")[0] in modules}
    alive = {key for key, status in statuses.items() if status in ALIVE}
    alive -= equivalent(alive).keys()
    print("\n".join([*(f"    {key}" for key in sorted(alive)), table(statuses)]))
    return int(len(alive) > (1 - asked.least) * len(statuses))


def files(asked: Sequence[str]) -> list[str]:
    """Files, and those of folders."""
    return [str(path) for name in asked for path in (sorted(Path(name).rglob("*.py")) or [name])]


def changed_modules() -> list[str]:
    """Files of core that differ from HEAD."""
    lines = _output("git", "diff", "--name-only", "--diff-filter=d", "HEAD", "--", "core").splitlines()
    return [line for line in lines if line.endswith(".py")]


def room_of(module: str) -> str:
    """`scoring` of core/scoring/heads.py; nothing of core/config.py."""
    return "/".join(Path(module).parts[1:-1][:1])


def tests_of(room: str) -> list[str]:
    """The folder of a room's tests, or the files of what has no room."""
    return [f"tests/{room}"] if room else sorted(str(path) for path in Path("tests").glob("test_*.py"))


def try_all(modules: list[str], asked: argparse.Namespace) -> None:
    """Try the mutants that are not on record, of the rooms in turn, in a process of their own."""
    rooms = list(dict.fromkeys(map(room_of, modules)))
    by_room = [wanted(room, [module for module in modules if room_of(module) == room], asked) for room in rooms]
    turns = [key for turn in itertools.zip_longest(*by_room) for key in turn if key]
    if not turns:
        return
    tree = copied_tree()
    try:
        tests = asked.only or [test for room in rooms for test in tests_of(room)] + asked.tests
        (tree / "wanted.json").write_text(
            json.dumps([turns, modules, tests, asked.marked, asked.minutes, asked.patience, asked.workers])
        )
        command = [sys.executable, "-c", "from tests.mutants.__main__ import try_here; try_here()"]
        environment = os.environ | {"MUTANT_RESULTS": str(RESULTS), "SHAPE_CHECKS": "off"}
        subprocess.run(command, cwd=tree, env=environment, check=True)
    finally:
        shutil.rmtree(tree, ignore_errors=True)


def wanted(room: str, modules: list[str], asked: argparse.Namespace) -> list[str]:
    """The room's mutants to try, by key: as many as complete the sample; first what survived, where that is asked."""
    worded = {key: why for module in modules for key, why in kept_keys(module).items()}
    keys = [key for key, why in worded.items() if not why]
    size = asked.sample or max(1, round(asked.share * len(keys)))
    known = recorded()
    tried = sum(key in known for key in keys)
    untried = sorted((key for key in keys if key not in known), key=lambda key: drawn(key, asked.seed))
    keys_to_try = untried[: max(0, size - tried)]
    if asked.again:
        alive = [key for key in keys if known.get(key) in ALIVE]
        keys_to_try = [*(key for key in alive if key not in equivalent([key])), *keys_to_try]
    print(f"core/{room}: {len(keys)} mutants, {size} asked for, {len(keys_to_try)} to try", flush=True)
    for why, count in Counter(why for why in worded.values() if why).items():
        print(f"    not drawn: {count} mutants, {why}", flush=True)
    return keys_to_try


def drawn(key: str, seed: int) -> str:
    """A mutant's place in a random order: its own, so that code that changes elsewhere leaves the sample as it is."""
    return hashlib.sha256(f"{seed} {key}".encode()).hexdigest()


def keys_of(module: str) -> list[str]:
    """Of all a module's mutants, in its order."""
    return list(kept_keys(module))


def kept_keys(module: str) -> dict[str, str]:
    """Of a module's mutants, which takes seconds to find out and is kept until the module changes; with what words for
    people it changes, if any."""
    from tests.mutants.changes import mutants_of

    digest = hashlib.sha256(module.encode() + Path(module).read_bytes()).hexdigest()[:16]
    kept = RESULTS.parent / "keys" / f"{digest}.words.json"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({mutant.key: mutant.wording for mutant in mutants_of(module)}))
    return json.loads(kept.read_text())


def try_here() -> None:
    """Try the mutants that wanted.json names, in the working directory."""
    import pytest

    from tests.mutants.changes import Mutant, mutants_of
    from tests.mutants.trying import Trying

    keys, reached, tests, marked, minutes, patience, workers = json.loads(Path("wanted.json").read_text())
    asked = set(keys)

    @cache
    def of_module(module: str) -> dict[str, Mutant]:
        known = {place: key for place, key in enumerate(keys_of(module)) if key in asked}
        return {mutant.key: mutant for mutant in mutants_of(module, known)}

    def told(mutant, status: str, test: str) -> None:
        with RESULTS.open("a", encoding="utf-8") as file:
            file.write(json.dumps([mutant.key, status, test]) + "\n")

    trying = Trying(
        keys,
        lambda key: of_module(key.split(" ")[0])[key],
        told,
        modules=reached,
        minutes=minutes,
        patience=patience,
        workers=workers,
        kept=RESULTS.parent / "reached",
    )
    pytest.main([*PYTEST, "-m", marked, *tests], plugins=[trying])


def copied_tree() -> Path:
    """Tracked files as they are now, in a folder of this process."""
    tree = RESULTS.parent / f"tree-{os.getpid()}"
    shutil.rmtree(tree, ignore_errors=True)
    for name in _output("git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (PROJECT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, tree / name)
    return tree


def recorded() -> dict[str, str]:
    """What became of each mutant that was ever tried: its last status, by its key."""
    if not RESULTS.is_file():
        return {}
    return dict(json.loads(line)[:2] for line in RESULTS.read_text(encoding="utf-8").splitlines())


def standing() -> dict[str, str]:
    """What is recorded of mutants that the modules still have."""
    known = recorded()
    modules = sorted({key.split(" ")[0] for key in known})
    words = [kept_keys(module) for module in modules if Path(module).is_file()]
    keys = [key for of_module in words for key, why in of_module.items() if not why]
    return {key: known[key] for key in keys if key in known}


def equivalent(keys: Iterable[str]) -> dict[str, str]:
    """Those of the mutants that compute the same, with the reason."""
    stated = listed()
    reasons = {key: next((why for rule, why in RULES.items() if rule.search(key)), stated.get(key)) for key in keys}
    reasons |= {key: "SQL reads words in any case" for key in reasons if is_sql_in_another_case(key)}
    return {key: why for key, why in reasons.items() if why}


def listed() -> dict[str, str]:
    """The mutants of equivalent.txt, each with its reason."""
    lines = [line.rsplit("  # ", 1) for line in EQUIVALENT.read_text(encoding="utf-8").splitlines()]
    return {line[0]: line[1] for line in lines if len(line) == 2}


def gone() -> list[str]:
    """Those of the listed mutants that their module has no more: it was edited there."""
    present = {key for module in {key.split(" ")[0] for key in listed()} for key in keys_of(module)}
    return [key for key in listed() if key not in present]


def is_sql_in_another_case(key: str) -> bool:
    """Whether only the case of a statement's words differs, and not that of its texts ('pause')."""
    change = re.sub(r" \(\d+\)$", "", key.partition(": - ")[2])
    half = (len(change) - 3) // 2  # both sides are of one length, and may have a plus
    before, after = change[:half], change[half + 3 :]
    texts = [re.findall(r"'[^']*'", side) for side in (before, after)]
    is_sql = re.search(r'"(SELECT|WHERE|DELETE|UPDATE|INSERT|FROM|JOIN|AND|ORDER|GROUP) ', before, re.IGNORECASE)
    return bool(is_sql) and before != after and before.casefold() == after.casefold() and texts[0] == texts[1]


def table(statuses: dict[str, str]) -> str:
    """By room: tried, killed, those that only other rooms' tests killed, equivalent, survivors; the share killed of all
    but equivalent ones."""
    counts: dict[str, Counter] = {}
    excused = equivalent(key for key, status in statuses.items() if status in ALIVE)
    for key, status in statuses.items():
        if status == "unplaced":  # not to be put into a loaded module: not tried
            continue
        count = counts.setdefault("core/" + room_of(key.split(" ")[0]), Counter())
        count["equivalent" if key in excused else "survived" if status in ALIVE else "killed"] += 1
        count.update({"elsewhere": status == "killed elsewhere"})
    lines = [
        "| Room | Tried | Killed | of these elsewhere | Equivalent | Survivors | Killed | 95 % |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for room, count in sorted(counts.items()):
        of = count["killed"] + count["survived"]
        low, high = (float(end) for end in wilson_interval(np.array(count["killed"]), max(1, of)))
        lines.append(
            f"| `{room}` | {of + count['equivalent']:,} | {count['killed']:,} | {count['elsewhere']:,} "
            f"| {count['equivalent']:,} | {count['survived']:,} | {count['killed'] / max(1, of):.1%} "
            f"| {low:.1%} to {high:.1%} |"
        )
    return "\n".join(lines)


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
