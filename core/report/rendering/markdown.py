"""The report in short, as Markdown for a repository or a mail, and its pictures as SVG."""

import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core import config
from core.report.claims.outcomes import FAILS, HOLDS, UNDECIDED, UNTESTED
from core.report.exhibits import EXHIBITS, claim
from core.report.rendering.charts import chart_of, task_name
from core.studies.study import Row

ORDER = (HOLDS, FAILS, UNDECIDED, UNTESTED)


def pictures(rows: Sequence[Row]) -> dict[str, str]:
    """SVG text by exhibit, in the light theme's colours."""
    import vl_convert

    found = {}
    for item in EXHIBITS:
        chart = chart_of(item, [row for row in rows if row.get("exhibit") == item.id])
        if chart is not None:
            found[item.id] = vl_convert.vegalite_to_svg(chart.to_dict() | {"config": _colours()})
    return found


def _colours() -> dict[str, Any]:
    theme = tomllib.loads((config.PROJECT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
    light = theme["light"]
    ranges = {"ramp": light["chartSequentialColors"], "diverging": light["chartDivergingColors"]}
    return {"background": light["backgroundColor"], "range": ranges | {"category": theme["chartCategoricalColors"]}}


def markdown(known: Row, rows: Sequence[Row], command: str) -> str:
    """What was compared, every claim with its outcomes, and the numbers behind them."""
    verdicts = Counter(row["verdict"] for row in rows if row["kind"] == "value" and row["verdict"])
    steps = [row for row in rows if row["kind"] == "step"]
    seconds = sum(row.get("seconds") or 0 for row in steps)
    missing = [row for row in steps if row["error"]]
    counted = ", ".join(f"{count} {word}" for word, count in verdicts.items()) or "none"
    parts = [
        f"{known['created']:%d %B %Y}; {len(steps) - len(missing)} of {len(steps)} steps, {seconds / 60:.0f} minutes "
        f"in workers. Printed numbers beside ours: {counted}.",
        f"    {command}",
        _claims(rows),
        _numbers(rows),
    ]
    return "\n\n".join(parts) + "\n"


def _claims(rows: Sequence[Row]) -> str:
    found = [row for row in rows if row["kind"] == "claim"]
    checkpoints = list(dict.fromkeys(row["checkpoint"] for row in found))
    lines = [
        "| claim | " + " | ".join(Path(name).name for name in checkpoints) + " |",
        "|---" * (len(checkpoints) + 1) + "|",
    ]
    for id in dict.fromkeys(row["claim"] for row in found):
        mine = [row for row in found if row["claim"] == id]
        known = claim(id)
        error = f" *({mine[0]['known_error']})*" if mine[0]["known_error"] else ""
        source = f"{known.source} {known.section}".strip() if known else mine[0]["source"]
        cells = [_cell([row for row in mine if row["checkpoint"] == name]) for name in checkpoints]
        lines.append(f"| {_plain(mine[0]['sentence'])} ({source}){error} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(rows: Sequence[Row]) -> str:
    parts = []
    for outcome in ORDER:
        mine = [row for row in rows if row["outcome"] == outcome]
        if mine:
            tasks = ", ".join(task_name(row["task"]) for row in mine if row["task"])
            parts.append(f"{outcome}" + (f": {tasks}" if tasks else ""))
    return "; ".join(parts) or "not about it"


def _numbers(rows: Sequence[Row]) -> str:
    lines = ["| claim | checkpoint | task | outcome | numbers | n |", "|---|---|---|---|---|---|"]
    for row in rows:
        if row["kind"] == "claim" and row["outcome"] != UNTESTED:
            cells = (row["claim"], Path(row["checkpoint"]).name, task_name(row["task"]), row["outcome"], row["said"])
            lines.append("| " + " | ".join(_plain(cell) for cell in (*cells, row["n"] or "")) + " |")
    return "\n".join(lines)


def _plain(text: object) -> str:
    """Text inside a cell: nothing in it ends the cell or starts a link."""
    return str(text).replace("|", "\\|").replace("[", "\\[").replace("\n", " ")
