"""Export of findings: one HTML page, Markdown with pictures, and BibTeX entries."""

import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from .. import __version__
from ..atlas.example import example_grid
from ..drawing import conversion, theme
from ..drawing.page import Chart, PackedMaps, Part, Table, Words, html_page, written_cell
from ..errors import AtlasError, InputError
from ..store.database import Database
from ..store.findings import Finding, Number, checked_maps, checked_picture
from ..writing import write_whole
from .pinning import finding_of_run

COLUMNS = ("head", "what", "value", "95 % interval", "p, corrected", "n")
IN_MARKDOWN = 20  # numbers of a finding there; the page has all


def html(findings: Sequence[Finding], more: Sequence[Part] = ()) -> str:
    """Create one HTML page with all findings: interactive maps, figures, numbers with intervals, commands and hashes.

    `more` holds parts for the end of the page. Raises InputError for a figure or maps that this program did not write.
    """
    parts: list[Part] = []
    for finding in findings:
        parts.append(Words(finding.title, finding.note))
        parts += [PackedMaps(checked_maps(finding.maps))] if finding.maps else []
        parts += [Chart(checked_picture(picture)) for picture in finding.pictures if not finding.maps]
        parts += [Table(COLUMNS, [_row(number) for number in finding.numbers])] if finding.numbers else []
        parts.append(Words("", _origin(finding), finding.command))
    single = len(findings) == 1
    title, count = (findings[0].title, "A result") if single else ("Findings", f"{len(findings)} findings")
    return html_page(
        title,
        [*(parts[1:] if single and not findings[0].note else parts), *more],
        lead=f"{count} of Attention Atlas, {date.today():%d %B %Y}",
    )


def markdown(findings: Sequence[Finding], pictures: str = "") -> str:
    """Format findings as Markdown with links to SVG figures in the folder `pictures`. If `pictures` is "", figures are
    left out."""
    count = "1 finding" if len(findings) == 1 else f"{len(findings)} findings"
    lines = ["# Findings", "", f"{count} of Attention Atlas, {date.today():%d %B %Y}."]
    for finding in findings:
        lines += ["", f"## {_escaped(finding.title)}", "", *(_escaped(line) for line in finding.note.splitlines())]
        lines += [f"\n![{_escaped(finding.title)}]({pictures}/{name})" for name in _names(finding) if pictures]
        lines += ["", *_table(finding.numbers)] if finding.numbers else []
        lines += ["", _escaped(_origin(finding).replace("\n", " · "))]
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", finding.command)), default=0))
        lines += ["", f"{fence}sh", finding.command, fence] if finding.command else []
    return "\n".join(lines) + "\n"


def bibtex(findings: Sequence[Finding]) -> str:
    """Create BibTeX entries for the software and for each finding, with the command that reproduces the finding."""
    software = (
        "@software{attention-atlas,\n  title = {Attention Atlas},\n  author = {{The Attention Atlas developers}},\n"
        f"  version = {{{__version__}}},\n  year = {{{date.today().year}}}\n}}\n"
    )
    return "\n".join([software, *map(_entry, findings)])


def svgs(findings: Sequence[Finding]) -> dict[str, str]:
    """Draw the figures of findings as SVG in the colours of the light theme, and return each SVG by its file name."""
    charts = {
        name: checked_picture(picture) | {"config": theme.of_saved_charts()}
        for finding in findings
        for name, picture in zip(_names(finding), finding.pictures, strict=True)
    }
    return dict(zip(charts, conversion.svgs_of(list(charts.values())), strict=True))


def write(findings: Sequence[Finding], *, page: Path | None, text: Path | None, cited: Path | None) -> list[Path]:
    """Write findings to HTML, Markdown and BibTeX files, and return their paths. Figures are saved in a folder next to
    the Markdown file.

    Raises InputError if there is no finding or no file, or a file cannot be written.
    """
    if not findings:
        raise InputError(
            "At least one pinned result must be selected; got none. Pin a result on its page, or correct the IDs."
        )
    if not (page or text or cited):
        raise InputError("At least one output file must be given; got none. Add --html, --md or --bib.")
    written = []
    if page:
        write_whole(page, html(findings))
        written.append(page)
    if text:
        folder = text.with_name(f"{text.stem}-pictures")
        for name, picture in svgs(findings).items():
            write_whole(folder / name, picture)
        write_whole(text, markdown(findings, folder.name.replace(" ", "%20")))
        written.append(text)
    if cited:
        write_whole(cited, bibtex(findings))
        written.append(cited)
    return written


# ---------------------------------------------------------------- behind them


def _origin(finding: Finding) -> str:
    who = f"Pinned by {finding.annotator}, " if finding.annotator else "Pinned "
    when = f"{who}{finding.stored:%d %B %Y}. " if finding.stored else ""
    weights = f"\nWeights {finding.weights_hash}" if finding.weights_hash else ""
    run = f"\nRun {finding.run}" if finding.run else ""
    return f"{finding.about}{weights}{run}\n{when}L1H1 is the first head of the first layer."


def _row(number: Number) -> tuple[str | float | int | None, ...]:
    return (
        number.name,
        number.what,
        number.value,
        ("–" if number.low is None or number.high is None else f"{number.low:.4g} to {number.high:.4g}"),
        number.p,
        number.n,
    )


def _names(finding: Finding) -> list[str]:
    return [f"{finding.finding}-{place}.svg" for place in range(1, len(finding.pictures) + 1)]


def _table(numbers: Sequence[Number]) -> list[str]:
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for number in numbers[:IN_MARKDOWN]:
        lines.append("| " + " | ".join(_escaped(written_cell(value)) for value in _row(number)) + " |")
    left = len(numbers) - IN_MARKDOWN
    return [*lines, *(["", f"The HTML page has {left} more numbers of this finding."] if left > 0 else [])]


def _escaped(text: str) -> str:
    text = re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", " ".join(text.split()))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _entry(finding: Finding) -> str:
    fields = {
        "title": finding.title,
        "author": finding.annotator or "Anonymous",
        "year": f"{finding.stored:%Y}",
        "howpublished": finding.command or "an Attention Atlas notebook",
        "note": f"{finding.note} {finding.about}"
        + (f"; weights {finding.weights_hash}" if finding.weights_hash else ""),
        "crossref": "attention-atlas",
    }
    lines = ",\n".join(f"  {name} = {{{_tex(value)}}}" for name, value in fields.items())
    return f"@misc{{finding-{finding.finding},\n{lines}\n}}\n"


def _tex(text: str) -> str:
    """Return text with braces balanced and commands escaped, so that BibTeX and TeX print it literally."""
    marks = {"\\": r"\textbackslash ", "{": r"\{", "}": r"\}", "~": r"\textasciitilde ", "^": r"\textasciicircum "}
    marks |= {mark: "\\" + mark for mark in "#$%&_"}
    return "".join(marks.get(letter, letter) for letter in " ".join(text.split()))


# ---------------------------------------------------------------- a stored result as a page


def result_page(db: Database, run: str) -> str:
    """Create an HTML page with the results of a stored run. Raises StoreError if no run has this ID."""
    finding = finding_of_run(db, run)
    return html([finding], _maps(finding))


def _maps(finding: Finding) -> Sequence[Part]:
    """Return the maps of all heads on the example, with the result's first head enlarged, or why there are none."""
    if not finding.checkpoint or "," in finding.checkpoint:  # a report on several has its own page
        return ()
    head = next((number.name for number in finding.numbers if number.name.startswith("L") and "H" in number.name), "")
    heading = Words("The heads themselves")
    try:
        return heading, example_grid(finding.checkpoint, weights_hash=finding.weights_hash or "", head=head)
    except AtlasError as error:
        return heading, Words(text=str(error))
