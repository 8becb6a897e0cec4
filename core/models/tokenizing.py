"""What a checkpoint's own files may ask of this machine: their size and depth, and a tokenizer's time.

A tokenizer is rules of its own, patterns among them, which can take hours for one sentence, or stop its library with an
error that no program expects. Those that ship with this project are called as they are; of all others a call has a
time, and what it fails with is a sentence.
"""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakSet

from core.errors import CheckpointError

LARGEST_SETTINGS, LARGEST_VOCABULARY = 16 << 20, 96 << 20  # bytes; the largest vocabularies of today have 35 MB
SETTINGS = (
    "config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "training.json", "adapter_config.json", "preprocessor_config.json", "processor_config.json", "chat_template.*",
)  # fmt: skip
VOCABULARIES = ("tokenizer.json", "vocab.*", "merges.txt", "*.model", "*.spm", "*.tiktoken", "*.bpe")
DEEPEST = 16  # rules within rules of a tokenizer.json; those of real ones are five to nine deep
LONGEST_GROWTH = 256  # how many times as long rules may make a text
SECONDS = 30.0  # for one text

_FOREIGN: "WeakSet[Any]" = WeakSet()  # tokenizers whose rules nobody here has read
_STUCK: "WeakSet[Any]" = WeakSet()  # those that did not answer in time; the thread that asked goes on for nobody


def refuse_unbounded(folder: Path, name: str) -> None:
    """Look at a checkpoint's files before anything of them is read.

    Raises CheckpointError for a file past its bound, or a config.json that is no JSON object.
    """
    for patterns, most in ((SETTINGS, LARGEST_SETTINGS), (VOCABULARIES, LARGEST_VOCABULARY)):
        for file in (file for pattern in patterns for file in folder.glob(pattern)):
            if file.stat().st_size > most:
                raise CheckpointError(
                    f"A checkpoint's {file.name} has at most {most >> 20} MB; that of {name} has "
                    f"{file.stat().st_size >> 20} MB: save or download it again."
                )
    if not isinstance(_parsed(folder / "config.json", name), dict):
        raise CheckpointError(f"A checkpoint's config.json is a JSON object; that of {name} is none: save it again.")


def refuse_wild_rules(folder: Path, name: str) -> None:
    """Look at a tokenizer's rules before it is built.

    Raises CheckpointError for rules nested without end, or rules that make a text longer and longer.
    """
    file = folder / "tokenizer.json"
    parsed = _parsed(file, name) if file.is_file() else None
    if not isinstance(parsed, dict):
        return
    growth = 1.0
    for depth, rule in _rules({key: part for key, part in parsed.items() if key != "model"}):
        if depth > DEEPEST:
            raise CheckpointError(
                f"A tokenizer's rules lie at most {DEEPEST} deep in each other; those of {name} lie deeper: save the "
                "tokenizer that it was trained with."
            )
        growth *= _growth(rule)
        if growth > LONGEST_GROWTH:
            raise CheckpointError(
                f"A tokenizer's rules make a text at most {LONGEST_GROWTH} times as long; those of {name} make it "
                "longer: save the tokenizer that it was trained with."
            )


def _parsed(file: Path, name: str) -> Any:
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"A checkpoint's {file.name} is JSON; that of {name} cannot be read ({str(error)[:80]}): save or download "
            "it again."
        ) from error


def _rules(parsed: Any) -> Iterator[tuple[int, Any]]:
    """Every object in it, with how deep it lies; without recursion."""
    waiting = [(1, parsed)]
    while waiting:
        depth, part = waiting.pop()
        if isinstance(part, dict):
            yield depth, part
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        waiting += [(depth + 1, value) for value in inner if isinstance(value, (dict, list))]


def _growth(rule: dict[str, Any]) -> float:
    """How many times as long one rule can make a text: one that replaces, letter by letter or where nothing stood."""
    content, pattern = rule.get("content"), rule.get("pattern")
    if rule.get("type") != "Replace" or not isinstance(content, str) or not content:
        return 1.0
    letters = pattern.get("String") if isinstance(pattern, dict) else None
    if isinstance(letters, str) and letters:
        return max(1.0, len(content) / len(letters))
    return 1.0 + len(content)


# ---------------------------------------------------------------- a call's time


def distrust(tokenizer: Any) -> None:
    """Bound the time of every call of this tokenizer from now on, because it is none of ours."""
    _FOREIGN.add(tokenizer)


def split(tokenizer: Any, *texts: Any, **options: Any) -> Any:
    """`tokenizer(*texts, **options)`. Raises CheckpointError where its library fails, or it takes too long."""
    if tokenizer not in _FOREIGN:
        return tokenizer(*texts, **options)
    if tokenizer in _STUCK:
        raise _too_long()
    answers: list[Any] = []
    asking = threading.Thread(target=_ask, args=(answers, tokenizer, texts, options), name="tokenizing", daemon=True)
    asking.start()
    asking.join(SECONDS)
    if not answers:
        _STUCK.add(tokenizer)
        raise _too_long()
    answer, error = answers[0]
    if is_panic(error):
        why = (str(error).strip().splitlines() or ["it stopped"])[0][:120]
        raise CheckpointError(
            f"A tokenizer splits every text; that of this checkpoint fails on one ({why}): save the one that it was "
            "trained with."
        ) from error
    if error is not None:
        raise error
    return answer


def is_panic(error: BaseException | None) -> bool:
    """Whether the tokenizers library stopped with the class of its own, which is no Exception."""
    return error is not None and type(error).__name__ == "PanicException"


def _ask(answers: list[Any], tokenizer: Any, texts: Any, options: Any) -> None:
    try:
        answers.append((tokenizer(*texts, **options), None))
    except BaseException as error:  # handed to who asked
        answers.append((None, error))


def _too_long() -> CheckpointError:
    return CheckpointError(
        f"A tokenizer splits a text in less than {SECONDS:.0f} s; that of this checkpoint does not: its patterns take "
        "too long; save the tokenizer that it was trained with."
    )
