"""What the sources must never do, read from the sources: run data as code, build SQL from values, open doors."""

import ast
import tomllib
from collections.abc import Collection, Iterable, Iterator

import pytest

from tests.sources import PROJECT, files_of, nodes_of

SOURCES = [*files_of("core", "pages"), PROJECT / "app.py"]
FORBIDDEN_IMPORTS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml"}
FORBIDDEN_IMPORTS |= {"xml", "lxml", "subprocess", "telnetlib", "ftplib", "ctypes"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "tempfile.mktemp"}
EXCUSED = {  # file, what it does, and why that is no way in
    ("core/jobs/remote.py", "imports cloudpickle"): "sends our own code to the workers of a cluster; reads nothing",
    (
        "core/drawing/conversion.py",
        "imports subprocess",
    ): "draws charts in a process of our own that ends after a time, the chart on standard input, no shell",
    (
        "core/commands/app.py",
        "imports subprocess",
    ): "starts this Python with Streamlit where no exec is; port and file as arguments, no shell",
    ("core/store/backup.py", "imports subprocess"): "copies the open file by a fixed program, paths as "
    "arguments, no shell: copied here, the lock on the file would be let go of",
    ("pages/parts/shell/shell.py", "shows HTML as it is"): "our own style sheet, read from beside it",
    ("pages/parts/label/map_pictures.py", "shows HTML as it is"): "pictures of maps; their captions are escaped "
    "(tests/pages/test_label_pages.py::test_captions_of_pictures_stay_text)",
}
NAMES_IN_SQL = {  # what an f-string of SQL may hold: names and marks written in the code, never values
    *(
        "_ABOUT",
        "_COLUMNS",
        "_FACTS",
        "_RUN",
        "_NEWEST",
        "marks",
        "columns",
        "column",
        "table",
        "name",
        "EVENT.names",
        "_HISTORY",
        "SAME",
        "ANSWERS",
        "FROZEN",
        "newest",
        "these",  # what `among` makes of a column and as many marks as there are values
        "theirs",
    ),
}


def calls(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    return (node for node in nodes if isinstance(node, ast.Call))


def keyword(call: ast.Call, name: str) -> object:
    found = next((one.value for one in call.keywords if one.arg == name), None)
    return found.value if isinstance(found, ast.Constant) else found


def problems(nodes: Collection[ast.AST]) -> list[str]:
    """What is forbidden in a source, by line."""
    found = []
    for node in nodes:
        names = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        found += [f"{node.lineno}: imports {one}" for one in names if one.split(".")[0] in FORBIDDEN_IMPORTS]
    for call in calls(nodes):
        name = ast.unparse(call.func)
        if name in FORBIDDEN_CALLS:
            found.append(f"{call.lineno}: calls {name}")
        if name == "torch.load" and keyword(call, "weights_only") is not True:
            found.append(f"{call.lineno}: torch.load without weights_only")
        if name in {"np.load", "numpy.load"} and keyword(call, "allow_pickle") not in {None, False}:
            found.append(f"{call.lineno}: numpy.load with pickles")
        if keyword(call, "trust_remote_code") not in {None, False}:
            found.append(f"{call.lineno}: trusts remote code")
        if keyword(call, "unsafe_allow_html") not in {None, False}:
            found.append(f"{call.lineno}: shows HTML as it is")
        if keyword(call, "unsafe_allow_javascript") not in {None, False} or name == "st.html":
            found.append(f"{call.lineno}: shows HTML as it is")
        if name.endswith((".execute", ".sql", "db.read", ".executemany")) and call.args:
            found += sql_problems(call.args[0])
    return found


def sql_problems(text: ast.expr) -> list[str]:
    """An f-string of SQL that holds more than our own names; text put together in other ways."""
    if isinstance(text, ast.BinOp) or (isinstance(text, ast.Call) and ast.unparse(text.func).endswith(".format")):
        return [f"{text.lineno}: SQL put together from parts"]
    held = [one.value for one in ast.walk(text) if isinstance(one, ast.FormattedValue)]
    foreign = [
        one
        for one in held
        if not _is_quoted(one) and not {n.id for n in ast.walk(one) if isinstance(n, ast.Name)} <= allowed()
    ]
    return [f"{text.lineno}: SQL holds {ast.unparse(one)}" for one in foreign]


def _is_quoted(part: ast.expr) -> bool:
    """Whether `part` is a name that is quoted, or marks for values, by the functions that tests/store tries."""
    return isinstance(part, ast.Call) and ast.unparse(part.func) in {"quoted", "marks", "among"}


def allowed() -> set[str]:
    return {name.split(".")[0] for name in NAMES_IN_SQL}


@pytest.mark.thorough
def test_nothing_runs_data_or_builds_sql_from_values():
    found = [(str(file.relative_to(PROJECT)), problem) for file in SOURCES for problem in problems(nodes_of(file))]
    assert [(file, problem) for file, problem in found if (file, problem.split(": ", 1)[1]) not in EXCUSED] == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from xml.etree import ElementTree",
        "torch.load(file)",
        "torch.load(file, weights_only=False)",
        "np.load(file, allow_pickle=True)",
        "AutoModel.from_pretrained(x, trust_remote_code=True)",
        "st.markdown(x, unsafe_allow_html=True)",
        "eval(text)",
        "cursor.execute(f'SELECT {user}')",
        "cursor.execute('SELECT ' + user)",
        "cursor.execute('SELECT %s' % user)",
        "db.read('SELECT {}'.format(user))",
    ],
)
def test_the_reading_finds_what_it_looks_for(source):
    assert problems(list(ast.walk(ast.parse(source))))


def test_only_the_store_speaks_sql():
    for file in SOURCES:
        if "store" not in file.parts:
            for call in calls(nodes_of(file)):
                assert not ast.unparse(call.func).endswith((".cursor", ".execute")), f"{file}:{call.lineno}"


def test_the_server_listens_here_checks_forgery_and_bounds_uploads():
    server = tomllib.loads((PROJECT / ".streamlit" / "config.toml").read_text())["server"]
    assert server["address"] == "127.0.0.1"
    assert server["enableXsrfProtection"] is True
    assert server["enableCORS"] is True
    assert server["maxUploadSize"] <= 200  # MB


def test_pages_take_the_database_only_from_the_one_place_that_knows_who_asks():
    for file in files_of("pages"):
        if file.name != "resources.py":
            for call in calls(nodes_of(file)):
                assert ast.unparse(call.func) != "Database", f"{file}:{call.lineno}"
            for node in nodes_of(file):  # `people.shared()` says whether others use the app
                if isinstance(node, ast.Attribute) and node.attr == "shared":
                    assert ast.unparse(node.value) in ("people", "pages.parts.shell.people"), f"{file}:{node.lineno}"


def test_browser_sources_make_no_html_of_data():
    for file in sorted([*(PROJECT / "pages").rglob("*.js"), *(PROJECT / "core" / "drawing").glob("*.js")]):
        text = file.read_text()
        for risky in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert risky not in text, f"{file.name} uses {risky}"
