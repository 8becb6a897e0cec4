"""The circuit of a language model, on sentences with a word to fill in and a foil: its m, an edge by hand, refusals."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

from core.errors import InputError
from core.studies.circuits import circuit
from tests.capture.conftest import byte_level, wordpiece
from tests.studies.through_json import rows_of

NAMES = "bfgkmp"  # of single tokens, so that B is as long as A
SIZES = {"pairs": 12, "judging": 4, "control": 0, "first": 8, "margin": 0.3, "answers": "any"}


def saved(folder, kind):
    """A random language model of two layers of two heads as a checkpoint folder."""
    torch.manual_seed(5)
    tokenizer = wordpiece() if kind == "bert" else byte_level()
    if kind == "bert":
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=32,
            initializer_range=0.6,
        )
        model = BertForMaskedLM(config)
    else:
        config = GPT2Config(
            vocab_size=len(tokenizer),
            n_embd=16,
            n_layer=2,
            n_head=2,
            n_positions=64,
            initializer_range=0.6,
            bos_token_id=0,
            eos_token_id=0,
        )
        model = GPT2LMHeadModel(config)
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def lines_of(kind):
    """30 pairs: the word that differs stands before the place; answers and foils that are one piece."""
    end, words = (" [MASK] did it .", ("can", "a")) if kind == "bert" else (" can", ("it", "bag"))
    both = [(first, second) for first in NAMES for second in NAMES if first != second]
    starts = ("she saw the", "a heavy", "they saw the")
    sides = [(f"{starts[k % 3]} {a}{end}", f"{starts[k % 3]} {b}{end}") for k, (a, b) in enumerate(both)]
    return [f"{a}\t{b}\t{words[0]}\t{words[1]}" for a, b in sides]


@pytest.fixture(scope="module", params=["bert", pytest.param("gpt2", marks=pytest.mark.slow)])
def options(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "pairs.tsv").write_text("\n".join(lines_of(request.param)))
    return {
        "checkpoint": str(saved(folder / "checkpoint", request.param)),
        "pairs_file": str(folder / "pairs.tsv"),
    } | SIZES


def by_hand(options):
    """m of every A and, with the last feed-forward block's output taken from B at every place, what is left of it."""
    split = [line.split("\t") for line in Path(options["pairs_file"]).read_text().splitlines()]
    is_bert = "MASK" in split[0][0]
    kind, tokenizer = (BertForMaskedLM, wordpiece()) if is_bert else (GPT2LMHeadModel, byte_level())
    model = kind.from_pretrained(options["checkpoint"]).eval()
    module = model.bert.encoder.layer[-1].output.dense if is_bert else model.transformer.h[-1].mlp
    found, kept = [], []

    def m(text, words, hook=None):
        ids = torch.tensor(
            [[*([] if is_bert else [0]), *tokenizer(text)["input_ids"]]]
        )  # decoders see an end of text first
        place = ids[0].tolist().index(tokenizer.mask_token_id) if is_bert else -1
        pieces = [tokenizer.encode(word if is_bert else f" {word}", add_special_tokens=False)[0] for word in words]
        handle = module.register_forward_hook(hook)
        with torch.no_grad():
            logits = model(input_ids=ids).logits[0, place]
        handle.remove()
        return float(logits[pieces[0]] - logits[pieces[1]])

    for first, second, *words in split:
        other = m(second, words, lambda module, given, output: kept.append(output))
        own = m(first, words, lambda module, given, output: None)
        changed = m(first, words, lambda module, given, output: kept[-1])
        found.append((own, other, own - changed))
    return found


@pytest.mark.thorough
def test_m_is_the_word_less_its_foil_and_an_edge_is_what_hooks_say(options, monkeypatch):
    monkeypatch.setattr(circuit, "FLOOR", 1e-6)  # weights are random: some words change little
    rows, wanted = rows_of("circuit", options), by_hand(options)
    for pair in [row for row in rows if row["kind"] == "pair"]:
        own, other, _ = wanted[pair["first"]]
        assert pair["first_m"] == pytest.approx(own, abs=1e-4)
        assert pair["second_m"] == pytest.approx(other, abs=1e-4)
    (whole,) = (row for row in rows if row["kind"] == "circuit")
    decides = [row["first"] for row in rows if row["kind"] == "pair" and row["use"] == "decides"]
    (edge,) = (
        row
        for row in rows
        if row["kind"] == "edge mean" and row["name"] == "L2-feedforward to output" and row["pairs"] == "any answers"
    )
    assert whole["n"] == len(decides) == 12
    assert edge["n"] == 12
    assert edge["effect"] == pytest.approx(sum(wanted[k][2] for k in decides) / 12, abs=1e-4)
    curve = {row["size"]: row["value"] for row in rows if row["kind"] == "faithfulness" and row["order"] == "effect"}
    assert curve[max(curve)] == pytest.approx(1, abs=1e-4)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("she saw the man\tshe saw the dog\tcan\ta", r"must have exactly one \[MASK\]"),
        ("the [MASK] [MASK]\tthe [MASK] dog\tcan\ta", r"must have exactly one \[MASK\]"),
        ("the [MASK] man\tthe [MASK] dog\tvillage can\ta", "must each be one token"),
        ("the [MASK] man\tthe [MASK] dog\tcan\tcan", "A foil must differ"),
        ("the [MASK] man\tthe [MASK] dog\tcan", r"word and its foil\); line 1 has 3"),
    ],
)
def test_what_cannot_be_filled_in_is_refused_in_a_sentence(tmp_path, line, said):
    file = tmp_path / "pairs.tsv"
    file.write_text("\n".join([line] * 20))
    given = {"checkpoint": str(saved(tmp_path / "bert", "bert")), "pairs_file": str(file)} | SIZES
    with pytest.raises(InputError, match=said):
        rows_of("circuit", given)


@pytest.mark.parametrize(("tokenizer", "word", "piece"), [(wordpiece, "can", "can"), (byte_level, "it", "Ġit")])
def test_a_word_is_the_piece_that_it_is_within_a_sentence(tokenizer, word, piece):
    """The byte-level mask of RoBERTa stands for the word with the space before it, a decoder writes both."""
    checkpoint = SimpleNamespace(tokenizer=tokenizer(), causal=False)
    assert checkpoint.tokenizer.convert_ids_to_tokens(circuit.piece_of(checkpoint, word)) == piece


def test_only_pairs_without_words_need_a_classifier(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("a [MASK]\tthe [MASK]\tcan\ta")
    assert circuit.STUDY.needs_of({"pairs_file": str(file)}) == frozenset()
    file.write_text("a man\tthe man")
    assert circuit.STUDY.needs_of({"pairs_file": str(file)}) == circuit.STUDY.needs_of({}) == circuit.STUDY.needs
    file.write_text("")
    with pytest.raises(InputError, match="is empty"):
        circuit.STUDY.needs_of({"pairs_file": str(file)})
    file.write_text("a man\tthe man")
    assert not circuit.names_words(str(file))
