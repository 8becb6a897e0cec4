"""The dossier of a head out of the app: one HTML file, or a finding that is kept."""

from dataclasses import dataclass

import pandas as pd

from core.atlas.example_grid import example_grid
from core.atlas.head import facts, sentence
from core.atlas.head_page import Gallery, command_of, head_page
from core.attention import Head
from core.drawing.maps_page import MapsSource
from core.drawing.packing import Grid
from core.errors import AtlasError
from core.findings.pinning import HeadFacts, Remark, pin_head
from core.models.present import present_weights
from core.store.findings import Number
from pages.parts.atlas.head_hypotheses import judged_of
from pages.parts.shell import resources


@dataclass(frozen=True)
class Dossier:
    """What the page has of a head. scores: of all heads on the task; rows: this head's, as the table shows them."""

    head: Head
    checkpoint: str
    task: str | None
    scores: pd.DataFrame
    rows: pd.DataFrame
    gallery: Gallery

    def page(self) -> str:
        """The page in one file."""
        return head_page(
            self.head, self.checkpoint, self.scores, self.rows, task=self.task, gallery=self.gallery,
            maps=self._maps(), hypotheses=judged_of(self.checkpoint, self.head),
        )  # fmt: skip

    def pin(self, title: str, note: str, who: str) -> str:
        """Keep it among the findings; returns the finding's id."""
        rows = self.rows.astype(object).where(self.rows.notna(), None).to_dict("records")
        numbers = [
            Number(str(self.head), row["what"], row["value"], row["low"], row["high"], row["q"], row["n"])
            for row in rows
        ]
        weights = present_weights(self.checkpoint) or ""
        source = MapsSource(self.checkpoint, "", weights_hash=weights, command=command_of(self.checkpoint, self.task))
        facts_sentence, judged = sentence(facts(self.scores, self.head)), judged_of(self.checkpoint, self.head)
        return pin_head(
            resources.database(),
            self.head,
            source,
            HeadFacts(facts_sentence, numbers, judged),
            Remark(note, title, who),
        )

    def _maps(self) -> Grid | str:
        """All heads on the example pair, or why they are left out."""
        try:
            return example_grid(self.checkpoint, head=str(self.head))
        except AtlasError as error:
            return str(error)
