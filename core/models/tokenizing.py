"""Limits on the files of a checkpoint (size and depth) and on the time of its tokenizer.

Rules of a tokenizer, such as patterns, can take hours for one sentence or crash its library. Bundled tokenizers are
called directly; all others have a time limit, and their failures become errors of one sentence.
"""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

import transformers
from tokenizers import Tokenizer

from ..errors import CheckpointError, InputError
from ..reading import read_in
from .config_files import CONFIG, read_config

LARGEST_SETTINGS, LARGEST_VOCABULARY = 16 << 20, 96 << 20  # bytes; the largest vocabularies of today have 35 MB
SETTINGS = (
    "config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "training.json", "adapter_config.json", "preprocessor_config.json", "processor_config.json", "chat_template.*",
)  # fmt: skip
VOCABULARIES = ("tokenizer.json", "vocab.*", "merges.txt", "*.model", "*.spm", "*.tiktoken", "*.bpe")
DEEPEST = 16  # rules within rules of a tokenizer.json; those of real ones are five to nine deep
LONGEST_GROWTH = 256  # rules may make a text at most this many times as long
SECONDS = 30.0  # for one text

_FOREIGN: "WeakSet[Any]" = WeakSet()  # tokenizers whose calls have a time limit
_STUCK: "WeakSet[Any]" = WeakSet()  # tokenizers that exceeded the time limit; their threads go on running


def refuse_unbounded(folder: Path, name: str) -> None:
    """Raise CheckpointError, before loading, if a file is too large or config.json is implausible."""
    for patterns, most in ((SETTINGS, LARGEST_SETTINGS), (VOCABULARIES, LARGEST_VOCABULARY)):
        for file in (file for pattern in patterns for file in folder.glob(pattern)):
            if file.stat().st_size > most:
                raise CheckpointError(
                    f"{file.name} must not be larger than {most >> 20} MB; the file of {name} has "
                    f"{file.stat().st_size >> 20} MB. Save or download the checkpoint again."
                )
    if (folder / CONFIG).is_file():  # a LoRA adapter has none
        read_config(folder, name)


def refuse_wild_rules(folder: Path, name: str) -> None:
    """Raise CheckpointError if the rules in tokenizer.json are nested too deeply or can lengthen a text too much."""
    file = folder / "tokenizer.json"
    parsed = _parsed(file, name) if file.is_file() else None
    if not isinstance(parsed, dict):
        return
    growth = 1.0
    for depth, rule in _rules({key: part for key, part in parsed.items() if key != "model"}):
        if depth > DEEPEST:
            raise CheckpointError(
                f"The rules of a tokenizer must be nested at most {DEEPEST} levels deep; the rules of {name} are "
                "nested deeper. Put the original tokenizer into the folder of the checkpoint."
            )
        growth *= _growth(rule)
        if growth > LONGEST_GROWTH:
            raise CheckpointError(
                f"The rules of a tokenizer may lengthen a text at most {LONGEST_GROWTH} times; the rules of {name} "
                f"lengthen texts more. Put the original tokenizer into the folder of the checkpoint."
            )


def _parsed(file: Path, name: str) -> Any:
    try:
        return json.loads(read_in(file.parent, file.name))
    except (InputError, OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{file.name} of {name} must be JSON; it cannot be read ({str(error)[:80]}). Save or download it again."
        ) from error


def _rules(parsed: Any) -> Iterator[tuple[int, Any]]:
    """Yield every object in the rules of a tokenizer with its depth, without recursion."""
    waiting = [(1, parsed)]
    while waiting:
        depth, part = waiting.pop()
        if isinstance(part, dict):
            yield depth, part
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        waiting += [(depth + 1, value) for value in inner if isinstance(value, (dict, list))]


def _growth(rule: dict[str, Any]) -> float:
    """By which factor one rule can lengthen a text."""
    content, pattern = rule.get("content"), rule.get("pattern")
    if rule.get("type") != "Replace" or not isinstance(content, str) or not content:
        return 1.0
    letters = pattern.get("String") if isinstance(pattern, dict) else None
    if isinstance(letters, str) and letters:
        return max(1.0, len(content) / len(letters))
    return 1.0 + len(content)


# ---------------------------------------------------------------- the rules of tokenizer.json

_PROBES = (
    "the small engine ran all night", "The House of Lords, NASA and McDonald", "x = foo(bar) in the House",
    "it's 3.14159, 2024-11-26, 1000000 and 42!", "well-known; (see p. 7) [sic] #tag @name a/b", "a  b   c",
    " leading", "line\nbreak\ttab", "caf\u00e9 na\u00efve \u00c5ngstr\u00f6m \ufb01", "\u6211\u559c\u6b22\u732b\u3002",
    "\u3042\u306e\u30ab\u30bf", "\uac00\ub098\ub2e4", "\u0e2b\u0e21\u0e32", "\u041f\u0440\u0438\u0432\u0435\u0442",
    "\U0001f602",
)  # fmt: skip
_SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def tokenizer_of(folder: Path, name: str, *, ours: bool) -> tuple[Any, tuple[str, ...]]:
    """Return the tokenizer in a folder, and a tuple of messages for users. The tuple is empty unless
    tokenizer.json replaced a rebuilt tokenizer.

    transformers rebuilds some tokenizers from their vocabulary, without the normalizer and pre-tokenizer in
    tokenizer.json. If the rebuilt tokenizer splits probe texts differently, tokenizer.json is used, unless
    tokenizer_config.json declares the difference (do_lower_case, add_prefix_space and so on).
    """
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    file, kind = folder / "tokenizer.json", type(tokenizer).__name__
    whole = kind in ("TokenizersBackend", "PreTrainedTokenizerFast")  # these use tokenizer.json unchanged
    if ours or whole or not getattr(tokenizer, "is_fast", False) or not file.is_file():
        return tokenizer, ()
    settings = folder / "tokenizer_config.json"
    told = _parsed(settings, name) if settings.is_file() else {}
    told = told if isinstance(told, dict) else {}
    reference = Tokenizer.from_file(str(file))
    # Probe texts that the settings in tokenizer_config.json do not change
    probes = list(_PROBES)
    if any(told.get(key) is not None for key in ("do_lower_case", "strip_accents", "keep_accents")):
        probes = [probe.lower() for probe in probes if probe.isascii() or not probe[0].isascii()]
    if any(told.get(key) is not None for key in ("tokenize_chinese_chars", "handle_chinese_chars")):
        probes = [probe for probe in probes if probe.isascii() or probe[0].isascii()]
    if told.get("add_prefix_space") is not None:
        probes = [f" {probe.lstrip()}" for probe in probes]
    specials = (False,) if {"add_bos_token", "add_eos_token"} & set(told) else (False, True)
    backends = (tokenizer.backend_tokenizer, reference)
    built, written = _in_time(lambda: [_pieces(one, probes, specials) for one in backends])
    if built == written:
        return tokenizer, ()
    other = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    for special in _SPECIAL:
        token = getattr(tokenizer, special)
        if getattr(other, special) is None and token is not None and reference.token_to_id(str(token)) is not None:
            setattr(other, special, token)
    other.model_input_names = list(tokenizer.model_input_names)
    other.model_max_length = tokenizer.model_max_length
    _declare(other.backend_tokenizer, told)
    return other, (f"{kind} would split texts otherwise than tokenizer.json, so tokenizer.json is used.",)


def _pieces(tokenizer: Tokenizer, probes: list[str], specials: tuple[bool, ...]) -> list[list[int]]:
    return [tokenizer.encode(probe, add_special_tokens=added).ids for probe in probes for added in specials]


def _declare(backend: Tokenizer, told: dict[str, Any]) -> None:
    """Apply tokenizer_config.json's settings on case, accents and leading spaces to tokenizer.json's rules."""
    rules = json.loads(backend.to_str())
    normalizer, splitter = rules.get("normalizer"), rules.get("pre_tokenizer")
    for _, rule in _rules([part for part in (normalizer, splitter) if part]):
        if rule.get("type") == "BertNormalizer":
            names = {"do_lower_case": "lowercase", "strip_accents": "strip_accents",
                     "tokenize_chinese_chars": "handle_chinese_chars"}  # fmt: skip
            rule |= {own: told[key] for key, own in names.items() if isinstance(told.get(key), bool)}
        if rule.get("type") == "ByteLevel" and isinstance(told.get("add_prefix_space"), bool):
            rule["add_prefix_space"] = told["add_prefix_space"]
    changed = Tokenizer.from_str(json.dumps({**rules, "added_tokens": [], "post_processor": None}))
    if normalizer:
        backend.normalizer = changed.normalizer
    if splitter:
        backend.pre_tokenizer = changed.pre_tokenizer


# ---------------------------------------------------------------- a call's time


def distrust(tokenizer: Any) -> None:
    """Limit how long each later call of a tokenizer may take."""
    _FOREIGN.add(tokenizer)


def split(tokenizer: Any, *texts: Any, **options: Any) -> Any:
    """Split texts into tokens. Raises CheckpointError if a tokenizer with a time limit panics or exceeds the limit."""
    if tokenizer not in _FOREIGN:
        return tokenizer(*texts, **options)
    if tokenizer in _STUCK:
        raise _too_long()
    return _in_time(lambda: tokenizer(*texts, **options), lambda: _STUCK.add(tokenizer))


def _in_time(call: Callable[[], Any], stuck: Callable[[], None] = lambda: None) -> Any:
    """Return the result of a call; if it takes too long, call `stuck` and abandon the thread."""
    answers: list[Any] = []
    asking = threading.Thread(target=_ask, args=(answers, call), name="tokenizing", daemon=True)
    asking.start()
    asking.join(SECONDS)
    if not answers:
        stuck()
        raise _too_long()
    answer, error = answers[0]
    if is_panic(error):
        why = (str(error).strip().splitlines() or ["it stopped"])[0][:120]
        raise CheckpointError(
            "A tokenizer must be able to split every text into tokens; the tokenizer of this checkpoint fails on a "
            f"text ({why}). Put the original tokenizer into the folder of the checkpoint."
        ) from error
    if error is not None:
        raise error
    return answer


def is_panic(error: BaseException | None) -> bool:
    """Return whether an exception is a Rust panic in the tokenizers library."""
    return error is not None and type(error).__name__ == "PanicException"


def _ask(answers: list[Any], call: Callable[[], Any]) -> None:
    try:
        answers.append((call(), None))
    except BaseException as error:  # raised in the caller's thread
        answers.append((None, error))


def _too_long() -> CheckpointError:
    return CheckpointError(
        f"A tokenizer must split a text within {SECONDS:.0f} s; the tokenizer of this checkpoint takes longer. Put the "
        "original tokenizer into the folder of the checkpoint."
    )
