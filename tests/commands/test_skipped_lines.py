"""What a file of sentences holds that cannot be used is said beside the table, and the example of docs runs."""

import re

import pytest

from core import config
from core.commands.study_commands import Ran
from core.errors import CheckpointError, InputError
from core.frames.rows import parse_sentences
from core.jobs import worker
from core.studies.contract import as_json
from core.studies.frames.frame_heads import STUDY
from core.tasks.own import read_own
from tests.studies.through_json import rows_of

GUIDE = config.PROJECT / "docs" / "how-to" / "own-sentences.md"
EXAMPLE = re.search(r"```json\n(.*?)```", GUIDE.read_text(), re.DOTALL).group(1)


def test_the_example_of_the_docs_has_no_line_that_is_skipped():
    reading = parse_sentences(EXAMPLE)
    assert len(reading.sentences) == 2
    assert reading.skipped == ()
    assert [one.text[slice(*one.target[0])] for one in reading.sentences] == ["angry", "arrived"]


def test_skipped_lines_stand_beside_the_table(tmp_path, capsys):
    file = tmp_path / "mine.jsonl"
    file.write_text(EXAMPLE + '{"text": 7}\nno json\n')
    options = STUDY.read({"sentences": str(file), "filter": False, "draws": 19})
    rows = rows_of("frame-heads", as_json(options))
    assert [one["where"] for one in rows[0]["skipped_lines"]] == ["row 3", "row 4"]
    Ran("frame-heads", options, None, None, {}, rows, "table").show()
    said = capsys.readouterr()
    assert "The study read 2 sentences, of which 2 pass the filter, and skipped 2 lines." in said.out
    assert "The study skipped row 3: A row of annotations must be a JSON object" in said.err
    assert "The study skipped row 4: A row of annotations must be one JSON object" in said.err


def test_a_missing_table_is_said_to_be_missing(tmp_path):
    with pytest.raises(InputError, match=r"is missing. Check its name"):
        read_own(str(tmp_path / "mail.csv"))


@pytest.mark.parametrize("study", ["statistics", "disable", "features"])
def test_a_checkpoint_that_is_not_there_is_said_before_there_are_units(tmp_path, study):
    task = {"task": "sst2"} if study == "disable" else {"tasks": ["sst2"]}
    with pytest.raises(CheckpointError, match="must be a folder, a hub ID or a bundled name"):
        worker.divide(study, {"checkpoint": str(tmp_path / "none" / "here" / "x")} | task)
