"""Train the bundled English spaCy pipeline on a Universal Dependencies treebank.

    python -m data.recipes.english train --treebank UD_English-EWT --work DIR --out data/models/atlas-english
    python -m data.recipes.english test --treebank UD_English-EWT --pipeline data/models/atlas-english

tok2vec (small hash embeddings), tagger (Penn tags), morphologizer (UPOS only) and parser (UD labels) share one
encoder. Texts are split by spaCy's own tokenizer and aligned to the gold words, so what is trained on is what is
met later. A sixth of the sentences are seen in lower case, which SST-2's are. The best pipeline on dev is kept.
Run the same command again after an interruption: it starts from the last saved weights and step (spaCy does not
save the optimizer's averages, so those begin anew).
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc, Token
from spacy.training import Example
from spacy.training.batchers import minibatch_by_words

from core.tasks.conllu import GoldSentence, read_conllu
from core.tasks.features import TaggedWord

FILES = {split: f"en_ewt-ud-{split}.conllu" for split in ("train", "dev", "test")}


@dataclass(frozen=True)
class Recipe:
    """What is trained and how; written into the pipeline's meta.json and model card."""

    width: int = 96
    depth: int = 4
    rows: tuple[int, ...] = (5000, 1500, 2500, 2500)  # NORM, PREFIX, SUFFIX, SHAPE
    hidden: int = 64
    dropout: float = 0.15
    rate: float = 0.0015
    warm_up_steps: int = 200
    steps: int = 4500
    batch_words: int = 1000
    lower_cased: float = 1 / 6
    evaluate_every: int = 300
    seed: int = 0

    def rate_at(self, step: int) -> float:
        """Linear warm-up, then linear fall to a twentieth."""
        if step < self.warm_up_steps:
            return self.rate * (step + 1) / self.warm_up_steps
        left = 1 - (step - self.warm_up_steps) / (self.steps - self.warm_up_steps)
        return self.rate * max(left, 0.05)


def config(recipe: Recipe) -> dict:
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": recipe.width}
    tagger = {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}
    parser = {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": "parser",
        "extra_state_tokens": False,
        "hidden_width": recipe.hidden,
        "maxout_pieces": 2,
        "use_upper": True,
        "tok2vec": listener,
    }
    embed = {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": recipe.width,
        "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
        "rows": list(recipe.rows),
        "include_static_vectors": False,
    }
    encode = {
        "@architectures": "spacy.MaxoutWindowEncoder.v2",
        "width": recipe.width,
        "depth": recipe.depth,
        "window_size": 1,
        "maxout_pieces": 3,
    }
    tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    return {
        "nlp": {"lang": "en", "pipeline": ["tok2vec", "tagger", "morphologizer", "parser"]},
        "components": {
            "tok2vec": {"factory": "tok2vec", "model": tok2vec},
            "tagger": {"factory": "tagger", "model": tagger},
            "morphologizer": {"factory": "morphologizer", "model": tagger},
            "parser": {"factory": "parser", "model": parser, "min_action_freq": 20},
        },
    }


# ---------------------------------------------------------------- gold


def reference(nlp: Language, sentences: list[GoldSentence], *, lower: bool = False) -> Doc:
    """Gold words of a few sentences as one Doc; words that share characters become the one that governs them."""
    words, spaces, tags, poses, deps, heads = [], [], [], [], [], []
    for sentence in sentences:
        base, merged = len(words), _merged(sentence.words)
        place = {k: number for number, (_, members) in enumerate(merged) for k in members}
        for number, (word, members) in enumerate(merged):
            text = sentence.text[word.start : word.end]
            words.append(text.lower() if lower else text)
            last = number + 1 == len(merged)
            spaces.append(last or merged[number + 1][0].start > word.end)
            tags.append(word.tag)
            poses.append(word.pos)
            itself = (k for k, other in enumerate(sentence.words) if other is word)
            head = next(itself) if word.dep == "root" else word.head
            deps.append("ROOT" if word.dep == "root" else word.dep)
            heads.append(base + (number if head in members else place[head]))
    return Doc(nlp.vocab, words=words, spaces=spaces, tags=tags, pos=poses, deps=deps, heads=heads)


def _merged(words: tuple[TaggedWord, ...]) -> list[tuple[TaggedWord, list[int]]]:
    """Runs of words with the same characters, each as its governing word and the numbers of its members."""
    groups: list[list[int]] = []
    for k, word in enumerate(words):
        if groups and words[groups[-1][0]].start == word.start:
            groups[-1].append(k)
        else:
            groups.append([k])
    return [(next((words[k] for k in group if words[k].head not in group), words[group[0]]), group) for group in groups]


def groups_of(sentences: list[GoldSentence], randomness: random.Random) -> list[list[GoldSentence]]:
    """Runs of 1 to 3 sentences of one document, mostly single ones, as GLUE's inputs are."""
    groups: list[list[GoldSentence]] = []
    size = 1
    for sentence in sentences:
        if groups and len(groups[-1]) < size and groups[-1][0].document == sentence.document:
            groups[-1].append(sentence)
        else:
            groups.append([sentence])
            size = randomness.choices([1, 2, 3], [0.6, 0.25, 0.15])[0]
    return groups


def examples(nlp: Language, sentences: list[GoldSentence], recipe: Recipe, seed: int) -> list[Example]:
    """One epoch: newly grouped, newly lower-cased, shuffled."""
    randomness = random.Random(seed)
    groups = groups_of(sentences, randomness)
    randomness.shuffle(groups)
    made = []
    for group in groups:
        gold = reference(nlp, group, lower=randomness.random() < recipe.lower_cased)
        made.append(Example(nlp.make_doc(gold.text.rstrip()), gold))
    return made


# ---------------------------------------------------------------- training


def batches(nlp: Language, sentences: list[GoldSentence], recipe: Recipe, start: int) -> Iterator[list[Example]]:
    epoch = start
    while True:
        yield from minibatch_by_words(examples(nlp, sentences, recipe, recipe.seed + epoch), size=recipe.batch_words)
        epoch += 1


def train(treebank: Path, work: Path, out: Path, recipe: Recipe) -> None:
    work.mkdir(parents=True, exist_ok=True)
    gold = {split: read_conllu(treebank / FILES[split]) for split in ("train", "dev")}
    state_file, last = work / "state.json", work / "last"
    state = (
        json.loads(state_file.read_text(encoding="utf-8"))
        if state_file.exists()
        else {"step": 0, "best": 0.0, "seconds": 0.0}
    )
    spacy.util.fix_random_seed(recipe.seed + state["step"])
    if last.exists():
        nlp = spacy.load(last)
        optimizer = nlp.resume_training()
    else:
        nlp = spacy.util.load_model_from_config(config(recipe), auto_fill=True)
        first = examples(nlp, gold["train"], recipe, recipe.seed)
        optimizer = nlp.initialize(lambda: first)
    began, losses = time.time(), {}
    for batch in batches(nlp, gold["train"], recipe, state["step"]):
        optimizer.learn_rate = recipe.rate_at(state["step"])
        nlp.update(batch, drop=recipe.dropout, sgd=optimizer, losses=losses)
        state["step"] += 1
        if state["step"] % recipe.evaluate_every == 0 or state["step"] >= recipe.steps:
            nlp.to_disk(last)
            with nlp.use_params(optimizer.averages):
                figures = evaluate(nlp, gold["dev"])
                score = (figures["xpos"] + 2 * figures["las"]) / 3
                if score > state["best"]:
                    state["best"] = score
                    finish(nlp, out, recipe, {"dev": figures, "step": state["step"]})
            seconds = state["seconds"] + time.time() - began
            state_file.write_text(json.dumps({**state, "seconds": seconds}), encoding="utf-8")
            print(json.dumps({**state, **figures, "seconds": round(seconds)}), flush=True)
            losses = {}
        if state["step"] >= recipe.steps:
            break


def finish(nlp: Language, out: Path, recipe: Recipe, figures: dict) -> None:
    """Write the pipeline; of the vocabulary's strings only the labels and spaCy's own stay, no word of the treebank."""
    nlp.meta["name"], nlp.meta["version"] = "atlas-english", "1.0.0"
    nlp.meta["description"] = "Tags, UPOS and UD dependencies for English; trained for Attention Atlas."
    nlp.meta["license"] = "CC BY-SA 4.0"
    nlp.meta["sources"] = [{"name": "UD English EWT v2.15", "license": "CC BY-SA 4.0"}]
    nlp.meta["performance"] = figures
    nlp.to_disk(out, exclude=["vectors", "lookups"])
    kept = set(spacy.blank("en").vocab.strings)
    for name in ("tagger", "morphologizer", "parser"):
        for label in nlp.get_pipe(name).labels:
            kept |= {label, label.partition("-")[2] or label}
    kept |= {part for label in kept for part in label.split("||")} | {"ROOT", "dep"}
    kept |= {label.removeprefix("POS=") for label in nlp.get_pipe("morphologizer").labels}
    strings = out / "vocab" / "strings.json"
    strings.write_text(json.dumps(sorted(kept), ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    (out / "recipe.json").write_text(
        json.dumps(asdict(recipe) | {"spacy": spacy.__version__}, indent=1) + "\n", encoding="utf-8"
    )


# ---------------------------------------------------------------- evaluation


def evaluate(nlp: Language, sentences: list[GoldSentence]) -> dict[str, float]:
    """Shares of gold words: found as one token; with its Penn tag, UPOS, head (uas), head and label (las).

    Sentences are given one by one and split by the pipeline's own tokenizer; a gold word that is not one token counts
    as wrong everywhere. Punctuation counts. las compares labels without their subtypes, as the CoNLL 2018 evaluation
    does; las_subtypes compares them whole. found_xpos, found_las: shares of the words that were found.
    """
    names = ("words", "xpos", "upos", "uas", "las", "las_subtypes")
    hits, total = dict.fromkeys(names, 0), 0
    for sentence, doc in zip(sentences, nlp.pipe([each.text for each in sentences], batch_size=64), strict=True):
        tokens = {(token.idx, token.idx + len(token)): token for token in doc}
        for k, word in enumerate(sentence.words):
            total += 1
            token = tokens.get((word.start, word.end))
            if token is not None:
                for name, hit in zip(names, judged(sentence, k, token), strict=True):
                    hits[name] += hit
    shares = {name: round(hit / total, 4) for name, hit in hits.items()}
    return shares | {f"found_{name}": round(hits[name] / hits["words"], 4) for name in ("xpos", "las")}


def judged(sentence: GoldSentence, k: int, token: Token) -> tuple[bool, ...]:
    """Whether word k, its tag, UPOS, head, head and label, head and whole label are right."""
    word, governor, head = sentence.words[k], sentence.words[sentence.words[k].head], token.head
    attached = (head.idx, head.idx + len(head)) == (governor.start, governor.end)
    label = token.dep_.lower()
    return (
        True,
        token.tag_ == word.tag,
        token.pos_ == word.pos,
        attached,
        attached and label.partition(":")[0] == word.dep.partition(":")[0],
        attached and label == word.dep,
    )


def missing(arguments: argparse.Namespace) -> str | None:
    """What a training or test needs and was not given, in one sentence; None when it has all."""
    needed = ("work", "out") if arguments.do == "train" else ("pipeline",)
    for name in needed:
        if getattr(arguments, name) is None:
            return f"`{arguments.do}` needs --{name}, which was not given."
    names = FILES.values() if arguments.do == "train" else [FILES[arguments.split]]
    for name in names:
        if not (arguments.treebank / name).is_file():
            return f"--treebank is a folder with {name} of UD English EWT; {arguments.treebank} has none: name it."
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("do", choices=["train", "test"])
    parser.add_argument("--treebank", type=Path, required=True, help="folder with en_ewt-ud-{train,dev,test}.conllu")
    parser.add_argument("--work", type=Path, help="folder for the last weights")
    parser.add_argument("--out", type=Path, help="folder for the best pipeline")
    parser.add_argument("--pipeline", type=Path, help="the pipeline to test")
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    parser.add_argument("--split", default="test", choices=list(FILES))
    arguments = parser.parse_args()
    if why := missing(arguments):
        parser.error(why)
    if arguments.do == "train":
        train(arguments.treebank, arguments.work, arguments.out, Recipe(steps=arguments.steps))
    else:
        print(
            json.dumps(
                evaluate(spacy.load(arguments.pipeline), read_conllu(arguments.treebank / FILES[arguments.split]))
            )
        )


if __name__ == "__main__":
    main()
