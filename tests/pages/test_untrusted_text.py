"""Text from people and data is text on every page: no image, link or formatting comes from it."""

import inspect

import pytest
import streamlit as st
from markdown_it import MarkdownIt

from pages.parts.shell.messages import as_code, plain
from tests.pages.markdown_scan import RENDERING, Scan

HOSTILE = (
    "![c](https://evil.example/c.png)",
    "[click](https://evil.example)",
    "<img src=https://evil.example/x>",
    "<https://evil.example>",
    "https://evil.example/x",
    "HTTP://EVIL.EXAMPLE",
    "www.evil.example and Www.evil.example",
    "ada@evil.example",
    "a\n\n![c](https://evil.example/c.png)",
    "a\r\r# title",
    "a\u2028![c](//evil.example)",
    ":red[x] :material/delete: :smile:",
    "$x$ and ~~y~~ and `z`",
    "| a |\n|---|\n| b |",
    "[a]: https://evil.example\n[a]",
    "&lt;img&gt; &#33;[x](//evil)",
    "\\![c](https://evil.example/c.png)",
    "ftp://evil.example",
    "1. list",
    "    code",
    "> quote",
    "- list",
)
TEXT_ONLY = {"inline", "paragraph_open", "paragraph_close", "text", "text_special", "softbreak", "code_inline"}

# What the scan cannot follow and people have read, by file: our own words, numbers, and arguments that are no text.
OURS = {
    "atlas/analysing.py": {"job_progress.duration(max(plan.seconds(chosen), 1))"},
    "atlas/head_hypotheses.py": {"parameter.name"},
    "atlas/measuring.py": {"_time_of(checkpoint, unmeasured)", "gives(measurement.study)"},
    "disable/task_studies.py": {"contrast.links"},
    "disable/training.py": {"change.seeds"},
    "frames/lookup.py": {"reading.places"},
    "frames/sets.py": {"summary.kept", "summary.links"},
    "label/label_tools.py": {"report.new"},
    "label/map_pictures.py": {"border_map.value"},
    "label/retraining.py": {"st.session_state"},
    "reports/attending.py": {"limit.help"},
    "reports/result_card.py": {"kind"},
    "reports/study_view.py": {"job_progress.time_said(estimate)"},
    "shell/links.py": {"table.view(view).title", "{view.name: view.title for view in views}.__getitem__"},
    "shell/messages.py": {"type(error).__name__"},
    "shell/people.py": {"who.role"},
    "tuning/forms.py": {"count.label", "count.told", "label"},
    "views/ablation.py": {"effects.place"},
    "views/change.py": {"STATISTICS[name].title"},
    "views/circuit.py": {"SAID['margin'].help"},
    "views/classifier.py": {"score.inputs"},
    "views/counterparts.py": {"view_context.checkpoint"},
    "views/development.py": {"_curves(name)"},
    "views/findings.py": {"label"},
    "views/frame_relations.py": {"label"},
    "views/gates_pairs.py": {"heads[0].orders", "press"},
    "views/jobs.py": {"command_line('jobs', 'list')", "icon"},
    "views/one_head.py": {"name"},
    "views/page.py": {"page.title"},
    "views/patching.py": {
        "SHOWN.__getitem__",
        "label",
    },
    "views/pattern_shares.py": {"codebook.counted", "cropped"},
    "views/project_setup.py": {"erasure.erase_name", "label", "new"},
    "views/relations.py": {"attending.shared_heads(checkpoint_scores)"},
    "views/reproduction.py": {
        "exhibit.title",
        "now.at",
        "time_of(db, plan.steps)",
    },
    "views/seed_variance.py": {"spread.constant", "spread.dev_rows"},
    "views/sequential_test.py": {"SAID['heads'].help", "SAID['margin'].help"},
    "views/start.py": {"description"},
    "views/training.py": {"live.steps"},
    "views/workbench.py": {
        "PARTS.__getitem__",
        "chosen",
        "label",
        "{'pieces': 'tokens', 'words': 'words'}.get",
    },
    "widgets/context_bar.py": {"view.title"},
    "widgets/files.py": {"label"},
    "widgets/job_progress.py": {
        "icon",
        "time_said(duration_estimate.estimate_duration(resources.database(), study, options))",
    },
}
CHOSEN = ("url.pick(", "url.pick_many(", "st.slider(", "st.select_slider(")  # one of the options that the page offers


@pytest.mark.thorough
def test_every_text_that_reaches_markdown_is_ours_a_number_or_escaped():
    strange, used = [], {file: set() for file in OURS}
    for found in Scan().unsafe():
        place, reason = found.split(": ", 1)
        file = place.split(":")[0].removeprefix("pages/parts/")
        if reason in OURS.get(file, ()):
            used[file].add(reason)
        elif not reason.startswith(CHOSEN):
            strange.append(found)
    assert strange == [], "\n".join(["escape with plain, or as_code:", *strange])
    assert used == OURS, "an entry that nothing needs would let a later text pass"


def test_the_scan_finds_what_is_not_escaped(tmp_path):
    (tmp_path / "core").mkdir()
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "view.py").write_text(
        "import streamlit as st\n"
        "def label(record): return f'of {record.owner}'\n"
        "def shown(text): st.caption(f'**{text}**')\n"
        "def show(record, names):\n"
        "    st.markdown(f'{plain(record.title)} {record.title}')\n"
        "    shown(record.note)\n"
        "    st.button('ok', help=label(record))\n"
        "    st.radio('one', names, format_func=lambda one: plain(one))\n"
        "    st.radio('one', [n.title for n in names])\n"
        "    st.metric('share', f'{record.share:.2f}', record.unit)\n"
        "    st.caption(f'{len(names)} names')\n"
    )
    found = {reason.split(": ", 1)[1] for reason in Scan(tmp_path).unsafe()}
    assert found == {"record.title", "record.note", "label(record)", "n.title", "record.unit"}


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_text_is_text_to_a_markdown_reader(text):
    reader = MarkdownIt("gfm-like", {"linkify": True})
    for shown in (f"a {plain(text)} b", f"**{plain(text)}**", as_code(text)):
        tokens = [inner for token in reader.parse(shown) for inner in [token, *(token.children or [])]]
        kinds = {token.type for token in tokens} - {"strong_open", "strong_close", "s_open", "s_close"}
        assert kinds <= TEXT_ONLY, kinds
    assert "\n" not in plain(text)
    assert ":red[" not in plain(text)


@pytest.mark.parametrize("text", ["L2H1", "atlas-encoder", "a/b:c", "SST-2", "naïve – “x”", "a.b_c", "10 %", "C:\\x"])
def test_escaping_changes_nothing_that_is_read(text):
    rendered = MarkdownIt("gfm-like").render(plain(text))
    assert rendered.replace("&quot;", '"').strip() == f"<p>{text}</p>"


@pytest.mark.thorough
def test_streamlit_has_no_further_function_that_renders_markdown():
    """A function of Streamlit with a label, body or help that the scan does not know."""
    known = set(RENDERING) | {
        "text", "code", "json", "latex", "html", "dataframe", "data_editor", "table", "chat_input", "audio_input",
        "camera_input", "color_picker", "datetime_input", "time_input", "feedback", "menu_button", "chat_message",
        "echo", "exception", "help", "Page", "balloons", "snow", "logo", "video", "audio", "pdf", "iframe", "divider",
        "space",
    }  # fmt: skip
    used = {name for scan in [Scan()] for function in scan.functions for name in _streamlit_calls(function)}
    unknown = {name for name in used - known if {"label", "body", "help"} & _parameters(name)}
    assert unknown == set()


def _streamlit_calls(function):
    for call in function.calls:
        owner = getattr(call.func, "value", None)
        if getattr(owner, "id", "") == "st" and hasattr(st, call.func.attr):
            yield call.func.attr


def _parameters(name):
    try:
        return set(inspect.signature(getattr(st, name)).parameters)
    except (TypeError, ValueError):
        return set()
