// The atlas: a layer x head picture and a plane of heads, in step; hover reads, a drag selects, a click opens a head.
// data: { id, layers, heads, across, up, colour, bars, labels, selected }, each score { label, values, low, high, domain, diverging, n,
// names }; with names, values are numbers of kinds.

const SVG = "http://www.w3.org/2000/svg";
const VIEWS = new WeakMap();
const MARGIN = { left: 52, right: 24, top: 8, bottom: 40 };

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  const view = VIEWS.get(root) || { selected: new Set() };
  view.tell = (names) => setStateValue("selected", names);
  view.open = (name) => setTriggerValue("opened", name);
  if (!VIEWS.has(root)) {
    VIEWS.set(root, view);
    view.watch = new ResizeObserver(() => { if (Math.abs(root.clientWidth - view.width) > 4) drawAtlas(root, view); });
    view.watch.observe(root);
  }
  view.data = data;
  if (!view.dragging) view.selected = new Set((data.selected || []).map((name) => numberOf(name, data)));
  drawAtlas(root, view);
  return () => { view.watch.disconnect(); VIEWS.delete(root); };
}

// Not under a drag: what is dragged over would be replaced. The drag's end draws what came meanwhile.
function drawAtlas(root, view) {
  view.late = view.dragging ? () => drawAtlas(root, view) : null;
  if (view.late) return;
  const began = performance.now();
  view.width = root.clientWidth;
  view.theme = themeOf(root);
  view.tip = make("div", "tip");
  root.replaceChildren(picture(view), plane(view), view.tip);
  paint(view);
  root.dataset.painted = view.data.id;
  root.dataset.milliseconds = (performance.now() - began).toFixed(1);
}

const make = (tag, name) => Object.assign(document.createElement(tag), { className: name });

function draw(tag, attributes, inside) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (inside) inside.append(element);
  return element;
}

function words(inside, text, attributes) {
  const element = draw("text", attributes, inside);
  element.textContent = text;
  return element;
}

const nameOf = (index, data) => `L${Math.floor(index / data.heads) + 1}H${(index % data.heads) + 1}`;

function numberOf(name, data) {
  const [, layer, head] = /^L(\d+)H(\d+)$/.exec(name) || [];
  return (Number(layer) - 1) * data.heads + (Number(head) - 1);
}

// ---------------------------------------------------------------- two drawings of the same heads

function figureOf(name, title) {
  const figure = make("figure", name);
  const caption = make("figcaption", "");
  caption.textContent = title;
  figure.append(caption);
  return figure;
}

function picture(view) {
  const { layers, heads, colour } = view.data;
  const cell = Math.max(11, Math.min(44, Math.floor(Math.min((view.width * 0.4 - 40) / heads, 480 / layers))));
  view.besides = Math.max(heads * cell, 120) + 36;
  const figure = figureOf("picture", colour.label);
  const svg = draw("svg", { width: heads * cell + 36, height: layers * cell + 38 + legendHeight(colour), role: "group", "aria-label": colour.label });
  view.cells = colour.values.map((_, index) => {
    const layer = Math.floor(index / heads), head = index % heads;
    const box = draw("rect", { x: 30 + head * cell, y: 4 + layer * cell, width: cell - 1, height: cell - 1, rx: 2 }, svg);
    return listen(box, index, view);
  });
  const step = cell < 17 ? 2 : 1;
  for (let k = 0; k < layers; k += step) words(svg, `L${k + 1}`, { x: 24, y: 4 + k * cell + cell / 2 + 4, "text-anchor": "end" });
  for (let k = 0; k < heads; k += step) words(svg, `${k + 1}`, { x: 30 + k * cell + cell / 2, y: layers * cell + 18, "text-anchor": "middle" });
  legend(svg, view, 30, layers * cell + 28, Math.max(120, heads * cell));
  figure.append(svg);
  brushing(svg, view, view.cells);
  return figure;
}

const legendHeight = (colour) => (colour.names.length ? 17 * colour.names.length : 20);

function legend(svg, view, x, y, width) {
  const [low, high] = view.data.colour.domain;
  view.data.colour.names.forEach((name, kind) => {
    draw("rect", { x, y: y + 17 * kind, width: 11, height: 11, rx: 2, fill: shadeOf(kind, view) }, svg);
    words(svg, `${name} (${view.data.colour.values.filter((value) => value === kind).length})`, { x: x + 17, y: y + 17 * kind + 10 });
  });
  if (view.data.colour.names.length) return;
  for (let k = 0; k < 40; k++) {
    const shade = shadeOf(low + ((high - low) * (k + 0.5)) / 40, view);
    draw("rect", { x: x + (k * width) / 40, y, width: width / 40 + 0.5, height: 8, fill: shade }, svg);
  }
  words(svg, show(low), { x, y: y + 21 });
  words(svg, show(high), { x: x + width, y: y + 21, "text-anchor": "end" });
}

function plane(view) {
  const { data } = view, { across, up, bars } = data;
  const left = view.width - view.besides - 20, width = Math.max(300, Math.min(760, left >= 340 ? left : view.width)), height = Math.min(520, Math.max(330, width * 0.7));
  const figure = figureOf("scatter", `${up.label}, against ${across.label}`);
  const svg = draw("svg", { width, height, role: "group", "aria-label": `${up.label} against ${across.label}` });
  const place = (score, value, from, to) => from + ((value - score.domain[0]) / (score.domain[1] - score.domain[0] || 1)) * (to - from);
  const x = (value) => place(across, value, MARGIN.left, width - MARGIN.right), y = (value) => place(up, value, height - MARGIN.bottom, MARGIN.top);
  axes(svg, across, up, x, y, width, height);
  view.points = data.colour.values.map((_, index) => {
    const [a, b] = [across.values[index], up.values[index]];
    if (a === null || b === null) return null;
    if (bars) intervals(svg, index, across, up, x, y);
    return listen(draw("circle", { cx: x(a), cy: y(b), r: data.colour.values.length > 200 ? 5 : 6.5 }, svg), index, view);
  });
  figure.append(svg);
  brushing(svg, view, view.points);
  return figure;
}

function axes(svg, across, up, x, y, width, height) {
  draw("path", { class: "axis", d: `M${MARGIN.left} ${MARGIN.top}V${height - MARGIN.bottom}H${width - MARGIN.right}` }, svg);
  for (const a of ticks(across.domain)) words(svg, show(a), { x: x(a), y: height - MARGIN.bottom + 15, "text-anchor": "middle" });
  for (const b of ticks(up.domain)) words(svg, show(b), { x: MARGIN.left - 6, y: y(b) + 4, "text-anchor": "end" });
  words(svg, across.label, { x: (MARGIN.left + width) / 2, y: height - 5, "text-anchor": "middle" });
}

// Round numbers inside a domain, five or so of them.
function ticks([low, high]) {
  const rough = (high - low) / 6 || 1, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * size).find((one) => one >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  return [...Array(Math.floor(high / step + 1e-9) - first + 1).keys()].map((k) => Number(((first + k) * step).toPrecision(6)));
}

function intervals(svg, index, across, up, x, y) {
  const [a, b] = [across.values[index], up.values[index]];
  if (across.low[index] !== null) draw("line", { class: "bar", x1: x(across.low[index]), x2: x(across.high[index]), y1: y(b), y2: y(b) }, svg);
  if (up.low[index] !== null) draw("line", { class: "bar", x1: x(a), x2: x(a), y1: y(up.low[index]), y2: y(up.high[index]) }, svg);
}

// ---------------------------------------------------------------- colour, words

const show = (value) => (value === null || value === undefined ? "–" : Math.abs(value) >= 100 ? value.toFixed(0) : Number(value.toPrecision(3)).toString());

const said = (score, value) => (score.names.length && value !== null ? score.names[value] : show(value));

function shadeOf(value, view) {
  const { domain, diverging, names } = view.data.colour;
  const { hues } = view.data.colour;
  if (names.length) return hues.length ? hues[value] : view.theme.hues[value % view.theme.hues.length];
  const ramp = diverging ? view.theme.diverging : view.theme.sequential;
  const share = Math.min(1, Math.max(0, (value - domain[0]) / (domain[1] - domain[0] || 1))) * (ramp.length - 1);
  const from = Math.min(ramp.length - 2, Math.floor(share));
  return `color-mix(in srgb, ${ramp[from + 1]} ${((share - from) * 100).toFixed(1)}%, ${ramp[from]})`;
}

function paint(view) {
  const { colour } = view.data;
  colour.values.forEach((value, index) => {
    for (const mark of [view.cells[index], view.points[index]]) {
      if (!mark) continue;
      mark.setAttribute("class", `head${value === null ? " unknown" : ""}${view.selected.size && !view.selected.has(index) ? " faint" : ""}`);
      if (value !== null) mark.setAttribute("fill", shadeOf(value, view));
    }
  });
}

function told(index, view) {
  const lines = [nameOf(index, view.data)];
  for (const score of [view.data.across, view.data.up, view.data.colour].filter((score, k, all) => all.findIndex((one) => one.label === score.label) === k)) {
    const interval = score.low[index] === null ? "" : ` [${show(score.low[index])}, ${show(score.high[index])}]`;
    const inputs = score.n && score.n[index] ? `, n ${score.n[index]}` : "";
    lines.push(`${score.label}: ${said(score, score.values[index])}${interval}${inputs}`);
  }
  return lines.concat(view.data.labels[index] || []).join("\n");
}

// ---------------------------------------------------------------- hover, click, drag

function listen(mark, index, view) {
  mark.setAttribute("tabindex", "0");
  mark.setAttribute("role", "button");
  mark.setAttribute("data-head", nameOf(index, view.data));
  mark.setAttribute("aria-label", `${nameOf(index, view.data)}: ${view.data.colour.label} ${said(view.data.colour, view.data.colour.values[index])}`);
  const over = (on) => {
    for (const one of [view.cells && view.cells[index], view.points && view.points[index]]) if (one) one.classList.toggle("over", on);
    view.tip.style.display = on ? "block" : "none";
    if (!on) return;
    const root = view.tip.parentElement.getBoundingClientRect(), box = mark.getBoundingClientRect();
    view.tip.textContent = told(index, view);
    view.tip.style.left = `${Math.max(0, Math.min(box.right - root.left + 8, root.width - 250))}px`;
    view.tip.style.top = `${box.bottom - root.top + 6}px`;
  };
  for (const [name, on] of [["pointerenter", true], ["focus", true], ["pointerleave", false], ["blur", false]]) mark.addEventListener(name, () => over(on));
  mark.addEventListener("click", () => { if (!view.dragged) view.open(`${nameOf(index, view.data)} ${Date.now()}`); });
  mark.addEventListener("keydown", (event) => { if (event.key === "Enter") view.open(`${nameOf(index, view.data)} ${Date.now()}`); });
  return mark;
}

function brushing(svg, view, marks) {
  let start = null, box = null;
  const at = (event) => { const own = svg.getBoundingClientRect(); return [event.clientX - own.left, event.clientY - own.top]; };
  svg.addEventListener("pointerdown", (event) => { start = at(event); view.dragged = false; });
  svg.addEventListener("pointermove", (event) => {
    if (!start || !event.buttons) return;
    const [x, y] = at(event);
    if (!view.dragged && Math.hypot(x - start[0], y - start[1]) < 6) return;
    if (!view.dragged) { view.dragged = view.dragging = true; svg.setPointerCapture(event.pointerId); box = draw("rect", { class: "brush" }, svg); }
    const area = /** @type {[left: number, top: number, right: number, low: number]} */ ([Math.min(x, start[0]), Math.min(y, start[1]), Math.max(x, start[0]), Math.max(y, start[1])]);
    for (const [name, value] of [["x", area[0]], ["y", area[1]], ["width", area[2] - area[0]], ["height", area[3] - area[1]]]) box.setAttribute(name, value);
    view.selected = new Set(marks.flatMap((mark, index) => (mark && inside(mark.getBBox(), area) ? [index] : [])));
    paint(view);
  });
  const release = () => { if (box) box.remove(); box = start = null; view.dragging = false; };
  svg.addEventListener("pointercancel", release);
  svg.addEventListener("pointerup", (event) => {
    const clicked = start && !view.dragged && event.target === svg;
    release();
    if (clicked && view.selected.size) { view.selected = new Set(); paint(view); }
    if (view.dragged || clicked) view.tell([...view.selected].map((index) => nameOf(index, view.data)));
    if (view.late) view.late();
  });
}

const inside = (box, [left, top, right, bottom]) => box.x + box.width / 2 >= left && box.x + box.width / 2 <= right && box.y + box.height / 2 >= top && box.y + box.height / 2 <= bottom;
