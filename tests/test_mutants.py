"""Mutants are their module with one change, under a name that stays; what is excused says why."""

import ast
import os
import subprocess
import sys

import pytest

from core import config
from tests.mutants.__main__ import EQUIVALENT, equivalent, is_sql_in_another_case, table

MODULE = "core/scoring/corrections.py"


@pytest.mark.thorough
def test_a_mutant_is_the_module_with_one_function_changed(monkeypatch):
    from tests.mutants.changes import mutants_of  # libcst, 0.4 CPU seconds in every worker that collects this

    monkeypatch.chdir(config.PROJECT)
    text, mutants = (config.PROJECT / MODULE).read_text(), mutants_of(MODULE)
    assert len(mutants) > 10
    assert len({mutant.key for mutant in mutants}) == len(mutants)
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert {mutant.function for mutant in mutants} == {function.name for function in functions} >= {"holm_adjusted"}
    for mutant in mutants:
        assert mutant.text != text
        compile(mutant.text, MODULE, "exec")
        assert mutant.function_lines[0] <= mutant.lines[0] <= mutant.function_lines[1]


@pytest.mark.thorough
def test_a_function_becomes_its_mutant_in_a_process_of_its_own():
    code = (
        "import numpy as np\n"
        "from tests.mutants.changes import mutants_of, turn_into\n"
        "from core.scoring.corrections import q_values\n"
        f"mutant = next(m for m in mutants_of({MODULE!r}) if '+ q = None' in m.key or 'np.nan), np.isnan' in m.key)\n"
        "before = q_values(np.array([[0.01, 0.02]])).tolist()\n"
        "turn_into(mutant)\n"
        "try:\n    print(before, q_values(np.array([[0.01, 0.02]])).tolist() != before)\n"
        "except Exception:\n    print(before, True)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], cwd=config.PROJECT, capture_output=True, text=True, check=False)
    assert said.stdout.split() == ["[[0.02,", "0.02]]", "True"], said.stderr


def test_statements_say_that_they_run(tmp_path, monkeypatch):
    from tests.mutants.reaching import Statements  # libcst, as above

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "speaking.py").write_text(
        "from functools import cache\n"
        "@cache\n"
        "def kept(value):\n"
        '    """Of a function whose results are kept."""\n'
        "    if value:\n"
        "        return [1,\n"
        "                2]\n"
        "    return None\n"
        "class Row:\n"
        "    @property\n"
        "    def size(self):\n"
        "        try:\n"
        "            return 1 / 0\n"
        "        except ZeroDivisionError:\n"
        "            return 0\n"
    )
    statements = Statements(["speaking.py"])
    statements.place()
    speaking = sys.modules.pop("speaking")
    for called, lines in (
        (lambda: speaking.kept(1), {5, 6, 7}),
        (lambda: speaking.kept(0), {5, 8}),
        (lambda: speaking.Row().size, {12, 13, 15}),
    ):
        called()
        assert {line for module, line in statements.taken() if module == "speaking.py"} == lines
    assert not statements.taken()
    assert not hasattr(speaking.Row, "__code__")


def test_every_excused_mutant_has_a_reason_and_counts_apart():
    lines = EQUIVALENT.read_text().splitlines()[1:]
    assert all(line.startswith("core/") and len(line.rsplit("  # ", 1)) == 2 for line in lines)
    excused = lines[0].rsplit("  # ", 1)[0]
    assert set(equivalent([excused, "core/scoring/x.py f: - a + b"])) == {excused}
    mutants = {"core/scoring/x.py f: - a + b": "survived", "core/scoring/x.py f: - c": "killed elsewhere"}
    row = table({excused: "survived"} | mutants)
    assert row.splitlines()[-1].split("|")[2:7] == [" 3 ", " 1 ", " 1 ", " 1 ", " 1 "]
    assert row.splitlines()[-1].split("|")[7:9] == [" 50.0% ", " 9.5% to 90.5% "]
    assert "core/scoring" not in table({"core/scoring/x.py f: - a + b": "unplaced"})


def test_words_for_people_are_told_from_words_that_programs_read(monkeypatch, tmp_path):
    from tests.mutants.changes import ERROR, LOG, PROSE, mutants_of

    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib").mkdir()  # mutmut looks for one
    (tmp_path / "words.py").write_text(
        "def said(db, log, key, size):\n"
        "    if size > 3:\n"
        '        raise ValueError(f"Choose {size - 1} heads at most.")\n'
        '    log.warning("done", size)\n'
        '    db.execute("SELECT a FROM b WHERE c = d")\n'
        '    return {"key": "a sentence for people"}\n'
    )
    mutants = mutants_of("words.py")
    excused = {mutant.wording: [m for m in mutants if m.wording == mutant.wording] for mutant in mutants}
    assert set(excused) == {"", ERROR, LOG, PROSE}
    assert all("ValueError(None)" in mutant.change for mutant in excused[ERROR])
    assert all("log.warning" in mutant.change for mutant in excused[LOG])
    assert all("people" in mutant.change.casefold() for mutant in excused[PROSE])
    for counted in ("+ if size >= 3", "size + 1", "execute(None)", "XXSELECT", '+ return {"XXkeyXX"'):
        assert any(counted in mutant.change for mutant in excused[""]), counted


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_room_is_tried_with_its_own_tests_first(elsewhere):
    from tests.mutants.changes import Mutant
    from tests.mutants.trying import Reached

    mutant = Mutant("core/scoring/x.py", "f", "- a + b", (3, 3), (2, 9), "")
    reached = Reached(seconds={0: 1.0, 1: 9.0, 2: 0.5, 3: 0.1}, beside={0: [0, 3], 1: [1], 2: [2]})
    reached.by_line[mutant.module][3] = [0, 1, 2] if elsewhere else [0, 1]
    order = reached.tests(mutant, 5.0, lambda test: test != 2)
    assert order == ([0, 3, 2] if elsewhere else [0, 3])  # 1 takes longer than 5 seconds


def test_only_the_words_of_a_statement_may_be_in_another_case():
    words = 'core/store/x.py f: - "SELECT a FROM b WHERE c = \'d\'" + "{}"'
    assert is_sql_in_another_case(words.format("select a from b where c = 'd'"))
    assert is_sql_in_another_case('core/store/x.py f: - "SELECT a + 1 FROM b" + "select a + 1 from b" (2)')
    assert not is_sql_in_another_case(words.format("SELECT A FROM B WHERE C = 'D'"))
    assert not is_sql_in_another_case('core/store/x.py f: - "error" + "ERROR"')


@pytest.mark.thorough
@pytest.mark.parametrize("off", [False, True])
def test_mutants_are_tried_without_checks_of_shapes(off):
    code = "import jaxtyping; before = jaxtyping.jaxtyped; import tests.conftest; assert jaxtyping.jaxtyped is before"
    environment = os.environ | ({"SHAPE_CHECKS": "off"} if off else {})
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert (ended.returncode == 0) is off, ended.stderr
