
// All heads of one pane: their names, their order, where each lies, how they are drawn, and what a screen reader hears.
// A pane is one stack of maps: a checkpoint on an input, or the difference of two.

const GAP = 3, LARGEST_TILE = 150, ONLY_TILE = 48, SAVED_SCALE = 2; // pixels; of the one map of a pane, the enlarged one is read

// "L1H2", or of an encoder-decoder "Enc L1H2"; "Layer 1" where a map is of all its heads.
const nameOf = (pane, index) => pane.named || (pane.whole ? `Layer ${index + 1}` : "") || `${pane.part ? pane.part + " " : ""}L${Math.floor(index / pane.heads) + 1}H${(index % pane.heads) + 1}`;

// The same without the stack: what the view keeps, since a model with other layers or heads has other indexes.
const placeNameOf = (pane, index) => nameOf({ ...pane, part: "" }, index);

// The index of a head of the view in this pane; null if the pane has no such head.
const headIn = (pane, name) => (name === null ? null : indexOf(pane, name));

// The name of a head as it is told and written, with its stack if it has one.
const fullName = ({ panes }, name) => {
  const pane = panes.find((one) => headIn(one, name) !== null) || panes[0], index = headIn(pane, name);
  return index === null ? name : nameOf(pane, index);
};

// The layers that have attention, and the indexes of their heads: hybrids have other layers between them.
const layersOf = (pane) => (pane.attending.length ? pane.attending : [...Array(pane.layers).keys()]);
const indexesOf = (pane) => layersOf(pane).flatMap((layer) => [...Array(pane.heads).keys()].map((head) => layer * pane.heads + head));

const rangeOf = (pane) => `${nameOf(pane, indexesOf(pane)[0])} to ${nameOf(pane, indexesOf(pane).at(-1))}`;

function indexOf(pane, name) {
  if (pane.named) return name === pane.named || name === placeNameOf(pane, 0) ? 0 : null;
  const layer = pane.whole && Number((/^\s*l(?:ayer)?\s*(\d+)\s*$/i.exec(name || "") || [])[1]);
  if (pane.whole) return layersOf(pane).includes(layer - 1) ? layer - 1 : null;
  const parts = /^\s*(enc|dec|cross)?\s*l\s*(\d+)\s*[-. ]?\s*h\s*(\d+)\s*$/i.exec(name || "");
  if (!parts || (parts[1] && parts[1].toLowerCase() !== (pane.part || "").toLowerCase())) return null;
  const [row, head] = [Number(parts[2]) - 1, Number(parts[3]) - 1];
  return layersOf(pane).includes(row) && head >= 0 && head < pane.heads ? row * pane.heads + head : null;
}

// The heads as drawn: {index, faint}; by layers every head keeps its place, highest first drops those below.
function ordered(pane, view) {
  const all = indexesOf(pane), score = pane.scores[view.score];
  if (!score) return all.map((index) => ({ index, faint: false }));
  const { values } = score, kept = (index) => values[index] !== null && values[index] >= view.least;
  if (view.show === "layers") return all.map((index) => ({ index, faint: !kept(index) }));
  return all.filter(kept).sort((a, b) => values[b] - values[a] || a - b).map((index) => ({ index, faint: false }));
}

/** @type {(pane: any) => [queries: number, keys: number]} */
const sides = (pane) => [pane.length, pane.keys];
const areaOf = (pane) => pane.length * pane.keys;
// Cells that say nothing: the first query of a decoder sees only itself, so its weight is 1 in every head.
const forcedOf = (pane) => (pane.causal && !pane.signed && pane.startsAtFirst && areaOf(pane) > 1 ? 1 : 0);
const offsetOf = (pane, index) => pane.offset + index * areaOf(pane);

// The number that is drawn with the strongest colour. Differences are small beside 1: their scale is the greatest of all.
function fullOf(workbench, pane, index) {
  const own = workbench.view.scale === "own", { weights } = workbench;
  if (pane.signed) return own ? greatestDifference(weights, offsetOf(pane, index), areaOf(pane)) : pane.full;
  if (!own) return 65535;
  const forced = forcedOf(pane), [first, count] = [offsetOf(pane, index) + forced, areaOf(pane) - forced];
  return (isLong(pane) && percentileOf(weights, first, count, percentOf(pane) / 100)) || greatestOf(weights, first, count);
}

// Of a long map about one cell in two queries lies above the strongest colour, so that one large weight hides no others.
const LONG = 64; // tokens
const isLong = (pane) => Math.max(pane.length, pane.keys) >= LONG;
const percentOf = (pane) => Math.round(1000 * (1 - 0.5 / Math.max(pane.length, pane.keys))) / 10;
const endOf = (pane) => (isLong(pane) ? `each map's percentile ${percentOf(pane)}` : "each map's maximum");

const rampFor = (workbench, pane) => (pane.signed ? workbench.theme.differences : workbench.theme.ink);

// ------------------------------------------------------------ where each head lies

function layoutOf(pane, view, width, height = Infinity) {
  const byLayer = !pane.scores[view.score] || view.show === "layers";
  const left = byLayer && !pane.named ? 26 : 0, top = byLayer && !pane.named ? 16 : 0, caption = byLayer ? 0 : 15;
  const columns = Math.max(1, byLayer ? pane.heads : Math.max(4, Math.min(pane.heads, Math.floor(width / 76))));
  const rows = Math.ceil((byLayer ? layersOf(pane).length * pane.heads : ordered(pane, view).length) / columns) || 1;
  const across = Math.floor((width - left) / columns) - GAP, down = Math.floor((height - top) / rows) - GAP - caption;
  const tile = Math.max(8, Math.min(pane.named ? ONLY_TILE : LARGEST_TILE, across, down));
  const heads = ordered(pane, view).map((head, place) => {
    const row = Math.floor(place / columns), column = place % columns;
    return { ...head, x: left + column * (tile + GAP), y: top + caption + row * (tile + GAP + caption) };
  });
  return { heads, byLayer, left, top, caption, columns, rows, tile,
    width: left + columns * (tile + GAP), height: top + rows * (tile + GAP + caption) + 2 };
}

// ------------------------------------------------------------ how they are drawn

function drawHeads(pen, workbench, pane, layout) {
  const { theme, weights, view } = workbench, step = layout.tile + GAP;
  if (layout.byLayer && !pane.named) {
    const size = layout.tile < 20 ? 8 : 11;
    for (let h = 0; h < pane.heads && !pane.whole; h++) pen.text(`H${h + 1}`, layout.left + h * step + layout.tile / 2, 8, { align: "center", size });
    layersOf(pane).forEach((layer, row) => pen.text(`L${layer + 1}`, layout.left - 5, layout.top + row * step + layout.tile / 2, { align: "right", size }));
  }
  for (const { index, faint, x, y } of layout.heads) {
    pen.tile(x, y, layout.tile, layout.tile, weights, offsetOf(pane, index), sides(pane), rampFor(workbench, pane),
      fullOf(workbench, pane, index), faint ? 0.18 : 1, pane.signed);
    pen.rect(x, y, layout.tile, layout.tile, { stroke: theme.border });
    if (!layout.byLayer) {
      const value = pane.scores[view.score].values[index];
      const score = layout.tile >= 56 ? ` ${value.toFixed(2)}` : "";
      pen.text(nameOf(pane, index) + score, x, y - 7, { size: layout.tile >= 40 ? 10 : 8 });
    }
  }
}

// The chosen head has a thick border; heads that were added for the lines have a corner in their colour.
function markChosen(pen, workbench, pane, layout) {
  const { view, theme } = workbench, head = headIn(pane, view.head), chosen = chosenHeads(view).map((name) => headIn(pane, name));
  for (const { index, x, y } of layout.heads) {
    if (index === head) pen.rect(x, y, layout.tile, layout.tile, { stroke: theme.accent, line: 3 });
    const place = chosen.indexOf(index);
    if (view.also.length && place >= 0) pen.rect(x, y, Math.min(10, layout.tile / 3), Math.min(10, layout.tile / 3), { fill: theme.hues[place % theme.hues.length], stroke: theme.paper });
  }
}

// The chosen heads by name, in the order of their colours.
const chosenHeads = (view) => [...(view.head === null ? [] : [view.head]), ...view.also.filter((name) => name !== view.head)];

function headAt(layout, x, y) {
  return layout.heads.find((head) => x >= head.x && x < head.x + layout.tile && y >= head.y && y < head.y + layout.tile);
}

// ------------------------------------------------------------ what a screen reader hears

// The canvas has no parts that a screen reader could name, so the same heads stand behind it as rows of cells.
function fillTree(parts, pane, view) {
  const score = pane.scores[view.score];
  const spoken = (index) => {
    const value = score ? score.values[index] : null;
    return `Layer ${Math.floor(index / pane.heads) + 1}, head ${(index % pane.heads) + 1}`
      + (value === null || value === undefined ? "" : `, ${score.label} ${value.toFixed(2)}`);
  };
  const rows = layersOf(pane).map((layer) => make("div", { role: "row" },
    ...[...Array(pane.heads).keys()].map((head) => {
      const index = layer * pane.heads + head;
      return make("span", { role: "gridcell", id: `${parts.named}-${index}`, ariaLabel: spoken(index), ariaSelected: String(index === headIn(pane, view.head)) });
    })));
  parts.tree.replaceChildren(...rows);
  parts.allBox.setAttribute("aria-rowcount", layersOf(pane).length);
  parts.allBox.setAttribute("aria-colcount", pane.heads);
}

function announce(parts, head) {
  for (const cell of parts.tree.querySelectorAll("[role=gridcell]")) cell.ariaSelected = String(cell.id === `${parts.named}-${head}`);
  if (head === null) parts.allBox.removeAttribute("aria-activedescendant");
  else parts.allBox.setAttribute("aria-activedescendant", `${parts.named}-${head}`);
}

function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "role") made.setAttribute("role", value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

// ------------------------------------------------------------ what is seen, in one sentence

// The target that stands out most from even attention, else the strongest single weight.
function seen(workbench, pane, index) {
  const name = nameOf(pane, index);
  if (pane.signed) return differenceSeen(workbench, pane, index, name);
  const layer = Math.floor(index / pane.heads), window = pane.windows[layer];
  const over = window ? ` over the ${window} tokens that its layer sees` : "";
  let best = null;
  for (const score of Object.values(pane.scores)) {
    const value = score.values[index], even = score.even[layer % score.even.length], above = value - even;
    if (score.seen && value !== null && (!best || above > best.above)) best = { score, value, above, even };
  }
  if (best && best.above > 0.25) {
    const rank = best.score.values.filter((value) => value !== null && value > best.value).length + 1, every = indexesOf(pane).length;
    const order = rank === 1 ? `None of the other ${every - 1} heads ${best.score.seen} more.` : `${rank - 1} of the other ${every - 1} heads ${rank === 2 ? "gives" : "give"} more weight there.`;
    return `${name} ${best.score.seen}: ${best.value.toFixed(2)} of its weight on average over all queries, where even attention${over} gives ${best.even.toFixed(2)}. ${order}`;
  }
  const spread = pane.scores["normalised entropy"]?.values[index];
  if (spread > 0.9) return `${name} spreads its weight almost evenly over ${window ? `the ${window} tokens that its layer sees` : "all it sees"}: entropy ${spread.toFixed(2)} of 1.`;
  const { q, k, value } = strongest(workbench, pane, index), targets = Object.keys(pane.scores).length > 0;
  return `${name}${targets ? " has no single target here; its" : ": its"} greatest weight is from “${pane.tokens[q]}” to “${pane.keyTokens[k]}”: ${(value / 65535).toFixed(2)}${over && `; it is shared${over}`}.`;
}

function differenceSeen(workbench, pane, index, name) {
  const { q, k, value } = strongest(workbench, pane, index);
  if (!value) return `${name} does not differ at all (${pane.title}).`;
  const amount = `${value < 0 ? "−" : "+"}${Math.abs(value / MIDDLE).toFixed(2)}`;
  return `${name} differs most from “${pane.tokens[q]}” to “${pane.keyTokens[k]}”: ${amount} (${pane.title}).`;
}

function strongest({ weights }, pane, index) {
  const start = offsetOf(pane, index), middle = pane.signed ? MIDDLE : 0;
  let place = forcedOf(pane);
  for (let k = place + 1; k < areaOf(pane); k++) if (Math.abs(weights[start + k] - middle) > Math.abs(weights[start + place] - middle)) place = k;
  return { q: Math.floor(place / pane.keys), k: place % pane.keys, value: weights[start + place] - middle };
}
