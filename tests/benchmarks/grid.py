"""144 maps of 64 and 128 tokens: from the payload in the browser to the painted canvas, beside its peers.

The workbench's own scripts run in chromium on a blank page without Streamlit, the payload of a BERT-base-sized model is
handed to them, and the time is taken when the frame after painting begins. Forward pass and transfer are
left out, as they are in the peers' figures.
"""

import base64
import statistics

import numpy as np

from core.attention import AttentionMaps
from core.capture.long_maps import block_of
from core.drawing.payload import as_bytes, packed, workbench_script, workbench_style
from core.scoring.registry import head_scores
from tests.pages.browsing import browsing

LAYERS, HEADS, ROUNDS = 12, 12, 15
LARGE = ((24, 16, 512), (16, 32, 4096))  # layers, heads, tokens
PEERS = {  # seconds on this class of machine (2 vCPU, headless chromium), from the project's own measurements, 2026-11
    "bertviz_model_view": {64: 14.0, 128: 79.0},  # the faster end of 14 to 17 s
    "circuitsvis": {64: 21.0},
}
PAGE = """<!doctype html><body style="--st-text-color:#22262B;--st-background-color:#FDFCFA"><div id="here">
<div class="root" style="width:1180px"></div></div>"""
RUN = """async ({payload, again}) => {
  const bytes = Uint8Array.from(atob(payload), (c) => c.charCodeAt(0));
  const here = document.getElementById("here");
  if (again) here.querySelector(".root").replaceWith(Object.assign(document.createElement("div"), {className: "root"}));
  const start = performance.now();
  const root = here.querySelector(".root"), workbench = startWorkbench(root, { tell: () => {}, room: () => 1200 });
  openPayload(workbench, bytes, themeOf(root));
  const drawn = performance.now();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return { drawn: drawn - start, painted: performance.now() - start };
}"""


def payload(length: int, layers: int = LAYERS, heads: int = HEADS, block: int = 1) -> bytes:
    """Maps of a model, of BERT-base's size unless said otherwise: sharp and flat rows, every value different.

    block: tokens of a row and of a column, of what is drawn of longer inputs; then `length` is in blocks.
    """
    raw = np.random.default_rng(0).standard_normal((layers, heads, length, length)).astype(np.float32) * 3
    weights = np.exp(raw - raw.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    maps = AttentionMaps(weights, tuple(f"token{k}" for k in range(length)), (0,) * length)
    scores = head_scores(maps.weights, first=0, separators=[length - 1], causal=False)
    pane = {
        "title": "random",
        "layers": layers,
        "heads": heads,
        "length": length,
        "tokens": list(maps.tokens),
        "causal": False,
        "signed": False,
        "offset": 0,
        "block": block,
        "scores": {
            name: {"label": name, "meaning": "", "seen": "", "even": 0, "values": values.ravel().round(5).tolist()}
            for name, values in scores.items()
        },
    }
    header = {
        "id": f"{layers}x{heads}x{length}",
        "panes": [pane],
        "caption": "",
        "note": "",
        "usual": {"head": "L1H1"},
        "opened": {},
        "file": "maps",
    }
    return packed(header, [as_bytes(weights)])


def main() -> dict[str, object]:
    figures: dict[str, object] = {"maps": LAYERS * HEADS}
    with browsing() as browser:
        for length in (64, 128):
            measured = measure(browser, payload(length))
            for name, value in measured.items():
                figures[f"{name}_{length}"] = value
            for peer, seconds in PEERS.items():
                if length in seconds:
                    figures[f"times_faster_than_{peer}_{length}"] = seconds[length] * 1000 / measured["painted_ms"]
        for layers, heads, tokens in LARGE:  # as the page shows them: block maxima, from 257 tokens on
            block = block_of(tokens)
            measured = measure(browser, payload(-(-tokens // block), layers, heads, block))
            figures |= {f"{name}_{layers}x{heads}_{tokens}": measured[name] for name in ("payload_mb", "painted_ms")}
    return figures


def measure(browser, data: bytes) -> dict[str, float]:
    """First paint, then the median of ROUNDS fresh mounts."""
    window = browser.new_page(viewport={"width": 1280, "height": 1300})
    window.set_content(PAGE)
    window.add_style_tag(content=workbench_style())
    window.add_script_tag(content=workbench_script())
    text = base64.b64encode(data).decode()
    first = window.evaluate(RUN, {"payload": text, "again": False})
    rounds = [window.evaluate(RUN, {"payload": text, "again": True}) for _ in range(ROUNDS)]
    painted = [one["painted"] for one in rounds]
    window.close()
    return {
        "payload_mb": len(data) / 1e6,
        "first_painted_ms": first["painted"],
        "painted_ms": statistics.median(painted),
        "painted_p90_ms": sorted(painted)[int(0.9 * len(painted))],
        "drawn_ms": statistics.median(one["drawn"] for one in rounds),
    }
