"""Ablation, capture and drawing, compared with TransformerLens, nnsight, BertViz and CircuitsVis on the same inputs.

Every head is zeroed in turn and the scores of all heads are captured, on pairs of MRPC (the bundled ones if GLUE is not
there) with random weights: GPT-2 small with its vocabulary head, the same without one, and BERT-base as a classifier.
Each side runs in a process of its own with the same number of threads, in turns. Peers run as their documentation
shows: batches of 32 padded to the longest, one pass per head; some heads are timed and the time is scaled. `limit` is
the ratio of multiplications: layers below the head are shared, nothing is padded, the last layer and the head of the
model are computed where they are read, and the first feed-forward product of the ablated layer comes from the head's
dimensions. `kernel` is the speed of our matrix products divided by that of the peers' on this processor.

The peers are installed into build/peers on top of this environment (pip, and npm for the scripts that BertViz loads).
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

PROJECT = Path(__file__).resolve().parents[2]
PEERS = PROJECT / "build" / "peers"
PINS = ("nnsight==0.8.1", "bertviz==1.4.1", "circuitsvis==1.43.3")
SCRIPTS = ("d3@5.7.0", "jquery@2.2.4", "requirejs@2.3.6")  # what BertViz loads from the network
GLUE = PROJECT.parent / "shared" / "data" / "glue"
BATCH, GROUPS, ROUNDS, LAYERS, HEADS, HIDDEN, DIM, WORDS = 32, 4, 3, 12, 12, 768, 64, 50257
MODELS = ("gpt2", "gpt2 without vocabulary", "bert")
SIDES = ("ours", "transformer_lens", "nnsight")
GOALS = {"ablation": 5, "capture": 2, "bertviz": 300}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=64, help="inputs (default 64)")
    parser.add_argument("--heads", type=int, default=12, help="heads timed in a peer (default 12, one a layer)")
    parser.add_argument("--parts", default="ablation,bfloat16,capture,drawing", help="what is measured")
    parser.add_argument("--models", default=",".join(MODELS))


# ---------------------------------------------------------------- the sides, each in its own process


def opened(folder: Path, name: str, dtype: str) -> Any:
    """A model of transformers with the stored random weights."""
    import torch
    from transformers import BertForSequenceClassification, GPT2LMHeadModel

    made = BertForSequenceClassification if name == "bert" else GPT2LMHeadModel
    model = made.from_pretrained(folder / name.split()[0], attn_implementation="eager").eval().requires_grad_(False)
    if name == MODELS[1]:
        model.lm_head = scores_of(model)
    return model.to(getattr(torch, dtype))


def scores_of(model: Any) -> Any:
    """A classifier of two classes, the same on every side."""
    import torch

    linear = torch.nn.Linear(HIDDEN, 2, bias=False)
    linear.weight.data = torch.randn(2, HIDDEN, generator=torch.Generator().manual_seed(1)) * 0.02
    return linear.requires_grad_(False).to(model.dtype)


def read_inputs(folder: Path) -> list[list[int]]:
    return json.loads((folder / "inputs.json").read_text())


def padded(inputs: list[list[int]]) -> Iterator[tuple[Any, Any, list[int]]]:
    """Token ids, attention mask and last positions of each batch."""
    import torch

    for start in range(0, len(inputs), BATCH):
        some = inputs[start : start + BATCH]
        most = max(map(len, some))
        ids = torch.tensor([ids + [0] * (most - len(ids)) for ids in some])
        mask = torch.tensor([[1] * len(ids) + [0] * (most - len(ids)) for ids in some])
        yield ids, mask, [len(ids) - 1 for ids in some]


def scores(weights: Any, length: int, *, causal: bool) -> Any:
    """The scores of the maps page [score, ...]."""
    from core.scoring.registry import head_scores

    return np.stack([*head_scores(weights, first=0, separators=(length - 1,), causal=causal).values()])


class TransformerLens:
    """Hooks on a bridge, as the documentation of TransformerLens 4 shows."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module
        from transformers import BertForMaskedLM

        self.model, self.bert, kind = opened(folder, name, dtype), name == "bert", "GPT2LMHeadModel"
        if self.bert:  # its bridge wants a language model: the small classifier takes the vocabulary's place
            import torch

            classifier, kind = self.model, "BertForMaskedLM"
            self.model = BertForMaskedLM(classifier.config).eval().requires_grad_(False).to(classifier.dtype)
            self.model.bert.load_state_dict(classifier.bert.state_dict(), strict=False)
            self.model.cls.predictions.decoder = torch.nn.Linear(HIDDEN, 2).to(classifier.dtype)
            self.classify = lambda last: classifier.classifier(classifier.bert.pooler(last))
        self.bridge = build_bridge_from_module(self.model, kind, hf_config=self.model.config)

    def ablated(self, batch: tuple, layer: int, head: int) -> Any:
        ids, mask, last = batch

        def zero(value: Any, hook: Any) -> Any:
            value[:, :, head] = 0
            return value

        hooks: list[tuple[str, Any]] = [(f"blocks.{layer}.attn.hook_z", zero)]
        kept: list[Any] = []
        if self.bert:
            hooks.append((f"blocks.{LAYERS - 1}.hook_out", lambda value, hook: kept.append(value)))
        logits = self.bridge.run_with_hooks(ids, attention_mask=mask, fwd_hooks=hooks)
        return self.classify(kept[0]) if self.bert else logits[range(len(last)), last]

    def maps(self, batch: tuple) -> list[Any]:
        ids, mask, _ = batch
        _, cache = self.bridge.run_with_cache(
            ids, attention_mask=mask, names_filter=lambda name: name.endswith("hook_pattern")
        )
        return [cache[f"blocks.{layer}.attn.hook_pattern"] for layer in range(LAYERS)]


class Nnsight:
    """Traces, as the documentation of nnsight shows."""

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        from nnsight import NNsight

        self.model, self.bert = NNsight(opened(folder, name, dtype)), name == "bert"
        layers = self.model.bert.encoder.layer if self.bert else self.model.transformer.h
        self.mixed = [layer.attention.E_output.dense if self.bert else layer.attn.c_proj for layer in layers]
        self.attention = [layer.attention.self if self.bert else layer.attn for layer in layers]

    def ablated(self, batch: tuple, layer: int, head: int) -> Any:
        ids, mask, last = batch
        places, model, at, bert = range(len(last)), self.model, self.mixed[layer], self.bert
        with model.trace(input_ids=ids, attention_mask=mask):
            mixed = at.input
            mixed[..., head * DIM : (head + 1) * DIM] = 0
            logits = model.output.logits if bert else model.output.logits[places, last]
            logits.save()
        return logits

    def maps(self, batch: tuple) -> list[Any]:
        import nnsight

        ids, mask, _ = batch
        model, attention = self.model, self.attention
        with model.trace(input_ids=ids, attention_mask=mask):
            found = nnsight.save([])
            for one in attention:
                found.append(one.output[1])
        return found


class Peer:
    """Runs a peer over padded batches; the results have the form of ours."""

    def __init__(self, folder: Path, inputs: list[list[int]], name: str, dtype: str, made: Callable) -> None:
        self.batches, self.inputs, self.causal = list(padded(inputs)), inputs, name != "bert"
        self.way = made(folder, name, dtype)

    def ablate(self, layer: int, head: int) -> Any:
        import torch

        return torch.cat([self.way.ablated(batch, layer, head) for batch in self.batches]).float().numpy()

    def capture(self) -> Any:
        found = []
        for batch in self.batches:
            maps = [one.numpy() for one in self.way.maps(batch)]
            for row, last in enumerate(batch[2]):
                own = np.stack([one[row, :, : last + 1, : last + 1] for one in maps])
                found.append(scores(own, last + 1, causal=self.causal))
        return np.stack(found)


class Ours:
    """The ablation sweep, and a pass with the scores of the maps page."""

    def __init__(self, folder: Path, inputs: list[list[int]], name: str, dtype: str) -> None:
        from transformers import GPT2ForSequenceClassification

        from core.models.checkpoint import Checkpoint
        from tests.benchmarks.capture import SegmentedNames

        model = opened(folder, name, "float32")
        model.set_attn_implementation("sdpa")
        if name == MODELS[1]:
            whole, model = model, GPT2ForSequenceClassification(model.config).eval().requires_grad_(False)
            model.transformer, model.score = whole.transformer, whole.lm_head
            model.config.pad_token_id = WORDS - 1  # in no input
        self.checkpoint = Checkpoint(name=name, model=model, tokenizer=SegmentedNames())
        self.encodings, self.causal = [encoded(ids) for ids in inputs], name != "bert"
        self.place, self.dtype = -1 if name == "gpt2" else None, dtype

    def sweep(self, start: int, stop: int, kept: list[int]) -> Any:
        from core.capture.sweeping import Computing, every_head, sweep

        computing = Computing(dtype=self.dtype, place=self.place)
        some = self.encodings[start:stop]
        found = sweep(self.checkpoint, some, every_head(LAYERS, HEADS), "zero", computing=computing)
        if not found.fast or found.dtype != self.dtype:
            raise RuntimeError(f"computed in {found.dtype}, layers shared: {found.fast}")
        return found.changed[kept].numpy()

    def capture(self) -> Any:
        from core.capture.running import run

        found: dict[int, list[Any]] = {}

        class Scores:
            """Get all layers of a batch at once, like the statistics of the studies; large maps by layer."""

            def update_layers(_, weights: Any, inputs: list[int]) -> None:  # noqa: N805
                some = scores(weights, weights.shape[-1], causal=self.causal)
                for row, k in enumerate(inputs):
                    found[k] = list(some[:, row].reshape(len(some), LAYERS, HEADS).swapaxes(0, 1))

            def update(_, layer: int, weights: Any, inputs: list[int]) -> None:  # noqa: N805
                some = scores(weights, weights.shape[-1], causal=self.causal)
                for row, k in enumerate(inputs):
                    found.setdefault(k, []).append(some[:, row])

        run(self.checkpoint, self.encodings, [Scores()])
        return np.stack([np.stack(found[k], 1) for k in range(len(found))])

    def kernel(self) -> float:
        """Speed of our matrix products divided by that of F.linear."""
        import torch

        from tests.benchmarks.sweep import rates

        plain, own = rates(600, getattr(torch, self.dtype))
        return max(own() for _ in range(5)) / max(plain() for _ in range(5))


def encoded(ids: list[int]) -> Any:
    from core.models.encoding import Encoding

    length = len(ids)
    return Encoding("x" * length, None, tuple(ids), (0,) * length, ("x",) * length, ((0, 1),) * length,
                    (0,) * length, 0, (length - 1,))  # fmt: skip


def serve(side: str, folder: Path) -> None:
    """Answer requests from standard input, one JSON object a line, with seconds and the file of the result."""
    import torch

    torch.set_grad_enabled(False)
    inputs, current = read_inputs(folder), None
    peers = {"transformer_lens": TransformerLens, "nnsight": Nnsight}
    for line in sys.stdin:
        request = json.loads(line)
        call, arguments = request["call"], request["arguments"]
        if call == "open":
            made = partial(Peer, made=peers[side]) if side in peers else Ours
            current = None
            current = made(folder, inputs, *arguments)
            answer: dict[str, object] = {}
        else:
            began = time.perf_counter()
            found = getattr(current, call)(*arguments)
            answer = {"seconds": time.perf_counter() - began, "file": str(folder / f"{side}.npy")}
            np.save(str(answer["file"]), found)
        sys.stderr.flush()
        print(f"answer {json.dumps(answer)}", flush=True)


class Side:
    """A process that runs one side."""

    def __init__(self, name: str, folder: Path) -> None:
        python = sys.executable if name == "ours" else str(PEERS / "bin" / "python")
        command = [python, "-m", "tests.benchmarks.peers", name, str(folder)]
        self.name, self.log = name, (folder / f"{name}.log").open("w+")
        self.process = subprocess.Popen(command, cwd=PROJECT, stdin=-1, stdout=-1, stderr=self.log, text=True)

    def ask(self, call: str, *arguments: object) -> tuple[float, Any]:
        """Return the seconds that a call took, and its result."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"call": call, "arguments": arguments}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("answer "):
                answer = json.loads(line.removeprefix("answer "))
                return answer.get("seconds", 0.0), np.load(answer["file"]) if answer else None
        self.log.seek(0)
        raise RuntimeError(f"{self.name} ended at {call}: {self.log.read()[-2000:]}")


# ---------------------------------------------------------------- arithmetic


def layer(length: int) -> int:
    """Multiplications of a layer, per token."""
    return 12 * HIDDEN**2 + 2 * length * HIDDEN


def padded_pass(lengths: list[int], words: int) -> int:
    """Multiplications of a pass over padded batches."""
    batches = (lengths[start : start + BATCH] for start in range(0, len(lengths), BATCH))
    return sum(len(some) * max(some) * (LAYERS * layer(max(some)) + words) for some in batches)


def captured(lengths: list[int], name: str) -> float:
    """Multiplications of a padded pass divided by those up to the maps of the last layer without padding."""
    least = sum(n * ((LAYERS - 1) * layer(n) + 3 * HIDDEN**2 + n * HIDDEN) for n in lengths)
    return padded_pass(lengths, WORDS * HIDDEN if name == "gpt2" else 0) / least


def multiplications(lengths: list[int], name: str) -> tuple[float, float]:
    """Multiplications of every head ablated in turn: in padded passes, and at least."""
    h, words = HIDDEN, WORDS * HIDDEN if name == "gpt2" else 0
    passes, least = padded_pass(lengths, words), 0
    for n in lengths:
        begun = n * (DIM * h + DIM * 4 * h + 4 * h**2)
        streams = n * layer(n) * (LAYERS - 1 + HEADS * sum(range(LAYERS - 1))) + HEADS * (LAYERS - 1) * begun
        read = 2 * h**2 + 2 * HEADS * n * h  # scores and mixtures at one position
        least += streams + (1 + HEADS * (LAYERS - 1)) * read + (1 + HEADS * LAYERS) * (10 * h**2 + words)
    return float(passes * LAYERS * HEADS), float(least)


# ---------------------------------------------------------------- the parent


def environment() -> None:
    """Install the peers on top of this environment, and the scripts that BertViz loads."""
    if not (PEERS / "ready").is_file():
        import site

        subprocess.run([sys.executable, "-m", "venv", "--clear", str(PEERS)], check=True)
        (packages,) = PEERS.glob("lib/python*/site-packages")
        below = "; ".join(f"site.addsitedir({folder!r})" for folder in site.getsitepackages())
        (packages / "_below.pth").write_text(f"import site; {below}\n")
        pip = [str(PEERS / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", *PINS]
        subprocess.run(pip, check=True)
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(PEERS / "npm"), *SCRIPTS]
        subprocess.run(npm, check=True)
        (PEERS / "ready").write_text(" ".join([*PINS, *SCRIPTS]))


def write_inputs(folder: Path, count: int) -> list[int]:
    """Token ids of pairs of MRPC, and random weights; returns the lengths."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel

    from core.models.opening import open_checkpoint
    from core.tasks.glue import read_rows

    tokens = open_checkpoint("atlas-encoder")
    rows = read_rows("mrpc", "dev", folder=GLUE if GLUE.is_dir() else None, limit=count)
    inputs = [list(tokens.encode(row.text, row.pair).ids) for row in rows]
    (folder / "inputs.json").write_text(json.dumps(inputs))
    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config()).save_pretrained(folder / "gpt2")
    BertForSequenceClassification(BertConfig(initializer_range=0.04)).save_pretrained(folder / "bert")
    return [len(ids) for ids in inputs]


def ablation(sides: dict[str, Side], lengths: list[int], name: str, heads: int, dtype: str) -> dict[str, object]:
    """Seconds of every head in turn on every side, their ratios and the largest difference of logits."""
    import torch

    groups = min(GROUPS, len(lengths))
    chosen = [turn * LAYERS // heads * HEADS + (5 * turn) % HEADS for turn in range(heads)]
    bounds = [len(lengths) * k // groups for k in range(groups + 1)]
    for side in sides.values():
        side.ask("open", name, dtype)
        side.ask("sweep", 0, 1, [0]) if side.name == "ours" else side.ask("ablate", 0, 0)
    spent = dict.fromkeys(sides, 0.0)
    found: dict[str, list[Any]] = {side: [] for side in sides}
    for turn in range(max(heads, groups)):
        for side in sides.values():
            if side.name == "ours" and turn < groups:
                seconds, result = side.ask("sweep", bounds[turn], bounds[turn + 1], chosen)
            elif side.name != "ours" and turn < heads:
                seconds, result = side.ask("ablate", *divmod(chosen[turn], HEADS))
            else:
                continue
            spent[side.name] += seconds
            found[side.name].append(result)
    own = np.concatenate(found.pop("ours"), 1)
    passes, least = multiplications(lengths, name)
    _, kernel = sides["ours"].ask("kernel")
    figures: dict[str, object] = {"ours, s": spent["ours"], "limit": passes / least, "kernel": float(kernel)}
    figures["GFLOP/s of the least work"] = 2 * least / spent["ours"] / 1e9
    for peer, results in found.items():
        ratio = spent[peer] * LAYERS * HEADS / heads / spent["ours"]
        figures |= {f"{peer}, s": spent[peer] * LAYERS * HEADS / heads, f"{peer} / ours": ratio}
        figures[f"{peer} / ours / limit"] = ratio * least / passes
        figures[f"{peer} / ours / limit / kernel"] = ratio * least / passes / float(kernel)
        figures[f"{peer}, largest difference of logits"] = float(np.abs(np.stack(results) - own).max())
    goal = f"at least {GOALS['ablation']}" if name == "gpt2" else "at least 0.9 x limit"
    return {f"{name}, {dtype}, {key}": value for key, value in figures.items()} | {
        f"{name}, {dtype}, goal": goal if dtype == "float32" else "none",
        f"{name}, {dtype}, largest logit": float(np.abs(own).max()),
        f"{name}, {dtype}, threads": torch.get_num_threads(),
    }


def capture(sides: dict[str, Side], lengths: list[int], name: str) -> dict[str, object]:
    """Seconds of capturing all head scores on every side: the median of interleaved rounds."""
    for side in sides.values():
        side.ask("open", name, "float32")
        side.ask("capture")
    rounds = [{side.name: side.ask("capture") for side in sides.values()} for _ in range(ROUNDS)]
    seconds = {side: statistics.median(turn[side][0] for turn in rounds) for side in sides}
    _, kernel = sides["ours"].ask("kernel")
    figures: dict[str, object] = {f"{name}, capture, ours, s": seconds["ours"]}
    figures |= {f"{name}, capture, limit": captured(lengths, name), f"{name}, capture, kernel": float(kernel)}
    for peer in seconds.keys() - {"ours"}:
        difference = np.nanmax(np.abs(rounds[0][peer][1] - rounds[0]["ours"][1]))
        figures[f"{name}, capture, {peer} / ours"] = seconds[peer] / seconds["ours"]
        figures[f"{name}, capture, {peer}, largest difference of scores"] = float(difference)
    return figures | {f"{name}, capture, goal": f"at least {GOALS['capture']}"}


UNLIMITED = ("--disable-frame-rate-limit", "--disable-gpu-vsync")  # else our time is a multiple of 16.7 ms
MARKS = {"bertviz": "rect.attn_background", "circuitsvis": "canvas"}
DRAWN = """async (mark) => {
  const drawn = (one) => !one.getContext || !one.getContext("2d") ||
    one.getContext("2d").getImageData(0, 0, one.width, one.height).data.some(Boolean);
  for (;;) {
    await new Promise((done) => requestAnimationFrame(done));
    const found = document.querySelectorAll(mark);
    if (found.length >= 144 && drawn(found[found.length - 1])) break;
  }
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
DRAWINGS = {
    "bertviz": """
from bertviz import model_view
page = model_view([torch.tensor(one)[None] for one in maps], tokens, html_action="return").data""",
    "circuitsvis": """
from circuitsvis.attention import attention_patterns
page = attention_patterns(tokens=tokens, attention=maps.reshape(-1, *maps.shape[2:])).local_src""",
}


def drawing(length: int = 64) -> dict[str, object]:
    """Seconds until 144 maps are drawn in chromium: ours (the median of several draws), BertViz's model view and
    CircuitsVis's attention patterns."""
    from tests.benchmarks.grid import measure, payload
    from tests.pages.browsing import browsing

    scripts = PEERS / "npm" / "node_modules"
    served = {
        "require": scripts / "requirejs" / "require.js",
        "jquery": scripts / "jquery" / "dist" / "jquery.min.js",
        "d3": scripts / "d3" / "dist" / "d3.min.js",
    }

    def answer(route: Any) -> None:
        name = next((name for name in served if name in route.request.url), None)
        route.fulfill(path=served[name]) if name else route.abort()

    figures: dict[str, object] = {}
    with browsing(*UNLIMITED) as browser:
        ours = measure(browser, payload(length))["painted_ms"]
    figures["drawing, ours, ms"] = ours
    with browsing() as browser, tempfile.TemporaryDirectory() as folder:
        for peer, made in DRAWINGS.items():
            file = Path(folder) / f"{peer}.html"
            code = f"""
import numpy as np, torch
raw = np.random.default_rng(0).standard_normal((12, 12, {length}, {length})).astype(np.float32) * 3
maps = np.exp(raw - raw.max(-1, keepdims=True)); maps /= maps.sum(-1, keepdims=True)
tokens = [f"token{{k}}" for k in range({length})]
{made}
open({str(file)!r}, "w").write("<!doctype html><body>" + page)"""
            subprocess.run([str(PEERS / "bin" / "python"), "-c", code], check=True, capture_output=True)
            window = browser.new_page(viewport={"width": 1280, "height": 1300})
            window.set_default_timeout(300_000)
            window.route(re.compile("^https?://"), answer)
            began = time.perf_counter()
            window.goto(file.as_uri(), wait_until="commit")
            window.evaluate(DRAWN, MARKS[peer])
            figures[f"drawing, {peer}, s"] = time.perf_counter() - began
            figures[f"drawing, {peer} / ours"] = 1000 * (time.perf_counter() - began) / ours
            window.close()
    return figures | {"drawing, goal": f"BertViz at least {GOALS['bertviz']}"}


def main(rows: int, heads: int, parts: str, models: str) -> dict[str, object]:
    environment()
    wanted, figures = set(parts.split(",")), dict[str, object]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lengths = write_inputs(folder, rows)
        figures |= {"rows": rows, "tokens": sum(lengths), "heads timed in a peer": heads}
        sides = {side: Side(side, folder) for side in SIDES} if wanted - {"drawing"} else {}
        try:
            for model in models.split(","):
                if "ablation" in wanted:
                    figures |= ablation(sides, lengths, model, heads, "float32")
                if "capture" in wanted and model != MODELS[1]:
                    figures |= capture(sides, lengths, model)
            if "bfloat16" in wanted:
                figures |= ablation(sides, lengths, "gpt2", max(1, heads // 4), "bfloat16")
        finally:
            for side in sides.values():
                side.process.kill()
                side.process.wait()
                side.log.close()
    return figures | (drawing() if "drawing" in wanted else {})


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
