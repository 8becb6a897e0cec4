
// The labelling sheet: 48 maps on one canvas, or one large map; every label is an event in an outbox that is sent
// whole until the store acknowledges it (label_outbox.js). Painting never waits for the server. Drawing is in map_drawing.js.

const SHEETS = new WeakMap();
const TILE_GAP = 8, STRIP = 16, SINGLE = 520;
const GREY = "#9A9A9A";

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".root");
  let sheet = SHEETS.get(root);
  if (!sheet) {
    sheet = startSheet(root);
    SHEETS.set(root, sheet);
  }
  sheet.send = (value) => setStateValue("events", value);
  sheet.ask = (value) => setStateValue("more", value);
  if (!sheet.fetched || data.queue !== sheet.first) sheet.wanted = sheet.first = data.queue; // or what was fetched since
  open(sheet);
  return sheet.stop;
}

// The maps come through a component of their own (label_sheet.py), so that a label's rerun need not look at them.
function open(sheet) {
  if (!window.atlasLabels) return;
  const bytes = window.atlasLabels, theme = themeOf(sheet.root), look = JSON.stringify([theme.paper, theme.text, theme.sequential]);
  const { header, weights } = readPayload(bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes));
  if (header.id !== sheet.wanted || (header.id === sheet.header?.id && look === sheet.look)) return;
  const fresh = header.id !== sheet.header?.id;
  Object.assign(sheet, { header, weights, theme, look });
  if (header.database !== sheet.database) openOutbox(sheet, header.database);
  if (fresh) openQueue(sheet);
  fillBar(sheet);
  paintAll(sheet);
  if (fresh) { sheet.word = header.word || ""; showWord(sheet); flush(sheet); onwards(sheet); }
}

// ------------------------------------------------------------ state: a stack of events; a map's state is its last one

function openQueue(sheet) {
  const { header } = sheet;
  sheet.index = new Map(header.maps.map((map, place) => [map.id, place]));
  sheet.stack = [];
  sheet.steps = new Map();
  for (const entry of header.stack) push(sheet, entry);
  recall(sheet);
  sheet.marks = new Set(header.stack.filter((one) => one.kind === "flag").map((one) => one.map_id));
  sheet.counts = { ...header.counts };
  sheet.scale = sheet.scale || header.scale;
  sheet.mode = sheet.mode || header.mode;
  sheet.brush = null;
  sheet.seen = new Set();
  sheet.last = performance.now();
  sheet.root.dataset.sheets = Number(sheet.root.dataset.sheets || 0) + 1;
  sheet.cursor = Math.max(0, header.maps.findIndex((map) => !stateOf(sheet, map.id)));
}

// What was decided on a map: its newest label or skip that no undo took back.
const stateOf = (sheet, id) => { const steps = sheet.steps.get(id); return steps && steps.length ? steps[steps.length - 1] : null; };

function push(sheet, entry) {
  sheet.stack.push(entry);
  remember(sheet, entry);
  if (entry.kind !== "label" && entry.kind !== "skip") return;
  if (!sheet.steps.has(entry.map_id)) sheet.steps.set(entry.map_id, []);
  sheet.steps.get(entry.map_id).push(entry);
}

const classOf = (sheet, name) => sheet.header.classes.find((one) => one.name === name);
const perSheet = (sheet) => (sheet.mode === "sheet" ? sheet.header.per_sheet : 1);
const firstOf = (sheet) => Math.floor(sheet.cursor / perSheet(sheet)) * perSheet(sheet);
const onSheet = (sheet) => sheet.header.maps.slice(firstOf(sheet), firstOf(sheet) + perSheet(sheet));

// ------------------------------------------------------------ acts

function give(sheet, place, name) {
  const map = sheet.header.maps[place], before = stateOf(sheet, map.id);
  if (before && before.kind === "label" && before.class === name) return;
  const event = emit(sheet, map, { kind: "label", class: name });
  push(sheet, { event, kind: "label", map_id: map.id, class: name, pass: map.pass });
  count(sheet, before, -1); count(sheet, { kind: "label", class: name }, 1);
  sheet.seen.add(map.id);
  repaint(sheet, place);
}

function count(sheet, entry, change) {
  if (entry && entry.kind === "label") sheet.counts[entry.class] = (sheet.counts[entry.class] || 0) + change;
}

function skip(sheet) {
  const map = sheet.header.maps[sheet.cursor], before = stateOf(sheet, map.id);
  count(sheet, before, -1);
  push(sheet, { event: emit(sheet, map, { kind: "skip" }), kind: "skip", map_id: map.id, pass: map.pass });
  const place = sheet.cursor;
  onward(sheet);
  repaint(sheet, place);
}

function undo(sheet) {
  const entry = sheet.stack.pop();
  if (!entry) return;
  sheet.mine.delete(keyOfMap(entry.map_id, entry.pass));
  const map = { id: entry.map_id, pass: entry.pass };
  emit(sheet, map, { kind: "undo", undoes: entry.event });
  const steps = sheet.steps.get(entry.map_id);
  if (steps && steps[steps.length - 1] === entry) { steps.pop(); count(sheet, entry, -1); count(sheet, stateOf(sheet, entry.map_id), 1); }
  if (entry.kind === "flag") sheet.marks.delete(entry.map_id);
  const place = sheet.index.get(entry.map_id);
  if (place !== undefined) moveTo(sheet, place);
  paintAll(sheet);
}

function flag(sheet) {
  const map = sheet.header.maps[sheet.cursor];
  push(sheet, { event: emit(sheet, map, { kind: "flag" }), kind: "flag", map_id: map.id });
  sheet.marks.add(map.id);
  repaint(sheet, sheet.cursor);
}

function note(sheet, text) {
  const map = sheet.header.maps[sheet.cursor];
  if (text.trim()) push(sheet, { event: emit(sheet, map, { kind: "note", note: text.trim() }), kind: "note", map_id: map.id });
}

function accept(sheet) {
  const map = sheet.header.maps[sheet.cursor];
  if (map.hint) { const place = sheet.cursor; give(sheet, place, map.hint[0]); onward(sheet); repaint(sheet, place); }
}

// "Accept the rest" takes the suggestions of this sheet's maps that were on screen and have no label.
function acceptRest(sheet) {
  const start = firstOf(sheet);
  onSheet(sheet).forEach((map, k) => {
    if (map.hint && sheet.seen.has(map.id) && !stateOf(sheet, map.id)) give(sheet, start + k, map.hint[0]);
  });
  paintAll(sheet);
}

function onward(sheet) {
  const { maps } = sheet.header;
  for (let k = sheet.cursor + 1; k < maps.length; k++) if (!stateOf(sheet, maps[k].id)) return moveTo(sheet, k);
  if (sheet.cursor + 1 < maps.length) return moveTo(sheet, sheet.cursor + 1);
  showStatus(sheet);
}

function moveTo(sheet, place) {
  const before = firstOf(sheet), old = sheet.cursor;
  sheet.cursor = Math.max(0, Math.min(sheet.header.maps.length - 1, place));
  if (firstOf(sheet) !== before) paintAll(sheet);
  else { repaint(sheet, old); repaint(sheet, sheet.cursor); }
}

const turn = (sheet, by) => moveTo(sheet, firstOf(sheet) + by * perSheet(sheet));

// ------------------------------------------------------------ painting

function layoutOf(sheet) {
  const width = Math.max(320, sheet.parts.box.clientWidth);
  if (sheet.mode === "single") {
    const tile = Math.min(SINGLE, width - 2);
    return { columns: 1, tile, width, height: tile + STRIP + 20 };
  }
  const columns = Math.max(3, Math.min(12, Math.floor(width / 122)));
  const tile = Math.floor((width - TILE_GAP) / columns) - TILE_GAP;
  const rows = Math.ceil(Math.max(1, onSheet(sheet).length) / columns);
  return { columns, tile, width, height: rows * (tile + STRIP + TILE_GAP) + TILE_GAP };
}

function placeOf(sheet, place) {
  const k = place - firstOf(sheet), { columns, tile } = sheet.layout;
  return { x: TILE_GAP / 2 + (k % columns) * (tile + TILE_GAP),
    y: STRIP + Math.floor(k / columns) * (tile + STRIP + TILE_GAP) };
}

function paintAll(sheet) {
  const began = performance.now(), { parts, theme } = sheet;
  sheet.layout = layoutOf(sheet);
  const { width, height } = sheet.layout;
  parts.canvas.style.width = `${width}px`; parts.canvas.style.height = `${height}px`;
  sheet.pen = canvasPen(parts.canvas, width, height, window.devicePixelRatio || 1, theme);
  onSheet(sheet).forEach((map, k) => { sheet.seen.add(map.id); paintOne(sheet, firstOf(sheet) + k); });
  fillBar(sheet); showStatus(sheet);
  sheet.root.dataset.sheetMilliseconds = (performance.now() - began).toFixed(1);
}

function repaint(sheet, place) {
  if (place < firstOf(sheet) || place >= firstOf(sheet) + perSheet(sheet)) return;
  const { x, y } = placeOf(sheet, place), { tile } = sheet.layout, edge = TILE_GAP / 2;
  sheet.pen.rect(x - edge, y - STRIP, tile + 2 * edge, tile + STRIP + edge, { fill: sheet.theme.paper });
  paintOne(sheet, place);
  showStatus(sheet);
}

function paintOne(sheet, place) {
  const { header, theme, pen } = sheet, map = header.maps[place], { tile } = sheet.layout, { x, y } = placeOf(sheet, place);
  const state = stateOf(sheet, map.id), given = state && state.kind === "label" ? classOf(sheet, state.class) : null;
  const hinted = !state && map.hint ? classOf(sheet, map.hint[0]) : null;
  const full = sheet.scale === "absolute" ? 65535 : Math.max(1, map.maximum * 65535);
  pen.tile(x, y, tile, tile, sheet.weights, map.offset, map.length, theme.ink, full, state && state.kind === "skip" ? 0.35 : 1);
  for (const position of map.separators) {
    const at = ((position + 0.5) / map.length) * tile;
    pen.rect(x + at - 1, y - 4, 2, 4, { fill: theme.accent });
    pen.rect(x - 4, y + at - 1, 4, 2, { fill: theme.accent });
  }
  const shade = given ? given.colour : hinted ? hinted.colour : theme.border;
  pen.rect(x, y, tile, tile, { stroke: shade, line: given ? 4 : hinted ? 2 : 1 });
  if (hinted) tint(sheet, x, y, tile, hinted.colour);
  const said = given ? given.title : state ? "skipped" : hinted ? `${hinted.title}? ${(map.hint[1] * 100).toFixed(0)} %` : "";
  if (said) {
    pen.rect(x, y + tile - 15, tile, 15, { fill: given ? shade : theme.paper });
    pen.text(shortened(said, Math.floor(tile / 6.2)), x + 4, y + tile - 7, { size: 10, colour: given ? textOn(shade) : theme.text, bold: Boolean(given) });
  }
  const mark = sheet.marks.has(map.id) ? "⚑ " : "";
  pen.text(`${mark}max ${map.maximum.toFixed(2)} · ${map.length} tokens`, x, y - 9, { size: tile > 300 ? 12 : 10 });
  if (place === sheet.cursor) pen.rect(x - 2, y - 2, tile + 4, tile + 4, { stroke: theme.accent, line: 3 });
}

function tint(sheet, x, y, tile, colour) {
  const canvas = sheet.parts.canvas, scale = window.devicePixelRatio || 1, ink = canvas.getContext("2d");
  ink.save(); ink.globalAlpha = 0.14; ink.fillStyle = colour;
  ink.fillRect(x * scale, y * scale, tile * scale, tile * scale); ink.restore();
}

function textOn(colour) {
  const [r, g, b] = parseColour(colour);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 140 ? "#14171C" : "#FFFFFF";
}

// ------------------------------------------------------------ the bar above and the lines around

function made(name, attributes = {}, text = "") {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

function button(label, key, act, { pressed, colour, title, name } = {}) {
  const made_ = made("button", { type: "button", title: title || label, "data-act": name || label });
  if (colour) { const swatch = made("span", { class: "swatch" }); swatch.style.background = colour; made_.append(swatch); }
  made_.append(label);
  if (key) made_.append(made("kbd", {}, key));
  if (pressed !== undefined) made_.setAttribute("aria-pressed", String(pressed));
  made_.onclick = act;
  return made_;
}

function fillBar(sheet) {
  const { parts, header } = sheet, single = sheet.mode === "single", hints = header.maps.some((map) => map.hint);
  const focused = () => parts.canvas.focus({ preventScroll: true });
  const does = (act) => () => { act(); focused(); };
  parts.classes.replaceChildren(...header.classes.map((one) => {
    const shown = `${one.title} (${sheet.counts[one.name] || 0})`;
    return button(shown, one.key, does(() => pick(sheet, one.name)), { pressed: sheet.brush === one.name,
      colour: one.colour, title: one.eye, name: `class ${one.name}` });
  }));
  parts.acts.replaceChildren(
    button("Sheet", "", does(() => setMode(sheet, "sheet")), { pressed: !single }),
    button("Single", "m", does(() => setMode(sheet, "single")), { pressed: single }),
    button(sheet.scale === "absolute" ? "Scale: 0 to 1" : "Scale: each map's own", "s", does(() => setScale(sheet)), { name: "scale" }),
    button("Undo", "⌫", does(() => undo(sheet)), { name: "undo" }),
    button("Skip", "Space", does(() => skip(sheet)), { name: "skip" }),
    button("Flag", "f", does(() => flag(sheet)), { name: "flag" }),
    button("Note", "n", () => askNote(sheet), { name: "note" }),
    ...(hints ? [button("Accept", "Enter", does(() => accept(sheet)), { name: "accept" }),
      button("Accept the rest", "a", does(() => acceptRest(sheet)), { name: "rest" })] : []),
    button("Back", "PgUp", does(() => turn(sheet, -1)), { name: "back" }),
    button("On", "PgDn", does(() => turn(sheet, 1)), { name: "on" }),
    ...(sheet.older.length ? [button(`Save ${sheet.older.reduce((sum, box) => sum + box.events.length, 0)} older labels here`, "",
      () => adoptOlder(sheet), { name: "older", title: "Labels that this browser kept before an update, if they belong to this database" })] : []),
    button("More maps", "", () => (header.project ? fetchMaps(sheet) : sheet.ask(Date.now())), { name: "more", title: "Fetch the next maps of the queue" }),
  );
}

function pick(sheet, name) {
  if (sheet.mode === "single") return labelAndGo(sheet, name);
  sheet.brush = sheet.brush === name ? null : name;
  fillBar(sheet);
}

function labelAndGo(sheet, name) {
  if (allDecided(sheet)) return; // the next maps are on their way: a quick key is not for the last one
  const place = sheet.cursor;
  give(sheet, place, name);
  onward(sheet);
  repaint(sheet, place);
  fillBar(sheet);
}

function setMode(sheet, mode) { sheet.mode = mode; sheet.brush = null; paintAll(sheet); }
function setScale(sheet) { sheet.scale = sheet.scale === "absolute" ? "own" : "absolute"; paintAll(sheet); }

function askNote(sheet) {
  const field = made("input", { class: "note", type: "text", placeholder: "Note on this map; Enter keeps it, Esc leaves", maxlength: "500" });
  const done = () => { fillBar(sheet); sheet.parts.canvas.focus({ preventScroll: true }); };
  field.onkeydown = (press) => {
    press.stopPropagation();
    if (press.key === "Enter") { note(sheet, field.value); done(); }
    if (press.key === "Escape") done();
  };
  sheet.parts.acts.replaceChildren(field);
  field.focus();
}

function showStatus(sheet) {
  if (!sheet.header) return; // the maps are still on their way
  const { header, parts } = sheet, map = header.maps[sheet.cursor];
  const waiting = sheet.outbox.length + sheet.left.reduce((sum, box) => sum + box.events.length, 0);
  const decided = header.maps.filter((one) => stateOf(sheet, one.id)).length;
  parts.status.textContent = `${decided} of ${header.maps.length} maps done · saved ${sheet.saved} · waiting ${waiting}`
    + ` · sheet ${Math.floor(sheet.cursor / perSheet(sheet)) + 1} of ${Math.ceil(header.maps.length / perSheet(sheet))}`
    + (header.queued > header.maps.length ? ` · ${header.queued} in the queue` : "");
  parts.about.textContent = map ? `L${map.layer + 1}H${map.head + 1} · ${map.checkpoint} · ${map.task} · largest weight `
    + `${map.maximum.toFixed(3)} · ${map.length} tokens` : "";
  if (map && map.said) showWord(sheet);
  Object.assign(sheet.root.dataset, { cursor: map ? map.id : "", place: sheet.cursor, saved: sheet.saved, waiting,
    done: decided, mode: sheet.mode, scale: sheet.scale });
}

// ------------------------------------------------------------ keys and pointer

function onKey(sheet, press) {
  if (press.altKey || press.metaKey || !sheet.header) return;
  const one = sheet.header.classes.find((cls) => cls.key === press.key || `Digit${cls.key}` === press.code);
  const columns = sheet.layout.columns;
  const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
  const acts = { Enter: accept, " ": skip, Backspace: undo, f: flag, a: acceptRest, n: askNote, s: setScale,
    m: (now) => setMode(now, now.mode === "single" ? "sheet" : "single"), PageDown: (now) => turn(now, 1), PageUp: (now) => turn(now, -1) };
  let act = null;
  if (press.ctrlKey) act = press.key.toLowerCase() === "z" ? undo : null;
  else if (one && press.shiftKey) act = (now) => { now.brush = one.name; fillBar(now); };
  else if (one) act = (now) => labelAndGo(now, one.name);
  else if (press.key in moves) act = (now) => moveTo(now, now.cursor + moves[press.key]);
  else act = acts[press.key];
  if (!press.ctrlKey) press.stopPropagation(); // Streamlit reruns on r and clears its caches on c
  if (!act || !sheet.header.maps.length) return;
  press.preventDefault(); press.stopPropagation();
  const began = performance.now();
  act(sheet);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    sheet.root.dataset.paintMilliseconds = (performance.now() - began).toFixed(1);
    sheet.root.dataset.paints = Number(sheet.root.dataset.paints || 0) + 1;
  }));
}

function tileAt(sheet, x, y) {
  const start = firstOf(sheet), { tile } = sheet.layout;
  for (let k = 0; k < onSheet(sheet).length; k++) {
    const at = placeOf(sheet, start + k);
    if (x >= at.x && x < at.x + tile && y >= at.y - STRIP && y < at.y + tile) return start + k;
  }
  return null;
}

function onPointer(sheet, press) {
  if (!sheet.header) return;
  const area = sheet.parts.canvas.getBoundingClientRect();
  const place = tileAt(sheet, press.clientX - area.left, press.clientY - area.top);
  if (place === null) return;
  if (press.type === "pointerdown") { sheet.painting = sheet.brush !== null; sheet.touched = new Set(); }
  if (press.type === "pointermove" && !sheet.painting) return;
  if (sheet.touched.has(place)) return;
  sheet.touched.add(place);
  moveTo(sheet, place);
  if (sheet.painting) { give(sheet, place, sheet.brush); fillBar(sheet); }
}

function startSheet(root) {
  const parts = { word: made("div", { class: "word", role: "status" }), classes: made("div", { class: "row" }), acts: made("div", { class: "row" }), box: made("div"),
    canvas: made("canvas", { tabindex: "0", role: "application", "aria-label": "Attention maps to label; digits label, arrows move" }),
    about: made("div", { class: "about" }), status: made("div", { class: "status", role: "status" }) };
  parts.box.append(parts.canvas);
  root.replaceChildren(parts.word, parts.classes, parts.acts, parts.box, parts.about, parts.status);
  const sheet = { root, parts, database: null, batch: "", sequence: 0, outbox: [], left: [], older: [], parked: new Map(),
    saved: 0, seen: new Set(), touched: new Set(), mine: new Map() };
  root.onkeydown = (press) => { if (press.target.tagName !== "INPUT") onKey(sheet, press); };
  for (const kind of ["pointerdown", "pointermove"]) parts.canvas.addEventListener(kind, (press) => onPointer(sheet, press));
  const lift = () => { sheet.painting = false; };
  const told = (message) => acknowledged(sheet, message.detail);
  const resized = () => { if (sheet.header) paintAll(sheet); };
  window.addEventListener("pointerup", lift);
  const came = () => open(sheet);
  window.addEventListener("atlas-saved", told);
  window.addEventListener("atlas-labels", came);
  window.addEventListener("resize", resized);
  sheet.stop = () => {
    sheet.stopped = true;
    window.removeEventListener("pointerup", lift); window.removeEventListener("atlas-saved", told);
    window.removeEventListener("atlas-labels", came);
    window.removeEventListener("resize", resized); SHEETS.delete(root);
  };
  return sheet;
}
