"""The report as files: one self-contained HTML page with its charts, and the rows as Parquet.

The page holds its own copy of Vega (from vl-convert, which is pinned for the charts' files) and asks the network for
nothing. Every text that comes from options, data or checkpoints is escaped.
"""

import json
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from core import config
from core.errors import StoreError
from core.report.claims.outcomes import FAILS, HOLDS, UNDECIDED, UNTESTED
from core.report.exhibits import EXHIBITS, Exhibit, claim
from core.report.plan import DEFAULTS
from core.report.rendering.charts import chart_of, task_name
from core.report.rendering.markdown import markdown, pictures
from core.studies.study import Options, Row

KINDS = {"value": "values", "claim": "claims", "head": "heads", "step": "steps"}  # kind of row: name of its file
OUTCOMES = (HOLDS, FAILS, UNDECIDED, UNTESTED)
FLAGS = {"checkpoints": "", "tasks": "--task", "parts": "--part"}


def write_report(folder: Path, known: Row, rows: Sequence[Row], *, figures: bool = False) -> Path:
    """Write report.html, report.md and a Parquet file for each kind of row; returns the page's path.

    known: the report's run, with options and created. figures: the pictures as SVG, too.
    Errors: StoreError when the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for kind, content in parquet_files(rows).items():
            (folder / kind).write_bytes(content)
        page = folder / "report.html"
        page.write_text(html_of(known, rows), encoding="utf-8")
        (folder / "report.md").write_text(markdown(known, rows, command_of(known["options"])), encoding="utf-8")
        for name, picture in pictures(rows).items() if figures else ():
            (folder / "figures").mkdir(exist_ok=True)
            (folder / "figures" / f"{name}.svg").write_text(picture, encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"The report needs a folder that can be written, but {folder} cannot ({error.strerror})."
        ) from error
    return page


def parquet_files(rows: Sequence[Row]) -> dict[str, bytes]:
    """Content by file name: values.parquet, claims.parquet, heads.parquet, steps.parquet."""
    found = {}
    for kind, name in KINDS.items():
        some = [{key: _flat(value) for key, value in row.items()} for row in rows if row["kind"] == kind]
        stream = BytesIO()
        pd.DataFrame(some).to_parquet(stream, index=False)
        found[f"{name}.parquet"] = stream.getvalue()
    return found


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value


def command_of(options: Options) -> str:
    """The command that makes this report."""
    parts = ["python -m core reproduce", *map(shlex.quote, options["checkpoints"])]
    for name, value in options.items():
        if name == "checkpoints" or name not in DEFAULTS or value == DEFAULTS[name]:
            continue
        if value is True:
            parts.append(f"--{name}")
            continue
        several = value if isinstance(value, list) else [0 if value is None else value]
        flag = FLAGS.get(name, f"--{name.replace('_', '-')}")
        parts += [f"{flag} {shlex.quote(str(one))}" for one in several]
    return " ".join(parts)


def html_of(known: Row, rows: Sequence[Row]) -> str:
    """The whole page."""
    shown = [item for item in EXHIBITS if any(row.get("exhibit") == item.id for row in rows)]
    specs: dict[str, Any] = {}
    body = [_head(known, rows), _claims(rows)]
    body += [_exhibit(item, [row for row in rows if row.get("exhibit") == item.id], specs) for item in shown]
    body.append(_steps([row for row in rows if row["kind"] == "step"]))
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(str(known['title']))}</title><style>{_style()}</style></head><body><main>"
        + "\n".join(body)
        + f"</main>{_scripts(specs)}</body></html>\n"
    )


# ---------------------------------------------------------------- parts of the page


def _head(known: Row, rows: Sequence[Row]) -> str:
    values = [row for row in rows if row["kind"] == "value"]
    words = Counter(row["verdict"] for row in values if row["verdict"])
    options = known["options"]
    counted = ", ".join(f"{count} {word}" for word, count in words.items()) or "none"
    seconds = sum(row.get("seconds") or 0 for row in rows if row["kind"] == "step")
    names = ", ".join(Path(name).name for name in options["checkpoints"])
    return (
        f"<header><h1>The papers, reproduced side by side</h1><p class='lead'>{escape(names)} on "
        f"{escape(str(options['data'] or 'the bundled samples'))} · {known['created']:%d %B %Y} · "
        f"{seconds / 60:.0f} minutes of computing</p>"
        f"<p>Published numbers beside ours: {escape(counted)}. A number agrees when its reading error reaches into our "
        "95 % interval. It can be compared only with the checkpoint and rows it was printed for; what the sources "
        "say in words is tested on every checkpoint.</p>"
        f"<pre>{escape(command_of(options))}</pre></header>"
    )


def _claims(rows: Sequence[Row]) -> str:
    found = [row for row in rows if row["kind"] == "claim"]
    checkpoints = list(dict.fromkeys(row["checkpoint"] for row in found))
    head = "".join(f"<th>{escape(Path(name).name)}</th>" for name in checkpoints)
    lines = []
    for id in dict.fromkeys(row["claim"] for row in found):
        mine = [row for row in found if row["claim"] == id]
        first = mine[0]
        error = f"<div class='error'>Known error: {escape(first['known_error'])}</div>" if first["known_error"] else ""
        cells = "".join(
            f"<td>{_outcomes([row for row in mine if row['checkpoint'] == name])}</td>" for name in checkpoints
        )
        lines.append(
            f"<tr id='claim-{escape(id)}'><td><a href='#{escape(first['exhibit'])}'>{escape(first['sentence'])}</a>"
            f"<div class='source'>{escape(first['source'])} {escape(first['section'])}</div>{error}</td>{cells}</tr>"
        )
    return (
        "<section id='claims'><h2>What the sources say, and whether it holds here</h2><div class='wide'><table>"
        f"<thead><tr><th>Claim</th>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
        "<p class='note'>Undecided: the numbers point one way, but their intervals do not exclude the other. Open an "
        "outcome to read its numbers.</p></section>"
    )


def _outcomes(rows: Sequence[Row]) -> str:
    if not rows:
        return "<span class='source'>not about it</span>"
    parts = []
    for row in rows:
        where = f"{escape(task_name(row['task']))}: " if row["task"] else ""
        n = f", n = {row['n']:,}" if row["n"] else ""
        kind = OUTCOMES.index(row["outcome"])
        parts.append(
            f"<details><summary>{where}<b class='o{kind}'>{escape(row['outcome'])}</b></summary>"
            f"{escape(row['said'])}{n}</details>"
        )
    return "".join(parts)


def _exhibit(item: Exhibit, rows: list[Row], specs: dict[str, Any]) -> str:
    chart = chart_of(item, rows)
    if chart is not None:
        specs[item.id] = chart.to_dict()
    picture = f"<div class='chart wide' id='chart-{item.id}'></div>" if chart is not None else ""
    values = [row for row in rows if row["kind"] == "value"]
    measured, printed = ([row for row in values if (row["value"] is not None) is there] for there in (True, False))
    tested = dict.fromkeys(row["claim"] for row in rows if row["kind"] == "claim")
    links = " · ".join(
        f"<a href='#claim-{escape(id)}'>{escape(known.sentence)}</a>" for id in tested if (known := claim(id))
    )
    errors = "".join(f"<li>{escape(error)}</li>" for error in item.errors)
    return (
        f"<section id='{item.id}'><h2>{escape(item.title)}</h2>"
        f"<p class='source'>{escape(item.source)}, {escape(item.section)}</p>"
        f"<p>Ours: {escape(item.measured)}.</p>{picture}"
        + (f"<p>Claims: {links}</p>" if links else "")
        + _folded(f"{len(measured)} measured numbers", measured, is_open=len(measured) <= 24)
        + _folded(f"{len(printed)} printed numbers without ours", printed)
        + (f"<h3>Known errors of the sources</h3><ul>{errors}</ul>" if errors else "")
        + "</section>"
    )


def _folded(title: str, rows: Sequence[Row], *, is_open: bool = False) -> str:
    if not rows:
        return ""
    body = "".join(_value(row) for row in rows)
    names = ("checkpoint", "task", "what", "published", "ours, 95 % interval", "n", "verdict")
    head = "".join(f"<th>{name}</th>" for name in names)
    return (
        f"<details{' open' if is_open else ''}><summary>{title}</summary><div class='wide'><table><thead><tr>"
        f"{head}</tr></thead><tbody>{body}</tbody></table></div></details>"
    )


def _value(row: Row) -> str:
    published = (
        "" if row["published"] is None else f"{row['published']:.4g}<div class='source'>{escape(row['source'])}</div>"
    )
    ours, n = "", ""
    if row["value"] is not None:
        ends = "" if row["low"] is None else f" ({row['low']:.3g} to {row['high']:.3g})"
        ours = f"{row['value']:.4g}{ends}<div class='source'>{escape(row['note'] or '')}</div>"
        n = f"{row['n']:,} {escape(row['of'])}"
    what = escape(row["item"]) + (f", {escape(row['condition'])}" if row["condition"] else "")
    verdict = f"<b>{escape(row['verdict'])}</b>: {escape(row['why'])}" if row["verdict"] else "nothing printed"
    cells = [escape(Path(row["checkpoint"]).name), escape(task_name(row["task"])), what, published, ours, n, verdict]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _steps(rows: Iterable[Row]) -> str:
    lines = []
    for row in rows:
        seconds = "" if row.get("seconds") is None else f"{row['seconds']:.1f}"
        cells: tuple[object, ...] = (
            row["study"],
            Path(row["checkpoint"]).name,
            task_name(row["task"]),
            seconds,
            (row["run"] or "")[:12],
        )
        cells += (str(row.get("code_version") or ""), row["error"] or "")
        lines.append("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>")
    names = ("study", "checkpoint", "task", "seconds", "run", "code", "why not")
    head = "".join(f"<th>{name}</th>" for name in names)
    return (
        f"<section id='steps'><h2>What was run</h2><details><summary>{len(lines)} steps</summary><div "
        f"class='wide'><table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div></details></section>"
    )


# ---------------------------------------------------------------- style and script


def _theme() -> dict[str, Any]:
    return tomllib.loads((config.PROJECT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]


def _style() -> str:
    theme = _theme()
    names = {"paper": "backgroundColor", "shade": "secondaryBackgroundColor", "ink": "textColor", "link": "linkColor",
             "line": "borderColor"}  # fmt: skip
    light, dark = (";".join(f"--{k}:{theme[mode][v]}" for k, v in names.items()) for mode in ("light", "dark"))
    return (
        f":root{{color-scheme:light dark;{light};--o0:#00694d;--o1:#a94400;--o2:#7a6200;--o3:#666}}"
        f"@media(prefers-color-scheme:dark){{:root{{{dark};--o0:#4cc79f;--o1:#ff9b66;--o2:#e0c04a;--o3:#a0a6ad}}}}"
        + _RULES
    )


_RULES = """
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1180px;margin:0 auto;padding:1.5rem}
h1,h2,h3{font-family:Georgia,serif;font-weight:600;line-height:1.2}h1{font-size:2rem;margin:.5rem 0}
h2{font-size:1.4rem;margin:2.2rem 0 .3rem;padding-top:.8rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1rem 0 0}
a{color:var(--link)}p{margin:.4rem 0;max-width:75ch}.lead{font-size:1.05rem}
pre{background:var(--shade);padding:.6rem .8rem;border-radius:.35rem;white-space:pre-wrap;overflow-wrap:anywhere}
.source,.note{color:var(--o3);font-size:.85rem}.error{color:var(--o1);font-size:.85rem}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.88rem}
th,td{border-bottom:1px solid var(--line);padding:.3rem .5rem;text-align:left;vertical-align:top}
th{background:var(--shade)}
summary{cursor:pointer}td details{min-width:9rem}.chart{margin:.8rem 0}
.o0{color:var(--o0)}.o1{color:var(--o1)}.o2{color:var(--o2)}.o3{color:var(--o3);font-weight:400}
@media print{details{display:block}main{max-width:none}}
"""


def _scripts(specs: dict[str, Any]) -> str:
    import vl_convert

    theme = _theme()
    ranges = {
        mode: {"ramp": theme[mode]["chartSequentialColors"], "diverging": theme[mode]["chartDivergingColors"],
               "category": theme["chartCategoricalColors"]}
        for mode in ("light", "dark")
    }  # fmt: skip
    data = json.dumps({"specs": specs, "ranges": ranges}, ensure_ascii=False).replace("</", "<\\/")
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
    code = f"<script type='module'>{bundle}\n{_DRAW}</script>"
    return f"<script type='application/json' id='report-data'>{data}</script>{code}"


_DRAW = """
const {specs, ranges} = JSON.parse(document.getElementById("report-data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const axis = {labelColor: ink, titleColor: ink, gridColor: "#88888838", domainColor: ink, tickColor: ink};
  const config = {background: "transparent", range: ranges[dark.matches ? "dark" : "light"], axis,
    legend: {labelColor: ink, titleColor: ink}, title: {color: ink}, header: {labelColor: ink, titleColor: ink},
    view: {stroke: "#88888855"}};
  for (const [id, spec] of Object.entries(specs)) {
    const own = {...spec, config: {...config, range: config.range}};
    vegaEmbed("#chart-" + id, own, {actions: {export: true, source: false, compiled: false, editor: false}});
  }
}
draw();
dark.addEventListener("change", draw);
"""
