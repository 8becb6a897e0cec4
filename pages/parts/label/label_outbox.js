// The outbox of the labelling sheet: every event waits here, and in this browser's storage, until the store that it was
// made for acknowledges it. An outbox belongs to one database: another one on the same address never gets its labels.
// In the storage each event has a key of its own, so what one tab takes out is never what another one has put in.

const EVENT = "atlas-event:", UNREADABLE = "atlas-unreadable:", SECRET = "atlas-secret";
const OUTBOX = "atlas-outbox:"; // of before each event had a key: all events of a tab in one list

// Events that the storage did not take, by key: they wait in this window alone, also when the sheet is drawn anew.
const HELD = (window.atlasHeld = window.atlasHeld || new Map());

if (!window.atlasAsks) {
  window.atlasAsks = true;
  window.addEventListener("beforeunload", (leaving) => { if (HELD.size) { leaving.preventDefault(); leaving.returnValue = true; } });
}

const randomName = () => (crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random().toString(16).slice(2)}`);

function stored(key) { try { return localStorage.getItem(key); } catch { return null; } } // a private window has none, perhaps
function store(key, text) { try { localStorage.setItem(key, text); return true; } catch { return false; } } // full, say
function unstore(key) { try { localStorage.removeItem(key); } catch { /* there is nothing in it then */ } }
function storedKeys(prefix) { try { return Object.keys(localStorage).filter((key) => key.startsWith(prefix)); } catch { return []; } }

// What tells this browser's outboxes from those of others: the store keeps only a hash of it. A window never changes it.
function secretOf() {
  const before = stored(SECRET);
  window.atlasSecret = window.atlasSecret || before || randomName();
  if (!before) store(SECRET, window.atlasSecret);
  return window.atlasSecret;
}

// A new outbox for a database, or the one that this tab had for it before.
/** @param {Sheet} sheet */
function openOutbox(sheet, database) {
  if (sheet.database) sheet.parked.set(sheet.database, { batch: sheet.batch, sequence: sheet.sequence, outbox: sheet.outbox });
  const before = sheet.parked.get(database) || { batch: `tab-${randomName()}`, sequence: 0, outbox: [] };
  Object.assign(sheet, before, { database, adopted: [] });
  sheet.left = leftBoxes(sheet);
  sheet.older = oldBoxes(`${OUTBOX}tab-`); // of before outboxes named their database
}

/** @param {Sheet} sheet */
const keyOf = (sheet, batch, event) => `${EVENT}${sheet.database}:${batch}:${event.sequence}`;

/** @param {Sheet} sheet */
function emit(sheet, map, event) {
  const now = performance.now(), { header } = sheet;
  const hint = event.kind === "label" && map.hint ? map.hint : null;
  const full = {
    sequence: ++sheet.sequence, class_set: header.class_set, map_id: map.id, annotator: header.annotator,
    pass: map.pass || header.pass, project: header.project || null, seconds: Math.max(0, Math.round(now - sheet.last)) / 1000, scale: sheet.scale, way: sheet.mode === "together" ? "single" : sheet.mode,
    queue_order: header.order, suggestion: hint ? hint[0] : null, probability: hint ? hint[1] : null,
    classifier: hint ? header.classifier : null, happened: sheet.holding || new Date().toISOString(), ...event,
  };
  sheet.last = now;
  sheet.outbox.push(full);
  HELD.set(keyOf(sheet, sheet.batch, full), full);
  if (!sheet.holding) { storeHeld(); flush(sheet); }
  return `${sheet.batch}:${full.sequence}`;
}

// In the order they were made: no other tab sends a later one without those before it.
function storeHeld() {
  for (const [key, event] of HELD) {
    if (!store(key, JSON.stringify(event))) return;
    HELD.delete(key);
  }
}

const whole = (event) => Boolean(event) && typeof event === "object" && Number.isSafeInteger(event.sequence) && event.sequence > 0;

function readJsonOf(key, good) {
  try {
    const value = JSON.parse(stored(key));
    return good(value) ? value : null;
  } catch { return null; }
}

// What cannot be read is put aside and hides nothing else; where there is no room to, it stays.
function setAside(key) {
  const text = stored(key);
  if (text !== null && store(UNREADABLE + key, text)) unstore(key);
}

// Outboxes that other tabs left behind, or have still; sending them again is harmless.
/** @param {Sheet} sheet */
function leftBoxes(sheet) {
  const prefix = `${EVENT}${sheet.database}:`, boxes = [...oldBoxes(`${OUTBOX}${sheet.database}:`), ...sheet.adopted.map((box) => ({ ...box }))];
  const batches = new Map(boxes.map((box) => [box.batch, box]));
  const add = (key, event) => {
    const batch = key.slice(prefix.length, key.lastIndexOf(":"));
    if (batch === sheet.batch) return;
    if (!batches.has(batch)) batches.set(batch, { batch, events: [] });
    batches.get(batch).events.push(event);
  };
  for (const key of storedKeys(prefix)) {
    const event = readJsonOf(key, whole);
    if (event && key.endsWith(`:${event.sequence}`)) add(key, event);
    else setAside(key);
  }
  for (const [key, event] of HELD) if (key.startsWith(prefix)) add(key, event);
  for (const box of batches.values()) box.events.sort((a, b) => a.sequence - b.sequence);
  return [...batches.values()];
}

function oldBoxes(prefix) {
  const boxes = [];
  for (const key of storedKeys(prefix)) {
    const events = readJsonOf(key, (value) => Array.isArray(value) && value.length && value.every(whole));
    if (events) boxes.push({ key, batch: key.slice(key.lastIndexOf(":") + 1), events });
    else setAside(key);
  }
  return boxes;
}

// Labels from before an update go to this database only when somebody says that they belong to it.
/** @param {Sheet} sheet */
function adoptOlder(sheet) {
  sheet.adopted.push(...sheet.older);
  sheet.older = [];
  sheet.left = leftBoxes(sheet);
  flush(sheet);
  fillBar(sheet);
}

/** @param {Sheet} sheet */
function flush(sheet, more = {}) {
  const { database } = sheet, own = { batch: sheet.batch, events: sheet.outbox };
  const boxes = [...sheet.left, own].filter((box) => box.events.length).map(({ batch, events }) => ({ database, batch, events }));
  showStatus(sheet);
  if (!boxes.length) return;
  send(sheet, { boxes, secret: secretOf(), ...more });
}

/** @param {Sheet} sheet */
function acknowledged(sheet, saved) {
  if (!sheet.database) return;
  const before = sheet.outbox.length, reached = (box) => saved[box.batch] || 0;
  forget(sheet, sheet, sheet.outbox, reached(sheet));
  sheet.outbox = sheet.outbox.filter((event) => event.sequence > reached(sheet));
  sheet.saved += before - sheet.outbox.length;
  const heard = sheet.left.filter((box) => box.events[0].sequence <= reached(box));
  for (const box of heard) forget(sheet, box, box.events, reached(box));
  sheet.adopted = sheet.adopted.filter((box) => (box.events = box.events.filter((event) => event.sequence > reached(box))).length);
  storeHeld(); // there may be room now
  if (heard.length) lookAgain(sheet);
  showStatus(sheet);
}

// Take what the store has out of the storage, each event by its own key.
/** @param {Sheet} sheet */
function forget(sheet, box, events, reached) {
  for (const event of events) {
    if (event.sequence > reached) break;
    unstore(keyOf(sheet, box.batch, event));
    HELD.delete(keyOf(sheet, box.batch, event));
  }
  if (!box.key || stored(box.key) === null) return;
  const later = (readJsonOf(box.key, Array.isArray) || []).filter((event) => whole(event) && event.sequence > reached);
  if (!later.length) unstore(box.key);
  else store(box.key, JSON.stringify(later)); // a tab of before put them in meanwhile
}

// Other tabs may have left more since: what is new among it is sent.
/** @param {Sheet} sheet */
function lookAgain(sheet) {
  const sent = new Set(sheet.left.flatMap((box) => box.events.map((event) => keyOf(sheet, box.batch, event))));
  sheet.left = leftBoxes(sheet);
  if (sheet.left.some((box) => box.events.some((event) => !sent.has(keyOf(sheet, box.batch, event))))) flush(sheet);
}
