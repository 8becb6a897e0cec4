"""A stored result as a page in one file: what its card says, and the maps of its checkpoint to explore."""

from collections.abc import Sequence

from ..atlas.example import example_grid
from ..drawing.page import Part, Words
from ..errors import AtlasError
from ..store.database import Database
from ..store.findings import Finding
from . import export
from .pinning import finding_of_run


def result_page(db: Database, run: str) -> str:
    """The page as text. Raises StoreError for an unknown run."""
    finding = finding_of_run(db, run)
    return export.html([finding], _maps(finding))


def _maps(finding: Finding) -> Sequence[Part]:
    """All heads on the example, the result's first head enlarged; or the sentence that says why there are none."""
    if not finding.checkpoint or "," in finding.checkpoint:  # a report on several has its own page
        return ()
    head = next((number.name for number in finding.numbers if number.name.startswith("L") and "H" in number.name), "")
    heading = Words("The heads themselves")
    try:
        return heading, example_grid(finding.checkpoint, weights_hash=finding.weights_hash or "", head=head)
    except AtlasError as error:
        return heading, Words(text=str(error))
