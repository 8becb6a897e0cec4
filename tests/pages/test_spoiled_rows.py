"""Pages that meet spoiled rows name them, show the other rows, and meet no defect."""

import pytest

from core.store import projects
from core.studies.lookup import find_study
from pages.parts.shell.page_table import RESULTS
from tests.pages.opening import VIEWS, opened
from tests.pages.spoiled import whole_runs, with_bad_rows, without_a_kind
from tests.spread import one_in
from tests.store.spoiling import fill, spoil

KINDS = [(study, kind) for study in sorted(whole_runs()) for kind in find_study(study).kinds]


def said(app):
    """Faults that a page says, and what it leaves out."""
    faults = [one.value for one in app.error] + [one.value for one in app.exception]
    return faults, [one.value for one in app.warning if one.value.startswith("Left out")]


@pytest.mark.thorough
@pytest.mark.parametrize("study", one_in(12, sorted(whole_runs())))
def test_a_view_shows_a_result_without_its_bad_rows(study, db):
    with_bad_rows(db, study)
    app = opened(RESULTS[study].view)
    faults, left_out = said(app)
    assert faults == []
    assert len(left_out) <= 1
    assert sum(1 for _ in app.main) > 3  # blocks within blocks


@pytest.mark.slow  # 5 s each
@pytest.mark.parametrize(("study", "kind"), KINDS, ids=lambda value: getattr(value, "__name__", value))
def test_a_view_whose_result_lacks_all_rows_of_a_kind_meets_no_defect(study, kind, db):
    without_a_kind(db, study, kind)
    assert said(opened(RESULTS[study].view))[0] == []


@pytest.mark.slow  # 4 s a view
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_opens_beside_results_with_bad_rows(view, db):
    for study in whole_runs():
        with_bad_rows(db, study)
    assert said(opened(view))[0] == []


OF_VIEWS = [
    ("projects/setup", "project", "rules", '{"k": "2"}'),
    ("projects/progress", "project", "rules", '{"k": 1000000000}'),
    ("annotate/classifier", "classifier", "scores", '{"macro_f1": "high", "confusions": 5}'),
    ("results/pinned", "finding", "numbers", '[{"name": 5}]'),
    ("results/jobs", "job", "options", '["text"]'),
    ("linguistics/frames", "frame_release", "skipped", '[{"where": {}}]'),
    ("results/all", "run", "options", "[1]"),
    ("heads/one", "hypothesis", "parameters", "[5]"),
]


@pytest.mark.thorough
@pytest.mark.parametrize("case", one_in(2, OF_VIEWS), ids=lambda case: "-".join(case)[:60])
def test_a_view_names_a_row_whose_json_is_spoiled(case, db):
    view, table, column, text = case
    fill(db)
    spoil(db, table, column, text)
    faults, left_out = said(opened(view))
    assert all("cannot be read" in fault for fault in faults)
    assert len(faults) + len(left_out) <= 1


def test_the_other_projects_are_listed(db):
    fill(db)
    maps = [projects.ProjectMap("m1", "label")]
    projects.add_project(db, projects.Heading("Another project", "bert"), recipe={}, rules={"k": 1}, maps=maps)
    with db.write() as cursor:
        cursor.execute("UPDATE project SET rules = '[]' WHERE title = 'A sound project'")
    app = opened("projects/setup")
    faults, left_out = said(app)
    assert faults == []
    assert len(left_out) == 1
    assert "A sound project" in left_out[0]
    assert "Another project" in str([frame.value for frame in app.dataframe] + [one.value for one in app.markdown])
