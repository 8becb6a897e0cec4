
// The map grid: all heads of one input on one canvas, one head enlarged with its tokens. Drawing is in map_drawing.js.

const GRIDS = new WeakMap();
const GAP = 3, LARGEST_TILE = 150, SAVED_SCALE = 2;
const LABEL = { size: 10, margin: 92, letters: 14, least: 8 }; // tokens beside the enlarged map

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".root");
  let grid = GRIDS.get(root);
  if (!grid) {
    grid = startGrid(root);
    GRIDS.set(root, grid);
  }
  grid.tell = (view) => setStateValue("view", view);
  const theme = themeOf(root), look = JSON.stringify([theme.paper, theme.text, theme.sequential]);
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
  const { header, weights } = readPayload(bytes);
  if (header.id === grid.header?.id && look === grid.look) return grid.stop;
  const fresh = !grid.header;
  Object.assign(grid, { header, weights, theme, look, cell: null });
  if (fresh) grid.view = { score: "", show: "layers", least: 0, scale: "absolute", head: null, ...openedBy(header) };
  if (grid.view.head !== null && grid.view.head >= header.layers * header.heads) grid.view.head = null;
  if (!header.scores[grid.view.score]) grid.view.score = "";
  fillControls(grid);
  draw(grid);
  return grid.stop;
}

function openedBy(header) {
  const opened = header.opened || {}, found = {};
  for (const name of ["score", "show", "least", "scale"]) if (opened[name] !== undefined) found[name] = opened[name];
  found.head = indexOf(header, opened.head || "");
  return found;
}

// ------------------------------------------------------------ names and order

const nameOf = (header, index) => `L${Math.floor(index / header.heads) + 1}H${(index % header.heads) + 1}`;

function indexOf(header, name) {
  const found = /^\s*l\s*(\d+)\s*[-. ]?\s*h\s*(\d+)\s*$/i.exec(name);
  if (!found) return null;
  const [layer, head] = [found[1] - 1, found[2] - 1];
  return layer >= 0 && head >= 0 && layer < header.layers && head < header.heads ? layer * header.heads + head : null;
}

// The heads as drawn: {index, faint}; by layers every head keeps its place, highest first drops those below.
function ordered(grid) {
  const { header, view } = grid, all = [...Array(header.layers * header.heads).keys()];
  if (!view.score) return all.map((index) => ({ index, faint: false }));
  const values = header.scores[view.score].values;
  const kept = (index) => values[index] !== null && values[index] >= view.least;
  if (view.show === "layers") return all.map((index) => ({ index, faint: !kept(index) }));
  return all.filter(kept).sort((a, b) => values[b] - values[a] || a - b).map((index) => ({ index, faint: false }));
}

const fullOf = (grid, index) => grid.view.scale === "absolute" ? 65535
  : greatestOf(grid.weights, index * grid.header.length ** 2, grid.header.length ** 2);

// ------------------------------------------------------------ all heads

function layoutOf(grid, width) {
  const { header, view } = grid, byLayer = !view.score || view.show === "layers";
  const left = byLayer ? 30 : 0, top = byLayer ? 18 : 0, caption = byLayer ? 0 : 15;
  const columns = Math.max(1, byLayer ? header.heads : Math.max(4, Math.min(header.heads, Math.floor(width / 76))));
  const tile = Math.max(12, Math.min(LARGEST_TILE, Math.floor((width - left) / columns) - GAP));
  const heads = ordered(grid).map((head, place) => {
    const row = Math.floor(place / columns), column = place % columns;
    return { ...head, x: left + column * (tile + GAP), y: top + caption + row * (tile + GAP + caption) };
  });
  const rows = Math.ceil(heads.length / columns);
  return { heads, byLayer, left, top, caption, columns, rows, tile, height: top + rows * (tile + GAP + caption) + 8 };
}

function drawAll(pen, grid, layout) {
  const { header, theme, weights } = grid, area = header.length ** 2, step = layout.tile + GAP;
  if (layout.byLayer) {
    for (let h = 0; h < header.heads; h++) pen.text(`H${h + 1}`, layout.left + h * step + layout.tile / 2, 8, { align: "center" });
    for (let l = 0; l < header.layers; l++) {
      pen.text(`L${l + 1}`, layout.left - 6, layout.top + l * step + layout.tile / 2, { align: "right" });
    }
  }
  for (const { index, faint, x, y } of layout.heads) {
    pen.tile(x, y, layout.tile, layout.tile, weights, index * area, header.length, theme.ink, fullOf(grid, index), faint ? 0.18 : 1);
    pen.rect(x, y, layout.tile, layout.tile, { stroke: theme.border });
    if (!layout.byLayer) {
      const value = header.scores[grid.view.score].values[index];
      const score = layout.tile >= 56 ? ` ${value.toFixed(2)}` : "";
      pen.text(nameOf(header, index) + score, x, y - 7, { size: layout.tile >= 40 ? 10 : 8 });
    }
  }
}

function drawAllOnScreen(grid) {
  const { parts, theme } = grid, width = Math.max(160, parts.allBox.clientWidth);
  const layout = layoutOf(grid, width), scale = window.devicePixelRatio || 1;
  parts.all.style.width = `${width}px`; parts.all.style.height = `${layout.height}px`;
  const pen = canvasPen(parts.all, width, layout.height, scale, theme);
  drawAll(pen, grid, layout);
  grid.layout = layout;
  const chosen = layout.heads.find((head) => head.index === grid.view.head);
  if (chosen) pen.rect(chosen.x, chosen.y, layout.tile, layout.tile, { stroke: theme.accent, line: 3 });
  parts.none.hidden = layout.heads.length > 0;
  parts.legend.style.width = "230px"; parts.legend.style.height = `${LEGEND_HEIGHT}px`;
  drawLegend(canvasPen(parts.legend, 230, LEGEND_HEIGHT, scale, theme), theme, 0, 2, { perMap: grid.view.scale !== "absolute" });
}

// ------------------------------------------------------------ one head

function frameOf(grid, width) {
  const { length, tokens } = grid.header, longest = Math.max(...tokens.map((token) => shortened(token, LABEL.letters).length));
  const sided = (margin) => Math.max(120, Math.min(width - margin - 8, 640));
  const wanted = Math.max(50, Math.min(LABEL.margin, 14 + longest * 6.4));
  const labelled = sided(wanted) / length >= LABEL.least, margin = labelled ? wanted : 50; // numbers need little room
  const side = sided(margin), cell = side / length;
  return { margin, side, cell, labelled, width: margin + side + 8, height: margin + side + 4 };
}

function drawOne(pen, grid, frame) {
  const { header, theme, view } = grid, { margin, side, cell } = frame;
  pen.tile(margin, margin, side, side, grid.weights, view.head * header.length ** 2, header.length, theme.ink, fullOf(grid, view.head));
  pen.rect(margin, margin, side, side, { stroke: theme.border });
  const size = Math.min(12, Math.max(8, cell * 0.85)), every = frame.labelled ? 1 : Math.ceil(24 / cell);
  header.tokens.forEach((token, k) => {
    if (k % every) return;
    const words = frame.labelled ? shortened(token, LABEL.letters) : String(k + 1), middle = margin + (k + 0.5) * cell;
    pen.text(words, margin - 6, middle, { size: frame.labelled ? size : 10, align: "right" });
    pen.text(words, middle, margin - 6, { size: frame.labelled ? size : 10, turn: -90 });
  });
  pen.text("key →", margin - 8, margin - 22, { size: 9, align: "right" });
  pen.text("query ↓", margin - 8, margin - 9, { size: 9, align: "right" });
}

function drawOneOnScreen(grid) {
  const { parts, header, view, theme } = grid;
  if (view.head === null) return;
  parts.oneName.textContent = nameOf(header, view.head);
  const scores = Object.values(header.scores).filter((score) => score.values[view.head] !== null)
    .map((score) => `${score.label} ${score.values[view.head].toFixed(2)}`);
  const most = greatestOf(grid.weights, view.head * header.length ** 2, header.length ** 2) / 65535;
  parts.oneScores.textContent = [...scores, `maximum ${most.toFixed(2)}`].join(" · ");
  const frame = grid.frame = frameOf(grid, parts.oneBox.clientWidth), scale = window.devicePixelRatio || 1;
  for (const canvas of [parts.oneMap, parts.over]) {
    canvas.style.width = `${frame.width}px`; canvas.style.height = `${frame.height}px`;
  }
  parts.oneBox.dataset.frame = `${frame.margin},${frame.cell}`;
  drawOne(canvasPen(parts.oneMap, frame.width, frame.height, scale, theme), grid, frame);
  drawCell(grid);
}

// What the pointer, the keyboard or the other checkpoint points at: {q, k}, either may be null (a whole row or column).
function drawCell(grid) {
  const { parts, theme, header, frame, cell, view } = grid, scale = window.devicePixelRatio || 1;
  if (view.head === null || !frame) return;
  parts.over.width = frame.width * scale; parts.over.height = frame.height * scale;
  const ink = parts.over.getContext("2d");
  ink.scale(scale, scale);
  if (!cell) {
    parts.reading.textContent = "Point at the map to read a weight, at a token to see its row or column.";
    parts.row.replaceChildren();
    return;
  }
  ink.strokeStyle = theme.accent; ink.lineWidth = 1.5;
  const { margin, side } = frame;
  const outline = (k, across) => across
    ? ink.strokeRect(margin, margin + k * frame.cell, side, frame.cell) : ink.strokeRect(margin + k * frame.cell, margin, frame.cell, side);
  if (cell.q !== null) { outline(cell.q, true); flag(ink, grid, cell.q, true); }
  if (cell.k !== null) { outline(cell.k, false); flag(ink, grid, cell.k, false); }
  describe(grid, header, cell);
}

// The full token beside the outlined row or column, on its own ground so that it is readable at 128 tokens.
function flag(ink, grid, position, across) {
  const { theme, frame, header } = grid, words = shortened(header.tokens[position], 28);
  ink.save();
  ink.font = `600 12px ${theme.font}`;
  const wide = ink.measureText(words).width + 8, middle = frame.margin + (position + 0.5) * frame.cell;
  const x = across ? Math.max(0, frame.margin - 4 - wide) : Math.min(Math.max(0, middle - wide / 2), frame.width - wide);
  const y = across ? Math.min(Math.max(9, middle), frame.height - 9) : frame.margin - 12;
  ink.fillStyle = theme.second; ink.fillRect(x, y - 9, wide, 18);
  ink.strokeStyle = theme.accent; ink.lineWidth = 1; ink.strokeRect(x, y - 9, wide, 18);
  ink.fillStyle = theme.text; ink.textBaseline = "middle"; ink.fillText(words, x + 4, y);
  ink.restore();
}

const weightAt = (grid, q, k) => grid.weights[grid.view.head * grid.header.length ** 2 + q * grid.header.length + k] / 65535;

function describe(grid, header, { q, k }) {
  const named = (position) => `“${header.tokens[position]}” (${position + 1})`;
  const { reading } = grid.parts;
  if (q !== null && k !== null) {
    reading.textContent = `${nameOf(header, grid.view.head)}: from ${named(q)} to ${named(k)}: ${weightAt(grid, q, k).toFixed(4)}`;
    reading.dataset.weight = weightAt(grid, q, k).toFixed(6);
  } else {
    reading.textContent = q !== null ? `What ${named(q)} attends to (its row)` : `Who attends to ${named(k)} (its column)`;
  }
  showRow(grid, q, k);
}

// The sentence with every token tinted by its weight: the row of a query, or the column of a key.
function showRow(grid, q, k) {
  const { header, theme, parts } = grid, length = header.length, full = fullOf(grid, grid.view.head) / 65535 || 1;
  const chips = header.tokens.map((token, position) => {
    const weight = q !== null ? weightAt(grid, q, position) : weightAt(grid, position, k);
    const chip = document.createElement("span"), level = Math.min(255, (weight / full) * 255);
    chip.textContent = shortened(token, 24);
    chip.title = `${token} ${weight.toFixed(4)}`;
    chip.style.background = cssOf(theme.ink, level);
    chip.style.color = readableOn(theme.ink, level);
    if (position === (q !== null ? q : k)) chip.className = "self";
    return chip;
  });
  parts.row.replaceChildren(...chips.slice(0, length));
}

function draw(grid) {
  if (!grid.header) return;
  grid.width = grid.parts.root.clientWidth; // what the resize observer compares with
  grid.parts.one.hidden = grid.view.head === null; // first, because it decides how much room all heads have
  drawAllOnScreen(grid);
  drawOneOnScreen(grid);
  grid.parts.root.dataset.painted = grid.header.id;
  window.dispatchEvent(new CustomEvent("atlas-painted", { detail: grid.header.id }));
  grid.parts.root.dataset.head = grid.view.head === null ? "" : nameOf(grid.header, grid.view.head);
}

// ------------------------------------------------------------ controls

function make(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function startGrid(root) {
  const parts = { root };
  const labelled = (text, control) => make("label", {}, text, control);
  parts.score = make("select", { title: "A number per head to order and filter by" });
  parts.show = make("select", {}, new Option("in layers, others faint", "layers"), new Option("highest first", "highest"));
  parts.least = make("input", { type: "number", min: 0, max: 1, step: 0.05, value: 0 });
  parts.scale = make("select", {}, new Option("0 to 1", "absolute"), new Option("each map's own", "own"));
  parts.jump = make("input", { type: "text", placeholder: "L7H6", size: 7, ariaLabel: "Go to a head by name", maxLength: 12 });
  parts.png = make("button", { textContent: "PNG", title: "Download the picture of all heads as PNG" });
  parts.svg = make("button", { textContent: "SVG", title: "Download the picture of all heads as SVG" });
  parts.bar = make("div", { className: "bar" }, labelled("Score", parts.score), labelled("Show", parts.show),
    labelled("At least", parts.least), labelled("Colour", parts.scale), labelled("Go to", parts.jump),
    make("span", { className: "buttons" }, parts.png, parts.svg));
  parts.legend = make("canvas", { className: "legend" });
  parts.all = make("canvas", { className: "all" });
  parts.none = make("p", { textContent: "No head has that score: lower “at least”.", hidden: true });
  parts.allBox = make("div", { className: "allBox", tabIndex: 0,
    ariaLabel: "Attention maps of all heads. Arrow keys choose a head, Escape closes it, L begins its name." }, parts.none, parts.all);
  parts.oneName = make("h3");
  parts.oneScores = make("span", { className: "scores" });
  parts.close = make("button", { textContent: "Close", title: "Escape" });
  parts.onePng = make("button", { textContent: "PNG", title: "Download this map as PNG" });
  parts.oneSvg = make("button", { textContent: "SVG", title: "Download this map as SVG" });
  parts.oneMap = make("canvas", { className: "oneMap" });
  parts.over = make("canvas", { className: "over" });
  parts.reading = make("p", { className: "reading", role: "status" });
  parts.row = make("div", { className: "row" });
  parts.oneBox = make("div", { className: "oneBox" }, parts.oneMap, parts.over);
  parts.one = make("section", { className: "one", hidden: true },
    make("header", {}, parts.oneName, make("span", { className: "buttons" }, parts.onePng, parts.oneSvg, parts.close)),
    parts.oneScores, parts.oneBox, parts.reading, parts.row);
  root.replaceChildren(parts.bar, parts.legend, make("div", { className: "body" }, parts.allBox, parts.one));
  const grid = { parts, header: null, cell: null, pinned: false, tell: () => {} };
  listen(grid);
  return grid;
}

function fillControls(grid) {
  const { parts, header, view } = grid;
  const options = Object.entries(header.scores).map(([name, score]) => {
    const option = new Option(score.label, name);
    option.title = score.meaning;
    return option;
  });
  parts.score.replaceChildren(new Option("none", ""), ...options);
  parts.score.value = view.score; parts.show.value = view.show;
  if (Number(parts.least.value) !== view.least) parts.least.value = view.least; // "0." is still being typed
  parts.scale.value = view.scale;
  parts.show.disabled = parts.least.disabled = !view.score;
}

function listen(grid) {
  const { parts } = grid;
  const change = (name, read) => (event) => { grid.view[name] = read(event.target); fillControls(grid); draw(grid); told(grid); };
  parts.score.onchange = change("score", (control) => control.value);
  parts.show.onchange = change("show", (control) => control.value);
  parts.scale.onchange = change("scale", (control) => control.value);
  parts.least.oninput = change("least", (control) => Number(control.value) || 0);
  parts.jump.onkeydown = (event) => { if (event.key === "Enter") jump(grid); };
  parts.jump.oninput = () => parts.jump.setCustomValidity("");
  parts.close.onclick = () => choose(grid, null);
  parts.png.onclick = () => savePicture(grid, "png", true);
  parts.svg.onclick = () => savePicture(grid, "svg", true);
  parts.onePng.onclick = () => savePicture(grid, "png", false);
  parts.oneSvg.onclick = () => savePicture(grid, "svg", false);
  parts.root.onkeydown = (event) => event.stopPropagation(); // r would rerun the app, c clear its caches
  parts.allBox.onkeydown = (event) => onKey(grid, event);
  parts.all.onclick = (event) => { const head = headAt(grid, event); if (head) choose(grid, head.index); };
  parts.all.onmousemove = (event) => nameTile(grid, event);
  parts.over.onmousemove = (event) => { if (!grid.pinned) point(grid, cellAt(grid, event)); };
  parts.over.onmouseleave = () => { if (!grid.pinned) point(grid, null); };
  parts.over.onclick = (event) => { grid.pinned = !grid.pinned; point(grid, cellAt(grid, event)); };
  const seen = new ResizeObserver(() => { if (grid.header && parts.root.clientWidth !== grid.width) draw(grid); });
  seen.observe(parts.root);
  const follow = (event) => onOther(grid, event.detail);
  window.addEventListener("atlas-maps", follow);
  grid.stop = () => { seen.disconnect(); window.removeEventListener("atlas-maps", follow); GRIDS.delete(parts.root); };
}

function headAt(grid, event) {
  const { tile, heads } = grid.layout, { offsetX: x, offsetY: y } = event;
  return heads.find((head) => x >= head.x && x < head.x + tile && y >= head.y && y < head.y + tile);
}

function nameTile(grid, event) {
  const head = headAt(grid, event), { header, view } = grid;
  const score = head && view.score ? header.scores[view.score] : null, value = score ? score.values[head.index] : null;
  grid.parts.all.title = head ? nameOf(header, head.index) + (value !== null && value !== undefined ? `: ${score.label} ${value.toFixed(3)}` : "") : "";
}

function cellAt(grid, event) {
  const { margin, cell } = grid.frame, length = grid.header.length;
  const k = Math.floor((event.offsetX - margin) / cell), q = Math.floor((event.offsetY - margin) / cell);
  const inside = (place) => place >= 0 && place < length;
  if (inside(k) && inside(q)) return { q, k };
  if (k < 0 && inside(q)) return { q, k: null };
  if (q < 0 && inside(k)) return { q: null, k };
  return null;
}

function point(grid, cell, from = null) {
  grid.cell = cell;
  drawCell(grid);
  if (!from) window.dispatchEvent(new CustomEvent("atlas-maps", { detail: { from: grid, cell } }));
}

// Another grid on the page (a second checkpoint): the same head, and the same place when the tokens are the same.
function onOther(grid, { from, cell, head }) {
  if (from === grid || !grid.header || !from.header) return;
  if (head !== undefined) {
    const same = head === null ? null : indexOf(grid.header, head);
    if (head === null || same !== null) choose(grid, same, from);
  } else if (grid.view.head !== null && grid.header.tokens.join("\n") === from.header.tokens.join("\n")) point(grid, cell, from);
}

function choose(grid, index, from = null) {
  if (index === grid.view.head) return;
  grid.view.head = index; grid.cell = null; grid.pinned = false;
  draw(grid);
  if (from) return;
  const head = index === null ? null : nameOf(grid.header, index);
  window.dispatchEvent(new CustomEvent("atlas-maps", { detail: { from: grid, head } }));
  told(grid);
}

// The server hears of the view once it rests, so holding an arrow key is one rerun and not thirty.
function told(grid) {
  clearTimeout(grid.timer);
  grid.timer = setTimeout(() => {
    const { view, header } = grid;
    grid.tell({ ...view, head: view.head === null ? "" : nameOf(header, view.head) });
  }, 250);
}

function jump(grid) {
  const { jump: box } = grid.parts, index = indexOf(grid.header, box.value), { layers, heads } = grid.header;
  if (index === null) {
    box.setCustomValidity(`Heads run from L1H1 to L${layers}H${heads}.`);
    box.reportValidity();
    return;
  }
  box.value = "";
  choose(grid, index);
  grid.parts.allBox.focus({ preventScroll: true });
}

function onKey(grid, event) {
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid.layout.columns, ArrowDown: grid.layout.columns };
  if (event.key === "Escape") return grid.cell ? ((grid.pinned = false), point(grid, null)) : choose(grid, null);
  if (event.key.toLowerCase() === "l" && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    grid.parts.jump.value = "L";
    return grid.parts.jump.focus();
  }
  if (!(event.key in steps)) return undefined;
  event.preventDefault();
  if (event.shiftKey && grid.view.head !== null) return moveCell(grid, event.key);
  const { heads } = grid.layout, place = heads.findIndex((head) => head.index === grid.view.head);
  const next = place < 0 ? 0 : place + steps[event.key];
  if (heads[next]) choose(grid, heads[next].index);
  return undefined;
}

function moveCell(grid, key) {
  const last = grid.header.length - 1, { q, k } = { q: 0, k: 0, ...(grid.cell || {}) };
  const within = (place) => Math.max(0, Math.min(last, place));
  const down = { ArrowUp: -1, ArrowDown: 1 }[key] || 0, across = { ArrowLeft: -1, ArrowRight: 1 }[key] || 0;
  grid.pinned = true;
  point(grid, grid.cell ? { q: within((q ?? 0) + down), k: within((k ?? 0) + across) } : { q: 0, k: 0 });
}

// ------------------------------------------------------------ files

function savePicture(grid, kind, all) {
  const { header, theme, view } = grid, width = all ? 1100 : 760;
  const layout = all ? layoutOf(grid, width) : frameOf(grid, width), height = layout.height + LEGEND_HEIGHT + 30;
  const wide = all ? width : Math.max(layout.width, 320);
  const paint = (pen) => {
    all ? drawAll(pen, grid, layout) : drawOne(pen, grid, layout);
    const full = view.scale === "absolute" ? 1 : fullOf(grid, view.head ?? 0) / 65535;
    drawLegend(pen, theme, 8, layout.height + 6, { perMap: all && view.scale !== "absolute", full });
    const what = all ? `${header.name}, all heads` : `${header.name}, ${nameOf(header, view.head)}`;
    pen.text(shortened(`${what}: ${header.caption}`, Math.floor(wide / 6)), 8, layout.height + LEGEND_HEIGHT + 14, { size: 11 });
  };
  const name = `${header.file}${all ? "" : "-" + nameOf(header, view.head)}.${kind}`;
  if (kind === "svg") {
    const pen = svgPen(wide, height, theme);
    paint(pen);
    return saveBlob(new Blob([new XMLSerializer().serializeToString(pen.root)], { type: "image/svg+xml" }), name);
  }
  const canvas = document.createElement("canvas");
  paint(canvasPen(canvas, wide, height, SAVED_SCALE, theme));
  return canvas.toBlob((blob) => saveBlob(blob, name), "image/png");
}
