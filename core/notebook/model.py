"""The function `open` and the class `Model`, for analysing a checkpoint or a loaded model."""

import copy
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from .. import models
from ..atlas import scores as stored_scores
from ..attention import AttentionMaps, Head
from ..capture.running import capture
from ..capture.words import special_positions_of, word_maps
from ..codebook.classes import TOO_SMALL
from ..config import settings
from ..drawing.page import MapsSource
from ..drawing.panes import Pane, scored_pane, telling_head
from ..drawing.payload import as_bytes
from ..errors import InputError
from ..frames.records import AnnotatedSentence, Element, place
from ..models.checkpoint import Checkpoint
from ..patterns.suggestions import judged
from ..scoring.intervals import Means
from ..scoring.registry import HEAD_SCORES, even_scores, map_scores
from ..store.database import Database
from ..store.recovery import LockedError
from ..studies.attention.budget import STUDY as BUDGET
from ..studies.comparison.counterparts import STUDY as COUNTERPARTS
from ..studies.comparison.records import Counterpart
from ..studies.contract import Finished
from ..studies.explanation.cell_parts import LayerScores, layer_scores
from ..studies.explanation.writes import STUDY as WRITES
from ..studies.frames.frame_lookup import LinkReading, look_up
from ..studies.hypotheses.hypothesis import STUDY as HYPOTHESIS
from ..studies.hypotheses.hypothesis import RowChoice, usual_rows
from ..studies.hypotheses.joint_job import keep_as_run
from ..studies.hypotheses.records import Criterion
from ..studies.hypotheses.registering import Proposal, batch_of, options_of, register
from ..studies.patterns.discover import STUDY as DISCOVER
from .labels import PatternClassifier, classifier_of
from .running import study
from .showing import MapsWidget, checkpoint_of, encode, must_have_words, saved_copy

Text = str | tuple[str, str]
TOKENS_SHOWN = 256  # longer inputs are truncated: 144 heads of 256 tokens are 19 MB
TERMS_SHOWN = 5  # of the score of one cell
EXAMPLES = 100  # of a hypothesis: to form it, and to test it


class Model:
    """A checkpoint or a loaded model whose attention heads can be analysed.

    A loaded model is not changed and may be used by other threads: maps and scores come from a copy that shares its
    weights, studies from a saved copy in a temporary folder.
    """

    def __init__(self, model: Any, tokenizer: Any = None):
        self._model, self._tokenizer = model, tokenizer
        self._is_named = isinstance(model, str | Path)
        _ = self.checkpoint  # raises an error if the checkpoint cannot be opened

    def __repr__(self) -> str:
        opened = self.checkpoint
        name = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in self.name)
        return f"<Model {name}: {opened.layers} layers x {opened.heads} heads>"

    @property
    def name(self) -> str:
        """Return the name, folder or Hub ID of the model. For a loaded model, return the name or folder that it was
        loaded from."""
        return str(self._model) if self._is_named else self.checkpoint.name

    @property
    def checkpoint(self) -> Checkpoint:
        """Return the loaded checkpoint. If the model is an object, the checkpoint has the current weights of the
        object."""
        return self._opened if self._is_named else checkpoint_of(self._model, self._tokenizer)

    @cached_property
    def _opened(self) -> Checkpoint:
        opened = models.opening.open_checkpoint(str(self._model))
        for note in opened.notes:
            warnings.warn(f"{opened.name}: {note}", stacklevel=6)
        return opened

    @property
    def folder(self) -> str:
        """Return the name or folder from which studies open this checkpoint. A model object is saved first."""
        return str(self._model) if self._is_named else str(saved_copy(self._model, self._tokenizer))

    def maps(self, text: str, pair: str | None = None, *, words: bool = False) -> AttentionMaps:
        """Compute the attention weights [layer, head, query, key] of all heads for a text, between tokens or words."""
        opened = self.checkpoint
        if words:
            must_have_words(opened)
        encoding = encode(opened, text, pair)
        maps = capture(opened, encoding)
        return word_maps(maps, encoding) if words else maps

    def show(
        self, text: str, pair: str | None = None, *, words: bool = False, height: int = 560, most: int = TOKENS_SHOWN
    ) -> MapsWidget:
        """Show the attention maps of every head for a sentence or pair in an interactive widget.

        Args:
            words: between words instead of tokens.
            most: largest number of tokens; longer inputs are truncated, and the widget states this.

        Raises:
            CheckpointError, InputError: maps of the model are not available; the text is empty.
        """
        opened = self.checkpoint
        if words:
            must_have_words(opened)
        encoding = encode(opened, text, pair, most=most)
        maps = capture(opened, encoding)
        maps = word_maps(maps, encoding) if words else maps
        first, separators = special_positions_of(encoding, words=words)
        pane = scored_pane(opened.name, maps, first=first, separators=separators)
        cut = f"{encoding.cut} tokens were truncated; {len(encoding)} are shown." if encoding.cut else ""
        source = MapsSource(opened.name, text, pair, opened.weights_hash, words)
        source = source.with_command() if self._is_named else source
        return MapsWidget([pane], source, head=telling_head(pane.scores or {}), note=cut, height=height)

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
        """Rank heads by their attention between a target word and a frame element of a sentence.

        The rank is by the difference from other pairs of words at the same distance.

        Args:
            target: the frame-evoking word; "walk#2" is its second occurrence.
            element: words of a frame element, or several.
            direction: element_to_target, target_to_element or later_to_earlier.
            pairing: product of tokens, or zip as in the paper.
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
        """Decompose the attention score between each query and its most attended key into a sum of terms.

        Args:
            head: "L2H5", or a Head.

        Returns:
            One row per term: query, key (zero-based), query_token, key_token, weight, score (minus the row mean; the
                sum of the terms), query_part, key_part, value. The last row of a cell is the sum of all other terms.

        Raises:
            CheckpointError, InputError, InterventionError: the model, head or family cannot be decomposed.
        """
        _, chosen, scores = self._decomposed(text, head, pair)
        rows = []
        for query, token in enumerate(scores.encoding.tokens):
            key = int(scores.inputs.weights[0, chosen.head, query].argmax())
            cell = scores.cell(chosen.head, query, key)
            rows += [
                {
                    "query": query, "key": key, "query_token": token, "key_token": scores.key_encoding.tokens[key],
                    "weight": cell.weight, "score": cell.score, "query_part": term.query_part,
                    "key_part": term.key_part, "value": term.value,
                }
                for term in cell.largest(TERMS_SHOWN)
            ]  # fmt: skip
        return pd.DataFrame(rows)

    def why_maps(
        self,
        text: str,
        head: str | Head,
        *,
        pair: str | None = None,
        side: Literal["query", "key"] = "key",
        height: int = 560,
    ) -> MapsWidget:
        """Show the attention map of a head. Further maps show how the head would attend if its queries or keys
        contained only one group of contributions, such as those of one earlier layer.

        Arguments and errors are those of `why`.
        """
        opened, chosen, scores = self._decomposed(text, head, pair)
        maps = {f"{chosen}": scores.inputs.weights[0, chosen.head]}
        maps |= {
            f"{group} only, on the {side} side": scores.map_of(chosen.head, group, side)
            for group in scores.groups(side)
        }
        tokens, keys = scores.encoding.tokens, scores.key_encoding.tokens
        panes = [
            Pane(
                title, 1, 1, tokens, as_bytes(weights.float().cpu().numpy()), opened.causal, named=str(chosen),
                scores={}, key_tokens=None if keys == tokens else keys, part=chosen.part,
            )
            for title, weights in maps.items()
        ]  # fmt: skip
        source = MapsSource(opened.name, text, pair, opened.weights_hash)
        return MapsWidget(panes, source, head=str(chosen), height=height)

    def _decomposed(self, text: str, head: str | Head, pair: str | None) -> tuple[Checkpoint, Head, LayerScores]:
        opened = self.checkpoint
        if opened.dtype in ("float16", "bfloat16"):  # a decomposition is exact in float32
            opened = Checkpoint(opened.name, copy.deepcopy(opened.model).float(), opened.tokenizer)
        chosen = head if isinstance(head, Head) else Head.parse(head)
        scores = layer_scores(opened, encode(opened, text, pair), chosen.layer, part=chosen.part)
        scores.check(chosen.head, 0, 0)
        return opened, chosen, scores

    def scores(self, texts: Text | Sequence[Text] | None = None, *, task: str | None = None) -> pd.DataFrame:
        """Return the scores of every head as a data frame with one row per head and score.

        Args:
            texts: a sentence, a pair (a tuple of two) or a list of them, to measure the scores on. Without texts, the
                scores are those of the command `atlas`: stored, bundled, or measured on bundled examples.
            task: without texts, only scores on this task or without a task.
        """
        if texts is not None:
            return scores_on(self.checkpoint, texts)
        known = known_scores(self.folder, task=task)
        return known if self._is_named else known.assign(checkpoint=self.name)

    def budget(
        self, texts: Text | Sequence[Text] | None = None, *, task: str = "sst2", progress: bool = True, **options: Any
    ) -> pd.DataFrame:
        """Measure how each head divides its attention among categories of tokens, such as neighbours or [SEP].

        `texts` is a sentence, a pair (a tuple of two) or a list of them, or None for examples of the task. `options`
        are those of the study, such as limit=200, or pipeline="none" to leave out syntax.
        """
        inputs: dict[str, Any] = {"task": task} if texts is None else {"texts": rows_of(texts)}
        return study(BUDGET.name, self, progress=progress, **inputs, **options)

    def writes(
        self, *, task: str = "sst2", pairs: str | Path | None = None, progress: bool = True, **options: Any
    ) -> pd.DataFrame:
        """List the tokens that each head promotes and suppresses, and the copying and relation scores of the head.

        `task` names the examples, and `pairs` a CSV file with the columns relation, source and target (None: the
        bundled word pairs). `options` are those of the study, such as limit=30.
        """
        file = {} if pairs is None else {"pairs_file": str(pairs)}
        return study(WRITES.name, self, progress=progress, task=task, **file, **options)

    def discover(self, *, task: str = "sst2", progress: bool = True, **options: Any) -> pd.DataFrame:
        """Cluster attention maps without labels, test whether clusters are stable, and compare them with pattern
        classes.

        Returns the rows of the study `discover` on examples of a task; `options` are those of the study, such as
        maps=300.
        """
        rows = study(DISCOVER.name, task=task, progress=progress, checkpoints=(self.folder,), **options)
        return rows.assign(checkpoint=self.name)

    def ablate(
        self, task: str = "sst2", *, method: str = "disable", progress: bool = True, **options: Any
    ) -> pd.DataFrame:
        """Ablate each head of a fine-tuned classifier in turn, and return the changes in the metric of the classifier.

        `method` says how: disable (uniform attention), zero, mean, resample and others. `options` are those of the
        study, such as what="layers" or limit=200.
        """
        return study("ablation", self, task=task, method=method, progress=progress, **options)

    def classify(
        self,
        texts: Text | Sequence[Text],
        *,
        classifier: PatternClassifier | str | Path | None = None,
        class_set: str | None = None,
    ) -> pd.DataFrame:
        """Classify every attention map by pattern, and return the probability of each class.

        Args:
            texts: a sentence, a pair (a tuple of two) or a list of them.
            classifier: from `train_classifier`, or its file; None for the bundled classifier.
            class_set: of the bundled classifier; None for the set that fits the model.

        Returns:
            One row per map: text (its number, from 0), layer, head (zero-based), name, class, probability, unsure,
                outside (the distribution of the training maps), and one column per class.
        """
        opened = self.checkpoint
        fitted = classifier_of(classifier, class_set, causal=opened.causal)
        rows = []
        for number, (text, pair) in enumerate(rows_of(texts)):
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
                f"An attention map must have more than {TOO_SMALL} tokens to be classified; the map of "
                f"{text[:60]!r} has {len(maps)} tokens. Pass a longer text."
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
        progress: bool = True,
    ) -> pd.DataFrame:
        """Find the counterpart of each head in another checkpoint.

        Args:
            texts: sentences; without them, examples of the task.
            draws: random-weight baselines, at least 99.

        Returns:
            One row for each head: layer, head, match_layer, match_head (zero-based), similarity, low, high, margin, p,
                agrees, matched.

        Raises:
            CheckpointError, InputError: a checkpoint cannot be opened, or the two have no words in common.
        """
        inputs = {"texts": list(texts)} if texts else {"tasks": [task]}
        rows = study(COUNTERPARTS.name, self, compare=compare, limit=limit, draws=draws, progress=progress, **inputs)
        kept = [head.as_row() for head in Counterpart.among(rows.to_dict("records"))]
        return pd.DataFrame(kept)

    def hypothesis(
        self,
        head: str,
        predicate: str,
        parameters: Mapping[str, str],
        *,
        thought: str = "",
        judged: str = "",
        author: str = "",
        progress: bool = True,
    ) -> pd.DataFrame:
        """Register a hypothesis about a head, test it on other examples, and store the hypothesis and test in your
        database.

        Args:
            predicate: such as "offset"; docs/explanation/hypotheses.md lists them.
            parameters: of the predicate, such as {"offset": "first"}.
            thought: the examples that suggested the hypothesis, as task:split:limit:seed; without them SST-2, or what
                the predicate needs.
            judged: the evaluation examples; without them RTE, or what the predicate needs.

        Returns:
            One row for each criterion: hypothesis (its ID), criterion, state, measure, amount, low, high, baseline, n,
                p, adjusted, level, note.

        Raises:
            InputError: the hypothesis cannot be tested with these arguments.
            CheckpointError: the checkpoint cannot be opened.
            LockedError: the app holds the database; use its page, or close it.
        """
        usual = usual_rows(predicate, EXAMPLES)
        chosen = [RowChoice.parse(given or other) for given, other in zip((thought, judged), usual, strict=True)]
        proposal = Proposal(Head.parse(head), predicate, dict(parameters))
        with Database(settings().database) as db:
            batch, _ = register(db, self.folder, [proposal], thought=chosen[0], judged=chosen[1], annotator=author)
            options = options_of(*batch_of(db, batch))
            todo = tqdm(HYPOTHESIS.units(options), desc=HYPOTHESIS.name, leave=False, disable=not progress)
            units = [HYPOTHESIS.run(options, unit) for unit in todo]
            rows = HYPOTHESIS.summarize(options, [unit.partial for unit in units])
            run = keep_as_run(db, HYPOTHESIS, options, {"weights_hash": units[0].provenance.weights_hash}, rows)
            partials = [unit.partial for unit in units]
            HYPOTHESIS.keep(db, Finished(run, HYPOTHESIS.title(options), options, rows, lambda: iter(partials)))
        names = ("hypothesis", "criterion", "state", "measure", "amount", "low", "high", "baseline", "n", "p",
                 "adjusted", "level", "note")  # fmt: skip
        return pd.DataFrame([{name: getattr(row, name) for name in names} for row in Criterion.among(rows)])


def scores_on(checkpoint: Checkpoint, texts: Text | Sequence[Text]) -> pd.DataFrame:
    """Compute all head scores on one or more texts.

    Args:
        texts: a sentence, a pair (tuple of two), or a list of them.

    Returns:
        One row per head and score: layer, head (zero-based), name, score, value (mean over texts), low and high (95 %
            CI; NaN for too few texts), baseline (mean under uniform attention), n (texts).

    Raises:
        CheckpointError, InputError: maps of the model are not available; there is no text.
    """
    rows = rows_of(texts)
    names = list(HEAD_SCORES)
    means = Means(checkpoint.layers, checkpoint.heads, len(names))
    evenly = Means(checkpoint.layers, checkpoint.heads, len(names))
    for number, (text, pair) in enumerate(tqdm(rows, desc="texts", leave=False, disable=len(rows) < 2)):
        encoding = encode(checkpoint, text, pair)
        maps = capture(checkpoint, encoding)
        places: dict[str, Any] = {"first": encoding.first, "separators": encoding.separators}
        for kept, scores in ((means, map_scores(maps, **places)), (evenly, even_scores(maps, **places))):
            # Scores of one input, [layer, head, score], broadcast to all heads
            every = [np.asarray(scores[name], np.float64) for name in HEAD_SCORES]
            shape = (maps.layers, maps.heads)
            values = np.stack(
                [np.broadcast_to(score if score.ndim == 2 else score[:, None], shape) for score in every], -1
            )
            counts = (~np.isnan(values[:, 0])).astype(float)  # an input has scores for all heads or for none
            for layer in range(len(values)):
                kept.update(layer, values[layer][None], counts[layer][None], [number])
    estimate, baseline = means.result(), evenly.result().value
    scored = [
        {
            "layer": layer,
            "head": head,
            "name": str(Head(layer, head)),
            "score": name,
            "value": estimate.value[layer, head, place],
            "low": estimate.low[layer, head, place],
            "high": estimate.high[layer, head, place],
            "baseline": baseline[layer, head, place],
            "n": int(estimate.n[place]),
        }
        for layer, head in np.ndindex(estimate.value.shape[:2])
        for place, name in enumerate(names)
    ]
    return pd.DataFrame(scored)


def known_scores(checkpoint: str, *, task: str | None = None, measure: bool = True) -> pd.DataFrame:
    """Return the stored and bundled scores of the heads of a checkpoint. If there are none, measure a first set of
    scores.

    If the app holds the database, stored results are omitted with a warning. `task` selects scores on this task and
    those without a task (None: all), and `measure` says whether to measure (seconds) if nothing is stored or bundled.
    Columns are those of `core.atlas.scores.ScoreRow`; `frame.pivot(index="layer", columns="head", values="value")` on
    one score gives a table of heads. Measuring may raise CheckpointError or InputError.
    """
    path = settings().database.expanduser()
    if not path.is_file():
        return stored_scores.atlas(None, checkpoint=checkpoint, task=task, measure=measure)
    try:
        with Database(path) as db:
            return stored_scores.atlas(db, checkpoint=checkpoint, task=task, measure=measure)
    except LockedError as error:
        warnings.warn(f"The database is held by {error.holder}, so its stored scores are omitted.", stacklevel=2)
        return stored_scores.atlas(None, checkpoint=checkpoint, task=task, measure=measure)


def rows_of(texts: Text | Sequence[Text]) -> list[tuple[str, str | None]]:
    """Convert texts to pairs of a first and an optional second text. Raises InputError for other values."""
    some = [texts] if isinstance(texts, (str, tuple)) else list(texts)
    rows = [(row, None) if isinstance(row, str) else row for row in some]
    if not rows or not all(isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], str) for row in rows):
        raise InputError(
            "texts must be a sentence, a pair of sentences, or a list of sentences or pairs; got "
            f"{str(texts)[:80]!r}. Pass one of these."
        )
    return rows


def open(model: Any, tokenizer: Any = None) -> Model:
    """Open a model for the analysis of its attention heads.

    Args:
        model: a bundled name, a folder, a hub ID, or an object from `from_pretrained` of transformers.
        tokenizer: of a loaded model.

    Raises:
        CheckpointError: the model cannot be opened, its attention cannot be observed, or its tokenizer is missing.
    """
    return Model(model, tokenizer)
