// What the labelling sheet knows: a stack of events in the order they were made, a map's state (its last one), what this
// browser remembers of both, and how it likes to see maps.

const LIKES = "atlas-label-likes", GROUPS = "atlas-label-groups";

// What this window decided, by whose work it is: a page that is drawn again may bring maps from before that.
const MEMORIES = (window.atlasLabelMemories = window.atlasLabelMemories || new Map());

function memoryOf(header) {
  const key = [header.database, header.class_set, header.annotator, header.pass, header.project || ""].join("|");
  if (!MEMORIES.has(key)) MEMORIES.set(key, { decided: new Map(), undone: new Set() });
  return MEMORIES.get(key);
}

const keyOfMap = (id, pass) => `${id}|${pass || 1}`;

function readJson(store, key, otherwise) {
  try { return JSON.parse(store.getItem(key)) || otherwise; } catch { return otherwise; }
}

function keepJson(store, key, value) {
  try { store.setItem(key, JSON.stringify(value)); } catch { /* a private window without storage */ }
}

// The scale, and whether one map or a sheet is shown, outlive page and reload.
const modeName = (header) => `${header.mode}_mode`; // by what a queue opens with

/** @param {Sheet} sheet */
function like(sheet, name, value) {
  sheet.likes = { ...sheet.likes, [name]: value };
  keepJson(localStorage, LIKES, sheet.likes);
}

/** @param {Sheet} sheet */
function openQueue(sheet) {
  const { header } = sheet;
  sheet.memory = memoryOf(header);
  sheet.groups = new Map(readJson(sessionStorage, GROUPS, []));
  sheet.likes = readJson(localStorage, LIKES, {});
  sheet.index = new Map(header.maps.map((map, place) => [map.id, place]));
  sheet.stack = []; sheet.steps = new Map(); sheet.counts = {}; sheet.seen = new Set();
  const reached = new Set(header.stack.map((entry) => entry.map_id));
  for (const [id, name] of Object.entries(header.given || {})) { // what is older than the stack reaches
    if (!reached.has(id)) step(sheet, { kind: name ? "label" : "skip", class: name, map_id: id });
  }
  for (const entry of header.stack) {
    if (!sheet.memory.undone.has(entry.event)) push(sheet, { ...entry, group: sheet.groups.get(entry.event) });
  }
  sheet.counts = { ...header.counts };
  const stored = header.maps.filter((map) => stateOf(sheet, map.id)).length;
  sheet.before = Math.max(0, (header.done || 0) - stored); // decided maps of this choice that are not in the queue
  recall(sheet);
  recallWaiting(sheet);
  sheet.out = new Set();
  sheet.spans = [];
  for (const [place, map] of header.maps.entries()) {
    const span = place && header.maps[place - 1].group === map.group ? sheet.spans[place - 1] : { first: place, count: 0 };
    span.count++;
    sheet.spans.push(span);
  }
  sheet.marks = new Set(header.stack.filter((entry) => entry.kind === "flag").map((entry) => entry.map_id));
  sheet.scale = sheet.likes.scale || header.scale;
  sheet.mode = sheet.likes[modeName(header)] || header.mode;
  sheet.brush = null;
  sheet.last = performance.now();
  sheet.root.dataset.sheets = String(Number(sheet.root.dataset.sheets || 0) + 1);
  sheet.cursor = Math.max(0, header.maps.findIndex((map) => !stateOf(sheet, map.id)));
}

// What was decided on a map: its newest label or skip that no undo took back.
/** @param {Sheet} sheet */
const stateOf = (sheet, id) => { const steps = sheet.steps.get(id); return steps && steps.length ? steps[steps.length - 1] : null; };

/** @param {Sheet} sheet */
function step(sheet, entry) {
  if (!sheet.steps.has(entry.map_id)) sheet.steps.set(entry.map_id, []);
  sheet.steps.get(entry.map_id).push(entry);
}

/** @param {Sheet} sheet */
function push(sheet, entry) {
  sheet.stack.push(entry);
  if (entry.kind === "label" || entry.kind === "skip") step(sheet, entry);
}

// An act of now: beside the stack it is remembered, and with it what belongs to the same stroke or batch.
/** @param {Sheet} sheet */
function act(sheet, entry) {
  push(sheet, { ...entry, group: sheet.group });
  if (entry.kind === "label" || entry.kind === "skip") sheet.memory.decided.set(keyOfMap(entry.map_id, entry.pass), sheet.stack.at(-1));
  if (!sheet.group) return;
  sheet.groups.set(entry.event, sheet.group);
  if (!sheet.holding) keepGroups(sheet);
}

/** @param {Sheet} sheet */
const keepGroups = (sheet) => keepJson(sessionStorage, GROUPS, [...sheet.groups].slice(-500));

// Everything that `work` does is one step of the undo.
/** @param {Sheet} sheet */
function asBatch(sheet, work) {
  sheet.group = randomName();
  try { atOnce(sheet, work); } finally { sheet.group = null; keepGroups(sheet); }
}

// The events of `work` are stored and sent together.
/** @param {Sheet} sheet */
function atOnce(sheet, work) {
  sheet.holding = new Date().toISOString();
  try { work(); } finally { sheet.holding = null; storeHeld(); flush(sheet); }
}

/** @param {Sheet} sheet */
function recall(sheet) {
  for (const map of sheet.header.maps) {
    const entry = sheet.memory.decided.get(keyOfMap(map.id, map.pass));
    if (!entry || stateOf(sheet, map.id)) continue;
    push(sheet, entry);
    if (!sheet.header.project) count(sheet, entry, 1);
  }
}

// What waits in this browser from before a reload is decided, too: the page that was made meanwhile knows nothing of it.
/** @param {Sheet} sheet */
function recallWaiting(sheet) {
  const { header } = sheet, stored = new Set(header.stack.map((entry) => entry.event));
  const isHere = (event) => event.class_set === header.class_set && event.annotator === header.annotator
    && (event.project || null) === (header.project || null) && passOf(sheet, event.map_id) === (event.pass || 1);
  for (const { batch, events } of sheet.left) {
    for (const event of events.filter(isHere)) {
      const name = `${batch}:${event.sequence}`;
      if (event.kind === "undo") forgetStep(sheet, event.undoes);
      else if (!stored.has(name) && !sheet.memory.undone.has(name)) {
        const entry = { event: name, kind: event.kind, class: event.class, map_id: event.map_id, pass: event.pass };
        if (event.kind !== "note" && event.kind !== "flag") recount(sheet, event.map_id, () => push(sheet, entry));
        else push(sheet, entry);
      }
    }
  }
}

/** @param {Sheet} sheet */
function passOf(sheet, id) {
  const map = sheet.header.maps[sheet.index.get(id)];
  return map && (map.pass || sheet.header.pass || 1);
}

// The counts of classes follow what a map is before and after `work`.
/** @param {Sheet} sheet */
function recount(sheet, id, work) {
  const before = stateOf(sheet, id);
  work();
  if (sheet.header.project) return;
  count(sheet, before, -1);
  count(sheet, stateOf(sheet, id), 1);
}

/** @param {Sheet} sheet */
function forgetStep(sheet, name) {
  const entry = sheet.stack.find((each) => each.event === name);
  if (!entry) return;
  sheet.stack.splice(sheet.stack.indexOf(entry), 1);
  const steps = sheet.steps.get(entry.map_id);
  if (steps && steps.includes(entry)) recount(sheet, entry.map_id, () => steps.splice(steps.indexOf(entry), 1));
}

/** @param {Sheet} sheet */
function count(sheet, entry, change) {
  if (entry && entry.kind === "label") sheet.counts[entry.class] = (sheet.counts[entry.class] || 0) + change;
}

// Take back the newest entry, and with it all of its batch; returns them.
/** @param {Sheet} sheet */
function popBatch(sheet) {
  const entries = [];
  do entries.push(sheet.stack.pop());
  while (entries[0].group && sheet.stack.length && sheet.stack.at(-1).group === entries[0].group);
  atOnce(sheet, () => entries.forEach((entry) => takeBack(sheet, entry)));
  return entries;
}

/** @param {Sheet} sheet */
function takeBack(sheet, entry) {
  sheet.memory.decided.delete(keyOfMap(entry.map_id, entry.pass));
  sheet.memory.undone.add(entry.event);
  emit(sheet, { id: entry.map_id, pass: entry.pass }, { kind: "undo", undoes: entry.event });
  const steps = sheet.steps.get(entry.map_id);
  if (steps && steps.at(-1) === entry) { steps.pop(); count(sheet, entry, -1); count(sheet, stateOf(sheet, entry.map_id), 1); }
  if (entry.kind === "flag") sheet.marks.delete(entry.map_id);
}

/** @param {Sheet} sheet */
const classOf = (sheet, name) => sheet.header.classes.find((cls) => cls.name === name);
// The maps on the screen. A group that the window does not hold is divided evenly.
/** @param {Sheet} sheet */
function shownOf(sheet) {
  const most = sheet.mode === "single" ? 1 : sheet.layout.count, span = sheet.spans[sheet.cursor];
  if (sheet.mode !== "together" || !span) return { first: Math.floor(sheet.cursor / most) * most, count: most };
  const count = Math.ceil(span.count / Math.ceil(span.count / most)), first = sheet.cursor - ((sheet.cursor - span.first) % count);
  return { first, count: Math.min(count, span.first + span.count - first) };
}

/** @param {Sheet} sheet */
const perSheet = (sheet) => shownOf(sheet).count;
/** @param {Sheet} sheet */
const firstOf = (sheet) => shownOf(sheet).first;
/** @param {Sheet} sheet */
const manyMode = (sheet) => (sheet.header.mode === "together" ? "together" : "sheet");
/** @param {Sheet} sheet */
const onSheet = (sheet) => sheet.header.maps.slice(firstOf(sheet), firstOf(sheet) + perSheet(sheet));
/** @param {Sheet} sheet */
const decidedOf = (sheet) => sheet.before + sheet.header.maps.filter((map) => stateOf(sheet, map.id)).length;
/** @param {Sheet} sheet */
const allOf = (sheet) => Math.max(sheet.header.total || 0, sheet.before + sheet.header.maps.length);

// The classes of the prediction set where no single class is likely.
/** @param {Sheet} sheet @param {LabelMap} map */
const amongOf = (sheet, map) => ((map.hint && map.hint[3]) || []).map((name) => classOf(sheet, name)).filter(Boolean);

// What "accept the rest" would take: suggestions on maps of this sheet that were on screen and have no label.
/** @param {Sheet} sheet */
const restOf = (sheet) => onSheet(sheet).filter((map) => map.hint && !amongOf(sheet, map).length && sheet.seen.has(map.id) && !stateOf(sheet, map.id));
// What one key labels together: maps of the group that were on screen, are marked and have no label.
/** @param {Sheet} sheet */
const alikeOf = (sheet) => (sheet.mode !== "together" ? [] : onSheet(sheet).filter((map) => sheet.seen.has(map.id) && !sheet.out.has(map.id) && !stateOf(sheet, map.id)));
