
// The labelling sheet: every label is an event in an outbox that is sent whole until the store acknowledges it
// (label_outbox.js). Painting never waits for the server. State, painting and the bar are in label_state.js,
// label_paint.js and label_bar.js, the drawing of maps in map_drawing.js.

const SHEETS = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".root");
  let sheet = SHEETS.get(root);
  if (!sheet) {
    sheet = startSheet(root);
    SHEETS.set(root, sheet);
  }
  sheet.ask = (value) => setStateValue("more", value);
  if (!sheet.fetched || data.queue !== sheet.first) sheet.wanted = sheet.first = data.queue; // or what was fetched since
  open(sheet);
  return sheet.stop;
}

// The maps come through a component of their own (label_sheet.py), so that a label's rerun need not look at them.
/** @param {Sheet} sheet */
function open(sheet) {
  if (!window.atlasLabels) return;
  const bytes = window.atlasLabels, theme = themeOf(sheet.root), look = JSON.stringify([theme.paper, theme.text, theme.sequential]);
  const { header, weights } = readPayload(bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes));
  if (header.id !== sheet.wanted || (header.id === sheet.header?.id && look === sheet.look)) return;
  const fresh = header.id !== sheet.header?.id;
  Object.assign(sheet, { header, weights, theme, look });
  if (header.database !== sheet.database) openOutbox(sheet, header.database);
  if (fresh) openQueue(sheet);
  sheet.layout = layoutOf(sheet);
  fillBar(sheet);
  paintAll(sheet);
  if (fresh) { sheet.word = header.word || ""; showWord(sheet); flush(sheet); onwards(sheet); }
}

// ------------------------------------------------------------ acts

/** @param {Sheet} sheet */
function give(sheet, place, name, more = {}) {
  const map = sheet.header.maps[place], before = stateOf(sheet, map.id);
  if (before && before.kind === "label" && before.class === name) return;
  const event = emit(sheet, map, { kind: "label", class: name, ...more });
  act(sheet, { event, kind: "label", map_id: map.id, class: name, pass: map.pass });
  count(sheet, before, -1); count(sheet, { kind: "label", class: name }, 1);
  sheet.given = name;
  repaint(sheet, place);
}

/** @param {Sheet} sheet */
function skip(sheet) {
  const map = sheet.header.maps[sheet.cursor], before = stateOf(sheet, map.id), place = sheet.cursor;
  count(sheet, before, -1);
  act(sheet, { event: emit(sheet, map, { kind: "skip" }), kind: "skip", map_id: map.id, pass: map.pass });
  onward(sheet);
  repaint(sheet, place);
  fillBar(sheet);
}

/** @param {Sheet} sheet */
function undo(sheet) {
  if (!sheet.stack.length) return;
  const entries = popBatch(sheet), place = sheet.index.get(entries.at(-1).map_id);
  if (place !== undefined) moveTo(sheet, place);
  paintAll(sheet);
}

/** @param {Sheet} sheet */
function flag(sheet) {
  const map = sheet.header.maps[sheet.cursor];
  act(sheet, { event: emit(sheet, map, { kind: "flag" }), kind: "flag", map_id: map.id });
  sheet.marks.add(map.id);
  repaint(sheet, sheet.cursor);
}

/** @param {Sheet} sheet */
function note(sheet, map, text) {
  if (text.trim()) act(sheet, { event: emit(sheet, map, { kind: "note", note: text.trim() }), kind: "note", map_id: map.id });
}

/** @param {Sheet} sheet */
function accept(sheet) {
  const map = sheet.header.maps[sheet.cursor];
  if (map.hint && !amongOf(sheet, map).length) labelAndGo(sheet, map.hint[0]);
}

/** @param {Sheet} sheet */
function acceptRest(sheet) {
  const rest = restOf(sheet);
  asBatch(sheet, () => rest.forEach((map) => give(sheet, sheet.index.get(map.id), map.hint[0])));
  paintAll(sheet);
}

/** @param {Sheet} sheet */
function labelAndGo(sheet, name) {
  if (allDecided(sheet)) return; // the next maps are on their way: a quick key is not for the last one
  const place = sheet.cursor;
  give(sheet, place, name);
  onward(sheet);
  repaint(sheet, place);
  fillBar(sheet);
}

// One class for all marked maps of the group; once fewer than two are marked, for the chosen map.
/** @param {Sheet} sheet */
function labelNow(sheet, name) {
  const alike = alikeOf(sheet), seconds = Math.max(0, performance.now() - sheet.last) / 1000 / alike.length;
  if (alike.length < 2) return labelAndGo(sheet, name);
  asBatch(sheet, () => alike.forEach((map) => give(sheet, sheet.index.get(map.id), name, { way: "together", seconds: Number(seconds.toFixed(3)) })));
  const first = firstOf(sheet), next = sheet.header.maps.findIndex((map, place) => place >= first && !stateOf(sheet, map.id));
  if (next >= 0) sheet.cursor = next;
  paintAll(sheet);
  bringCursor(sheet);
}

// Unmark a map of the group or mark it again; of a map with a label, only this label is taken back.
/** @param {Sheet} sheet */
function toggle(sheet, place) {
  const { id } = sheet.header.maps[place], at = sheet.stack.indexOf(stateOf(sheet, id));
  if (stateOf(sheet, id) && at < 0) return; // older than the undo reaches
  if (at >= 0) takeBack(sheet, sheet.stack.splice(at, 1)[0]);
  if (at >= 0 || !sheet.out.delete(id)) sheet.out.add(id);
  repaint(sheet, place);
  fillBar(sheet);
}

/** @param {Sheet} sheet */
function toggleAll(sheet) {
  const open = onSheet(sheet).filter((map) => !stateOf(sheet, map.id)), marked = open.filter((map) => !sheet.out.has(map.id));
  for (const map of open) if (marked.length) sheet.out.add(map.id); else sheet.out.delete(map.id);
  paintAll(sheet);
}

/** @param {Sheet} sheet */
function onward(sheet) {
  const { maps } = sheet.header;
  for (let k = sheet.cursor + 1; k < maps.length; k++) if (!stateOf(sheet, maps[k].id)) return moveTo(sheet, k);
  if (sheet.cursor + 1 < maps.length) return moveTo(sheet, sheet.cursor + 1);
  showStatus(sheet);
}

/** @param {Sheet} sheet */
function moveTo(sheet, place) {
  const before = firstOf(sheet), old = sheet.cursor;
  sheet.cursor = Math.max(0, Math.min(sheet.header.maps.length - 1, place));
  if (firstOf(sheet) !== before) paintAll(sheet);
  else { repaint(sheet, old); repaint(sheet, sheet.cursor); }
  bringCursor(sheet);
}

/** @param {Sheet} sheet */
const turn = (sheet, by) => moveTo(sheet, firstOf(sheet) + (by < 0 && sheet.mode === "together" ? by : by * perSheet(sheet)));

// A click on a class labels the chosen map; with the brush in hand it is the brush that takes the class.
/** @param {Sheet} sheet */
function pick(sheet, name) {
  if (sheet.brush) setBrush(sheet, name);
  else if (sheet.header.maps.length) labelNow(sheet, name);
}

/** @param {Sheet} sheet */
const brushOf = (sheet) => sheet.given || sheet.header.classes[0].name;

/** @param {Sheet} sheet */
function setBrush(sheet, name) { sheet.brush = sheet.mode === "sheet" ? name : null; fillBar(sheet); showStatus(sheet); }

/** @param {Sheet} sheet */
function setMode(sheet, mode) {
  sheet.mode = mode; sheet.brush = null;
  like(sheet, modeName(sheet.header), mode);
  paintAll(sheet);
  bringCursor(sheet);
}

/** @param {Sheet} sheet */
function setScale(sheet) {
  sheet.scale = sheet.scale === "absolute" ? "own" : "absolute";
  like(sheet, "scale", sheet.scale);
  paintAll(sheet);
}

// ------------------------------------------------------------ keys and pointer

/** @type {Record<string, (sheet: Sheet) => void>} */
const TOGETHER = { x: (sheet) => toggle(sheet, sheet.cursor), u: toggleAll };

/** @param {Sheet} sheet */
function actOf(sheet, press) {
  const cls = sheet.header.classes.find((each) => each.key && (each.key === press.key || `Digit${each.key}` === press.code));
  const { columns } = sheet.layout, moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
  if (press.ctrlKey || press.metaKey) return press.key.toLowerCase() === "z" && !press.shiftKey ? undo : null;
  if (cls && press.shiftKey) return (now) => setBrush(now, cls.name);
  if (cls) return (now) => labelNow(now, cls.name);
  if (press.key in moves) return (now) => moveTo(now, now.cursor + moves[press.key]);
  if (sheet.mode === "together" && press.key in TOGETHER) return TOGETHER[press.key];
  return { Enter: accept, " ": skip, Backspace: undo, f: flag, a: acceptRest, n: askNote, s: setScale,
    b: (now) => setBrush(now, now.brush ? null : brushOf(now)), Escape: sheet.brush ? (now) => setBrush(now, null) : null,
    m: (now) => setMode(now, now.mode === "single" ? manyMode(now) : "single"), PageDown: (now) => turn(now, 1), PageUp: (now) => turn(now, -1) }[press.key];
}

/** @param {Sheet} sheet */
function onKey(sheet, press) {
  if (press.altKey || !sheet.header) return;
  const held = press.ctrlKey || press.metaKey, works = actOf(sheet, press);
  if (!held) press.stopPropagation(); // Streamlit reruns on r and clears its caches on c
  if (!works || !sheet.header.maps.length || (press.target.tagName === "BUTTON" && (press.key === "Enter" || press.key === " "))) return;
  press.preventDefault(); press.stopPropagation();
  const began = performance.now();
  works(sheet);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    sheet.root.dataset.paintMilliseconds = (performance.now() - began).toFixed(1);
    sheet.root.dataset.paints = String(Number(sheet.root.dataset.paints || 0) + 1);
  }));
}

const WRITES = "input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable=true], [role=combobox], [role=listbox], [role=option]";
const MOVES = "input, button, a, summary, [role=radio], [role=tab], [role=slider], [role=menuitem]"; // take Space, Enter and arrows
const OF_MOVES = ["Enter", " ", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown"];

// A name that was typed, a choice that was made: the next keys are labels and no more letters of it.
function leaveField() {
  const field = /** @type {HTMLInputElement} */ (document.activeElement);
  if (!field || !field.value) return;
  if (field.closest(".st-key-annotator") || field.matches("[role=combobox][aria-expanded=false]")) field.blur();
}

// A key wherever the focus is, but in a field that is written in or under a dialog.
/** @param {Sheet} sheet */
function onAnyKey(sheet, press) {
  if (press.key === "Enter") setTimeout(leaveField);
  const path = press.composedPath(), matches = (what) => path.some((part) => part.matches && part.matches(what));
  if (path.includes(sheet.root) || !sheet.header || !sheet.root.isConnected || press.altKey || matches(WRITES)) return;
  if (document.querySelector('[data-testid="stDialog"]') || (matches(MOVES) && OF_MOVES.includes(press.key))) return;
  if (actOf(sheet, press)) onKey(sheet, press);
}

/** @param {Sheet} sheet */
function tileAt(sheet, x, y) {
  const start = firstOf(sheet), { tile } = sheet.layout;
  for (let k = 0; k < onSheet(sheet).length; k++) {
    const at = placeOf(sheet, start + k);
    if (x >= at.x && x < at.x + tile && y >= at.y - STRIP && y < at.y + tile + FOOT) return start + k;
  }
  return null;
}

/** @param {Sheet} sheet */
function onPointer(sheet, press) {
  if (!sheet.header) return;
  const area = sheet.parts.canvas.getBoundingClientRect();
  const place = tileAt(sheet, press.clientX - area.left, press.clientY - area.top);
  if (press.type === "pointerdown") { sheet.stroke = sheet.brush ? randomName() : null; sheet.touched = new Set(); }
  if (place === null || (press.type === "pointermove" && !sheet.stroke) || sheet.touched.has(place)) return;
  sheet.touched.add(place);
  moveTo(sheet, place);
  if (sheet.mode === "together") toggle(sheet, place);
  if (!sheet.stroke) return;
  sheet.group = sheet.stroke; // one stroke is one step of the undo
  give(sheet, place, sheet.brush);
  sheet.group = null;
  fillBar(sheet);
}

function startSheet(root) {
  const parts = { word: made("div", { class: "word", role: "status" }), classes: made("div", { class: "row", role: "group", "aria-label": "Classes" }),
    acts: made("div", { class: "row", role: "toolbar", "aria-label": "Tools" }), bar: made("div", { class: "bar" }), box: made("div"),
    canvas: made("canvas", { tabindex: "0", role: "application", "aria-label": "Attention maps to label; digits label, arrows move" }),
    about: made("div", { class: "about", "aria-live": "polite" }), why: made("div", { class: "why", "aria-live": "polite" }), status: made("span", { class: "status", role: "status" }),
    progress: made("progress", { "aria-label": "Maps done" }) };
  const line = made("div", { class: "row line" });
  line.append(parts.progress, parts.status, parts.about);
  parts.bar.append(parts.word, parts.classes, parts.acts, line, parts.why);
  parts.box.append(parts.canvas);
  root.replaceChildren(parts.bar, parts.box);
  const sheet = /** @type {Sheet} */ ({ root, parts, database: null, batch: "", sequence: 0, outbox: [], left: [], older: [], adopted: [], parked: new Map(),
    saved: 0, verdicts: new Map(), seen: new Set(), touched: new Set(), group: null, stroke: null, out: new Set(), spans: [] });
  root.onkeydown = (press) => { if (press.target.tagName !== "INPUT") onKey(sheet, press); };
  for (const kind of ["pointerdown", "pointermove"]) parts.canvas.addEventListener(kind, (press) => onPointer(sheet, press));
  listen(sheet);
  leaveField(); // which brought the sheet
  return sheet;
}

/** @param {Sheet} sheet */
function listen(sheet) {
  const resized = () => { if (sheet.header) { paintAll(sheet); bringCursor(sheet); } };
  const heard = { pointerup: () => { sheet.stroke = null; }, "atlas-labels": () => open(sheet), resize: resized };
  const seen = () => { if (sheet.database && document.visibilityState === "visible") lookAgain(sheet); }; // another tab was closed, say
  const scrolled = () => { if (sheet.header) look(sheet); };
  const grown = new ResizeObserver(() => { if (sheet.header && !fits(sheet)) resized(); });
  for (const [kind, does] of Object.entries(heard)) window.addEventListener(kind, does);
  const pressed = (press) => onAnyKey(sheet, press);
  const chosen = (press) => { if (press.target.closest("[role=option]")) setTimeout(leaveField, 50); };
  document.addEventListener("pointerup", chosen, true);
  window.addEventListener("keydown", pressed, true); // before Streamlit, which has shortcuts of its own
  document.addEventListener("scroll", scrolled, true);
  document.addEventListener("visibilitychange", seen);
  for (const each of [sheet.root, document.querySelector('[data-testid="stMainBlockContainer"]')]) if (each) grown.observe(each);
  sheet.stop = () => {
    sheet.stopped = true;
    for (const [kind, does] of Object.entries(heard)) window.removeEventListener(kind, does);
    window.removeEventListener("keydown", pressed, true);
    document.removeEventListener("pointerup", chosen, true);
    document.removeEventListener("scroll", scrolled, true);
    document.removeEventListener("visibilitychange", seen);
    grown.disconnect();
    SHEETS.delete(sheet.root);
  };
}
