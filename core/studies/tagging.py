"""Part-of-speech tags and dependencies of English texts, by a spaCy pipeline. Results are cached."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from .. import config
from ..errors import InputError
from ..tasks.features import TaggedSentence, TaggedWord

if TYPE_CHECKING:
    from spacy.language import Language

REMEMBERED = 4096  # texts per pipeline; about 10 kB each
BATCH_TEXTS = 64


class NoParserError(InputError):
    """Raised if a language pipeline has no part-of-speech tagger or no dependency parser."""


def pipeline_names() -> list[str]:
    """Return the names of the available spaCy pipelines: first the bundled pipeline, then installed packages."""
    from spacy.util import get_installed_models  # 2.6 s of start-up

    return [config.ENGLISH, *sorted(get_installed_models())]


def open_pipeline(name: str | None = None) -> "Language":
    """Open a spaCy pipeline (by default, the bundled one). Raises InputError if it cannot be opened, and NoParserError
    if it has no tagger or no parser."""
    import spacy  # 2.6 s of start-up

    wanted = name or config.ENGLISH
    if wanted not in pipeline_names():
        config.inside_whole(wanted)
    folder = config.BUNDLED_MODELS / config.ENGLISH if wanted == config.ENGLISH else Path(wanted).expanduser()
    if "\x00" in wanted or not (folder.is_dir() or wanted in spacy.util.get_installed_models()):
        raise InputError(
            f"A language pipeline must be one of {', '.join(pipeline_names())} or a folder; got "
            f'"{wanted[:80]}". Choose one of them, or install this pipeline.'
        )
    try:
        opened = spacy.load(folder if folder.is_dir() else wanted)
        probe = opened("The dog barks.")
    except Exception as error:  # spaCy passes on any error of its components; the pipeline does not work
        raise InputError(
            f'A language pipeline must be saved by spaCy 3 with to_disk; "{wanted[:80]}" cannot be opened '
            f"({type(error).__name__}). Choose another pipeline."
        ) from error
    for kind, part in (("DEP", "dependency parser"), ("TAG", "tagger")):
        if not probe.has_annotation(kind):
            raise NoParserError(
                f'A language pipeline must have a tagger and a dependency parser; "{wanted[:80]}" has no '
                f"{part} (it has {', '.join(opened.pipe_names) or 'nothing'}). Choose another pipeline, "
                f"such as {config.ENGLISH}."
            )
    return opened


def tag(texts: Sequence[str], pipeline: Any) -> list[TaggedSentence]:
    """Tag and parse the words of each text with a spaCy pipeline. Results are cached by text."""
    with _LOCK:
        known = _KNOWN.setdefault(pipeline, OrderedDict())
        sentences = {text: known[text] for text in dict.fromkeys(texts) if text in known}
        missing = [text for text in dict.fromkeys(texts) if text not in sentences]
        for text, doc in zip(missing, pipeline.pipe(missing, batch_size=BATCH_TEXTS), strict=True):
            kept = [token for token in doc if not token.is_space]
            place = {token.i: number for number, token in enumerate(kept)}
            words = tuple(
                TaggedWord(
                    token.text,
                    token.idx,
                    token.idx + len(token.text),
                    token.tag_,
                    token.pos_,
                    token.dep_.lower(),
                    place.get(token.head.i, number),
                )
                for number, token in enumerate(kept)
            )
            sentences[text] = known[text] = TaggedSentence(doc.text, words)
        for text in sentences:
            known.move_to_end(text)
        while len(known) > REMEMBERED:
            known.popitem(last=False)
    return [sentences[text] for text in texts]


# ---------------------------------------------------------------- behind them

_LOCK = threading.Lock()  # a spaCy pipeline is not made for several threads
_KNOWN: "WeakKeyDictionary[Any, OrderedDict[str, TaggedSentence]]" = WeakKeyDictionary()
