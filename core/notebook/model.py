"""`open`: a checkpoint or a loaded model, with everything that can be asked of its heads."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from .. import models
from ..attention import AttentionMaps, Head
from ..capture.running import capture
from ..capture.words import word_maps
from ..codebook.classes import TOO_SMALL
from ..errors import InputError
from ..frames.records import AnnotatedSentence, Element, place
from ..models.checkpoint import Checkpoint
from ..patterns.suggestions import judged
from ..studies.frames.frame_lookup import LinkReading, look_up
from . import showing
from .labels import PatternClassifier, classifier_of
from .running import study
from .showing import checkpoint_of, encode, must_have_words, saved_copy


class Model:
    """A checkpoint or loaded model to ask about its heads.

    A loaded model is left as it was and may be used by other threads meanwhile: maps and scores come from a copy that
    shares its weights, studies from a saved copy in a temporary folder.
    """

    def __init__(self, model: Any, tokenizer: Any = None):
        self._model, self._tokenizer = model, tokenizer
        self._is_named = isinstance(model, str | Path)
        _ = self.checkpoint  # what cannot be opened is refused here

    def __repr__(self) -> str:
        opened = self.checkpoint
        return f"<Model {self.name}: {opened.layers} layers x {opened.heads} heads>"

    @property
    def name(self) -> str:
        """The name, folder or hub id that was given; of a loaded model, what it was loaded from."""
        return str(self._model) if self._is_named else self.checkpoint.name

    @property
    def checkpoint(self) -> Checkpoint:
        """What runs: the opened checkpoint, or the loaded model as it is now."""
        return self._opened if self._is_named else checkpoint_of(self._model, self._tokenizer)

    @cached_property
    def _opened(self) -> Checkpoint:
        return models.opening.open_checkpoint(str(self._model))

    @property
    def folder(self) -> str:
        """What a study opens: the name that was given, or the folder of a saved copy of the loaded model."""
        return str(self._model) if self._is_named else str(saved_copy(self._model, self._tokenizer))

    def maps(self, text: str, pair: str | None = None, *, words: bool = False) -> AttentionMaps:
        """The attention weights of every head on a sentence or pair, [layer, head, query, key], with the tokens.

        Args:
            words: between words instead of tokens.
        """
        opened = self.checkpoint
        if words:
            must_have_words(opened)
        encoding = encode(opened, text, pair)
        maps = capture(opened, encoding)
        return word_maps(maps, encoding) if words else maps

    def show(
        self, text: str, pair: str | None = None, *, words: bool = False, height: int = 560, most: int = 256
    ) -> showing.MapsWidget:
        """Every head on a sentence or pair as a widget to explore. Its `save` writes one HTML file.

        Args:
            words: between words instead of tokens.
            most: tokens; longer inputs are cut, and the widget says so.
        """
        return showing.shown(
            self.checkpoint, text, pair, words=words, height=height, most=most, has_command=self._is_named
        )

    def heads(
        self,
        sentence: str,
        target: str,
        element: str | Sequence[str],
        *,
        direction: str = "element_to_target",
        pairing: str = "product",
        without_first: bool = False,
    ) -> pd.DataFrame:
        """The heads that attend between a target and a frame element of a sentence, the strongest difference from the
        same distance first: the rows of the command `heads`.

        Args:
            target: the frame-evoking word; "walk#2" is its second occurrence.
            element: words of a frame element, or several.
            direction: element_to_target, target_to_element or later_to_earlier.
            pairing: product of tokens, or the paper's zip.
            without_first: leave out the first position.
        """
        several = [element] if isinstance(element, str) else list(element)
        elements = tuple(
            Element(f"element {k}", (place(sentence, words, "element"),)) for k, words in enumerate(several, 1)
        )
        marked = AnnotatedSentence("typed", sentence, (place(sentence, target, "target"),), elements=elements)
        _, ranking = look_up(self.checkpoint, marked, LinkReading(direction, pairing, without_first))
        return pd.DataFrame(ranking.rows("difference"))

    def why(self, text: str, head: str | Head, *, pair: str | None = None) -> pd.DataFrame:
        """What decides where a head looks: for the strongest key of each token, the largest terms of the score."""
        return showing.why(self.checkpoint, text, head, pair=pair)

    def why_maps(
        self,
        text: str,
        head: str | Head,
        *,
        pair: str | None = None,
        side: Literal["query", "key"] = "key",
        height: int = 560,
    ) -> showing.MapsWidget:
        """The map of a head, and the map that each group of contributions to one side would draw alone."""
        return showing.why_maps(self.checkpoint, text, head, pair=pair, side=side, height=height)

    def scores(
        self, texts: showing.Text | Sequence[showing.Text] | None = None, *, task: str | None = None
    ) -> pd.DataFrame:
        """Scores of every head, a row for each head and score.

        Args:
            texts: a sentence, a pair (a tuple of two) or a list of them, to measure the scores on. Without texts: the
                rows of the command `atlas`, which are stored, bundled, or measured now on bundled examples.
            task: without texts, only scores on this task.
        """
        if texts is not None:
            return showing.scores_on(self.checkpoint, texts)
        known = showing.known_scores(self.folder, task=task)
        return known if self._is_named else known.assign(checkpoint=self.name)

    def ablate(
        self, task: str = "sst2", *, method: str = "disable", progress: bool = True, **options: Any
    ) -> pd.DataFrame:
        """What changes without each head: the rows of the study `ablation` on a fine-tuned classifier.

        Args:
            method: how heads are ablated: disable (uniform attention), zero, mean, resample and others.
            options: of the study, such as what="layers" or limit=200.
        """
        return study("ablation", self, task=task, method=method, progress=progress, **options)

    def classify(
        self,
        texts: showing.Text | Sequence[showing.Text],
        *,
        classifier: PatternClassifier | str | Path | None = None,
        class_set: str | None = None,
    ) -> pd.DataFrame:
        """The pattern class of every map, with the probability of each class.

        Args:
            texts: a sentence, a pair (a tuple of two) or a list of them.
            classifier: what `train_classifier` returned, or a file of it; None for the bundled classifier.
            class_set: of the bundled classifier; None for the set that describes such a model.

        Returns:
            A row a map: text (its number, from 0), layer, head (zero-based), name, class, probability, unsure, outside
                (beyond what the classifier was trained on), and a column a class.
        """
        opened = self.checkpoint
        fitted = classifier_of(classifier, class_set, causal=opened.causal)
        rows = []
        for number, (text, pair) in enumerate(showing.rows_of(texts)):
            maps = self._of(opened, text, pair)
            squares = list(maps.weights.reshape(-1, *maps.weights.shape[2:]))
            judgement = judged(fitted, squares)
            for k, cell in enumerate(np.ndindex(maps.layers, maps.heads)):
                likely = judgement.probabilities[k]
                rows.append(
                    {
                        "text": number, "layer": cell[0], "head": cell[1], "name": str(Head(*cell)),
                        "class": fitted.classes[int(likely.argmax())], "probability": float(likely.max()),
                        "unsure": bool(judgement.unsure[k]), "outside": bool(judgement.outside[k]),
                    }
                    | dict(zip(fitted.classes, map(float, likely), strict=True))
                )  # fmt: skip
        return pd.DataFrame(rows)

    @staticmethod
    def _of(opened: Checkpoint, text: str, pair: str | None) -> AttentionMaps:
        maps = capture(opened, encode(opened, text, pair))
        if len(maps) <= TOO_SMALL:
            raise InputError(
                f"A map needs more than {TOO_SMALL} tokens to have a pattern; {text[:60]!r} has {len(maps)}. Give a "
                "longer text."
            )
        return maps

    def counterparts(
        self,
        compare: "str | Path | Model",
        texts: Sequence[str] = (),
        *,
        task: str = "sst2",
        limit: int = 200,
        draws: int = 99,
    ) -> pd.DataFrame:
        """Each head's counterpart in another checkpoint: one row a head of this one, with a similarity and a test.

        Args:
            texts: sentences; without them examples of the task.
            draws: of random weights, at least 99.
        """
        other = compare.folder if isinstance(compare, Model) else str(compare)
        return showing.counterparts(self.folder, other, texts, task=task, limit=limit, draws=draws)

    def hypothesis(
        self,
        head: str,
        predicate: str,
        parameters: Mapping[str, str],
        *,
        thought: str = "",
        judged: str = "",
        author: str = "",
    ) -> pd.DataFrame:
        """Register a hypothesis about a head, test it on other examples, and store both in your database.

        Args:
            head: such as "L1H1".
            predicate: such as "offset"; docs/explanation/hypotheses.md lists them.
            parameters: of the predicate, such as {"offset": "first"}.
            thought: the examples that suggested the hypothesis, as task:split:limit:seed.
            judged: other examples, which decide.
        """
        return showing.hypothesis(
            self.folder, head, predicate, parameters, thought=thought, judged=judged, author=author
        )


def open(model: Any, tokenizer: Any = None) -> Model:
    """A model to ask about its heads.

    Args:
        model: a bundled name, a folder, a hub id, or an object that from_pretrained of transformers returned.
        tokenizer: of a loaded model.

    Raises:
        CheckpointError: the model cannot be opened or seen into, or its tokenizer is missing.
    """
    return Model(model, tokenizer)
