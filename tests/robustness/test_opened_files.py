"""Whatever opens a file by its path is known: a path that people name is opened by `core.reading` only.

`core.reading` refuses links that lead out of the folders it was given, pipes and devices, and checks what it opened.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.sources import PROJECT, files_of, tree_of

SOURCES = [*files_of("core", "pages"), PROJECT / "app.py"]
MODULES = {"os", "io", "zipfile", "tarfile", "gzip", "bz2", "lzma", "mmap", "codecs", "wave", "shelve", "sqlite3"}
READERS = {  # functions of libraries that open a path
    "np": {"load", "memmap", "fromfile", "loadtxt", "genfromtxt"},
    "pd": {"read_csv", "read_parquet", "read_json", "read_table", "read_feather", "read_excel", "read_xml"},
    "pq": {"read_table", "ParquetFile", "ParquetDataset", "read_metadata", "read_schema"},
    "pa": {"memory_map", "OSFile", "input_stream"},
    "torch": {"load"}, "spacy": {"load"}, "duckdb": {"connect", "read_parquet", "read_csv", "read_json"},
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move"}, "zipfile": {"ZipFile"}, "mmap": {"mmap"},
    "tomllib": {"load"}, "json": {"load"}, "ElementTree": {"parse", "iterparse"}, "Tokenizer": {"from_file"},
}  # fmt: skip
ANYWHERE = {"load_file", "safe_open", "from_pretrained", "from_disk", "FramenetCorpusReader"}
IN_SQL = ("read_parquet(", "read_csv(", "read_json(", "read_text(", "read_blob(", "ATTACH ", "COPY ")
SAFE = {"open_file", "open_in"}

OURS = "a file of the program or of its record: no part of its path comes from a person, or it is one of a list"
WRITTEN = "a file that the program writes or has just written, in a folder that was checked before"
LIBRARY = (
    "a library opens it by name; every file of the folder was checked before (refuse_what_leads_out, inside_whole)"
)
STORE = "the database, its log, a copy, or a file next to it"
OWNER = "a file that the server's owner names before it starts"
NO_FILE = "opens no file: a method of ours, the null device, or an archive in memory"
KNOWN = {
    **dict.fromkeys(
        [
            ("core/atlas/example.py", "_read"), ("core/atlas/scores.py", "_rows"),
            ("core/atlas/scores.py", "_read"),
            ("core/codebook/registry.py", "border_maps"), ("core/codebook/registry.py", "_stored"),
            ("core/config.py", "code_version"), ("core/drawing/page.py", "controls_style"),
            ("core/drawing/page.py", "style"), ("core/drawing/payload.py", "workbench_style"),
            ("core/drawing/payload.py", "script"), ("core/drawing/theme.py", "theme"),
            ("core/frames/lexicon.py", "bundled_lexicon"), ("core/glossary.py", "_sections"),
            ("core/models/present.py", "bundled_names"), ("core/notebook/showing.py", "script_text"),
            ("core/patterns/classifier_registry.py", "bundled_about"),
            ("core/patterns/classifier_registry.py", "bundled_weights"),
            ("core/patterns/classifier_registry.py", "bundled_classifier"),
            ("core/report/claims/__init__.py", "claims"), ("core/report/published_values.py", "exhibits"),
            ("core/report/published_values.py", "figures"), ("core/report/rendering/html.py", "html_of"),
            ("core/store/migrations/__init__.py", "known"), ("core/store/shipped_record.py", "_examples"),
            ("core/store/shipped_record.py", "_runs"), ("core/store/shipped_record.py", "_hash"),
            ("core/store/shipped_record.py", "_rows"),
            ("core/studies/comparison/development.py", "bundled_curves"),
            ("core/studies/lookup.py", "study_modules"),
            ("core/tasks/perturbations.py", "words"), ("pages/parts/frames/lookup.py", ""),
            ("pages/parts/maps/maps_grid.py", "workbench_component"),
            ("pages/parts/maps/maps_grid.py", "drawing_component"),
            ("pages/parts/shell/middleware.py", "Bundle.__call__"), ("pages/parts/shell/shell.py", ""),
        ],
        OURS,
    ),
    **dict.fromkeys(
        [
            ("core/atlas/example.py", "write"),
            ("core/patterns/snapshot.py", "write"), ("core/probing/ragged.py", "Ragged.open"),
            ("core/probing/ragged.py", "Ragged.create"), ("core/studies/patterns/train_patterns.py", "_told.tell"),
            ("core/models/hub.py", "_fetch_weights"),
            ("core/unit_progress.py", "tokens_under_way"), ("core/writing.py", "replacing"),
            ("pages/parts/label/label_tools.py", "files.exported"),
            ("pages/parts/views/project_setup.py", "label_studio.exported"),
        ],
        WRITTEN,
    ),
    **dict.fromkeys(
        [
            ("core/frames/release.py", "open_release"), ("core/models/adapters.py", "read_weights"),
            ("core/models/classifier.py", "with_head"), ("core/models/hub.py", "_hash_of"),
            ("core/models/opening.py", "_load"), ("core/models/opening.py", "open_checkpoint"),
            ("core/models/pruned.py", "restored"), ("core/studies/comparison/development.py", "_revisions"),
            ("core/models/tokenizing.py", "tokenizer_of"), ("core/studies/tagging.py", "open_pipeline"),
        ],
        LIBRARY,
    ),
    **dict.fromkeys(
        [
            *(("core/store/backup.py", name) for name in (
                "_answer", "ask", "schema_of", "_must_be_whole", "_checked", "_verify", "restore", "back_up",
                "damaged_blocks",
            )),
            *(("core/store/database.py", name) for name in ("_connect", "Database._open", "begin")),
            *(("core/store/recovery.py", name) for name in (
                "copied", "_named_by_content", "LogCopy._unread", "root_block", "read_log",
            )),
            ("core/store/exchange.py", "_key"),
        ],
        STORE,
    ),
    ("core/sign_in.py", "_folder"): OWNER,
    ("core/sign_in.py", "_toml"): OWNER,
    ("core/__main__.py", "main"): NO_FILE,
    ("core/commands/maps.py", "maps"): NO_FILE,
    ("core/commands/output.py", "_reader_may_leave"): NO_FILE,
    ("core/store/database.py", "_end_quietly"): NO_FILE,
    ("pages/parts/widgets/files.py", "zipped"): NO_FILE,
}  # fmt: skip


def opened(tree: ast.AST) -> Iterator[tuple[str, int, str]]:
    """(function, line, call) of everything that opens a file by a path."""
    waiting: list[tuple[ast.AST, str, frozenset[str]]] = [(tree, "", frozenset())]
    while waiting:
        node, function, streams = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
            streams |= _streams(node)
        if isinstance(node, ast.Call) and _opens(node, ast.unparse(node.func)) and not _is_stream(node, streams):
            yield function, node.lineno, ast.unparse(node.func)
        waiting += [(child, function, streams) for child in ast.iter_child_nodes(node)]


def _is_stream(call: ast.Call, streams: frozenset[str]) -> bool:
    """Whether what is read is in memory, or was opened by `core.reading`."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Call):
        return ast.unparse(first.func) in {"io.BytesIO", "pa.BufferReader", *SAFE}
    return isinstance(first, ast.Name) and first.id in streams


def _streams(function: ast.AST) -> frozenset[str]:
    """Names that are bound to what `core.reading` opened, or that a function takes as a stream."""
    found = set()
    for part in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
        if isinstance(part, ast.arg) and part.annotation and "BinaryIO" in ast.unparse(part.annotation):
            found.add(part.arg)
        value = part.context_expr if isinstance(part, ast.withitem) else getattr(part, "value", None)
        names = [part.optional_vars] if isinstance(part, ast.withitem) else getattr(part, "targets", [])
        if isinstance(value, ast.Call) and ast.unparse(value.func) in SAFE:
            found |= {name.id for name in names if isinstance(name, ast.Name)}
    return frozenset(found)


def _opens(call: ast.Call, name: str) -> bool:
    base, _, last = name.rpartition(".")
    if last in ANYWHERE or last in READERS.get(base.rpartition(".")[2], ()):
        return True
    if last == "open":
        return base in {"", *MODULES} or _takes_a_mode(call)
    if last in ("read_text", "read_bytes"):
        return bool(base)
    if last in ("execute", "sql", "read", "executemany"):
        texts = [
            part.value for part in ast.walk(call) if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        return any(word in text for text in texts for word in IN_SQL)
    return False


def _takes_a_mode(call: ast.Call) -> bool:
    """Whether a method called open is that of a path: without arguments, or with a mode or an encoding."""
    modes = [value.value for value in call.args[:1] if isinstance(value, ast.Constant)]
    return not call.args or any(isinstance(mode, str) and set(mode) <= set("rwax+tb") for mode in modes)


@pytest.mark.thorough
def test_every_call_that_opens_a_file_by_its_path_is_known():
    """A new one opens a path that people name with `core.reading` (given=True), or is listed with its reason."""
    found = set()
    for file in SOURCES:
        name = file.relative_to(PROJECT).as_posix()
        if name != "core/reading.py":
            for function, line, call in opened(tree_of(file)):
                assert (name, function) in KNOWN, f"{name}:{line} opens a file with {call}"
                found.add((name, function))
    assert found == set(KNOWN), "calls that are gone are struck from the list"


@pytest.mark.parametrize(
    "call",
    [
        "open(path)", "io.open(path)", "os.open(path, 0)", "path.open()", 'path.open("rb")', "Path(name).read_bytes()",
        "config.inside(file).read_bytes()", "(folder / name).read_text(encoding='utf-8')",
        "np.load(path, allow_pickle=False)", "np.memmap(path)", "pq.read_table(path)", "pq.ParquetFile(str(path))",
        "pd.read_csv(path)", "torch.load(path, weights_only=True)", "load_file(path)",
        "safetensors.torch.load_file(path)",
        "spacy.load(folder)", "zipfile.ZipFile(path)", "Tokenizer.from_file(name)", "shutil.copyfile(path, other)",
        "duckdb.connect(path)", """cursor.execute("SELECT * FROM read_parquet('x')")""", "json.load(stream)",
    ],
)  # fmt: skip
def test_the_reading_finds_what_it_looks_for(call):
    assert [found for *_, found in opened(ast.parse(f"def f(path):\n    return {call}"))]


@pytest.mark.parametrize(
    "code",
    [
        "with open_file(path, given=True) as stream, np.load(stream) as held: pass",
        "stream = open_file(path)\n    np.load(stream)",
        "read_text(path, given=True)",
        "np.load(io.BytesIO(data))",
        "Ragged.open(folder, name)",
    ],
)
def test_what_core_reading_opened_may_be_read(code):
    assert list(opened(ast.parse(f"def f(path):\n    {code}"))) == []
