"""Every page with a checkpoint of BERT-base's size, from a hub on loopback: 12 x 12 heads, width 768, 128 tokens.

The weights are random (110 million, a classifier of two labels), the vocabulary has BERT's 30,522 pieces: BERT's own
where the folder named by ATLAS_VOCABULARY holds it, otherwise the bundled one with the rest unused. Figures, in
seconds: `download_and_open` (the first page that asks for it), then of each page `first` (a link to it with that
checkpoint, until everything on it is painted) and `again`. `trouble`: what pages that showed an error said.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from core import config
from pages.parts.shell.page_table import PAGES
from tests.models.loopback_hub import serving_hub
from tests.pages.browsing import browsing, serving, settled, visit
from tests.pages.opening import address_of

NAME = "someone/bert-base-random"
TOKENS = 128
PATIENCE = 300_000  # ms: a download of 440 MB and a model that is opened, on any machine
WORDS = ["Mary", "old", "dog", "saw", "a", "small", "cat", "near", "the", "river", "and", "ran", "home"]
TEXT = " ".join(WORDS[k % len(WORDS)] for k in range(TOKENS - 2))  # with [CLS] and [SEP]
CHOICES: dict[str, dict[str, str]] = {  # what a link must say besides the checkpoint, for the page to use it
    "heads/one": {"head": "L3H2"},
}
PAINTED = '[data-testid="stMain"] [data-painted], [data-testid="stMain"] canvas'
ERRORS = '[data-testid="stException"], [data-testid="stAlertContentError"]'


def main() -> dict[str, object]:
    with (
        tempfile.TemporaryDirectory() as name,
        checkpoint_of_bert_size(Path(name)) as settings,
        serving(Path(name), ATLAS_RECORD="", **settings) as address,
        browsing() as browser,
    ):
        window = browser.new_page(viewport={"width": 1280, "height": 800})
        window.set_default_timeout(PATIENCE)
        figures: dict[str, object] = {"download_and_open": opened(window, address, "maps/maps")}
        trouble = []
        for page in PAGES:
            for view in page.views:
                name = f"{page.name}/{view.name}"
                for when in ("first", "again"):
                    figures[f"{name}_{when}"] = opened(window, address, name)
                trouble += [f"{name}: {said}" for said in window.locator(ERRORS).all_inner_texts()]
        return figures | {"trouble": trouble}


def opened(window, address: str, page: str) -> float:
    """Seconds from following a link to a page until nothing on it moves any more."""
    asked = {"checkpoint": NAME, "text": TEXT} | CHOICES.get(page, {})
    began = time.perf_counter()
    visit(window, f"{address}/{address_of(page)}&{urlencode(asked)}")
    while True:
        before = window.locator(PAINTED).count()
        settled(window)
        window.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        if before == window.locator(PAINTED).count():
            return time.perf_counter() - began


@contextmanager
def checkpoint_of_bert_size(folder: Path) -> Iterator[dict[str, str]]:
    """A hub that has it; yields the environment in which the app asks that hub."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    vocabulary = os.environ.get("ATLAS_VOCABULARY") or str(config.BUNDLED_MODELS / config.ENCODER)
    tokenizer = AutoTokenizer.from_pretrained(vocabulary)
    tokenizer.model_max_length = TOKENS
    place = folder / "bert-base"
    BertForSequenceClassification(BertConfig(vocab_size=30_522, num_labels=2)).save_pretrained(place)
    tokenizer.save_pretrained(place)
    with serving_hub({NAME: {"main": place}}) as hub:
        yield {"HF_ENDPOINT": hub.address, "HF_HUB_OFFLINE": "0", "HF_HOME": str(folder / "cache")}
    shutil.rmtree(place)
