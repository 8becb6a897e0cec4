// The outbox of the labelling sheet: every event waits here, and in this browser's storage, until the store that it was
// made for acknowledges it. An outbox belongs to one database: another one on the same address never gets its labels.

const OUTBOX = "atlas-outbox:", UNREADABLE = "atlas-unreadable:", SECRET = "atlas-secret";

const randomName = () => (crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random().toString(16).slice(2)}`);

// What tells this browser's outboxes from those of others: the store keeps only a hash of it.
function secretOf(sheet) {
  try {
    if (!localStorage.getItem(SECRET)) localStorage.setItem(SECRET, randomName());
    return localStorage.getItem(SECRET);
  } catch { return (sheet.secret = sheet.secret || randomName()); } // a private window without storage
}

// A new outbox for a database, or the one that this tab had for it before.
function openOutbox(sheet, database) {
  if (sheet.database) sheet.parked.set(sheet.database, { batch: sheet.batch, sequence: sheet.sequence, outbox: sheet.outbox });
  const known = sheet.parked.get(database) || { batch: `tab-${randomName()}`, sequence: 0, outbox: [] };
  Object.assign(sheet, known, { database });
  sheet.left = leftOutboxes(`${OUTBOX}${database}:`, keyOf(sheet));
  sheet.older = leftOutboxes(`${OUTBOX}tab-`, ""); // of before outboxes named their database
}

const keyOf = (sheet) => `${OUTBOX}${sheet.database}:${sheet.batch}`;

function emit(sheet, map, event) {
  const now = performance.now(), { header } = sheet;
  const hint = event.kind === "label" && map.hint ? map.hint : null;
  const full = {
    sequence: ++sheet.sequence, class_set: header.class_set, map_id: map.id, annotator: header.annotator,
    pass: map.pass || header.pass, project: header.project || null, seconds: Math.max(0, Math.round(now - sheet.last)) / 1000, scale: sheet.scale, way: sheet.mode,
    queue_order: header.order, suggestion: hint ? hint[0] : null, probability: hint ? hint[1] : null,
    classifier: hint ? header.classifier : null, happened: new Date().toISOString(), ...event,
  };
  sheet.last = now;
  sheet.outbox.push(full);
  keepOutbox(sheet);
  flush(sheet);
  return `${sheet.batch}:${full.sequence}`;
}

function keepOutbox(sheet) {
  try {
    if (sheet.outbox.length) localStorage.setItem(keyOf(sheet), JSON.stringify(sheet.outbox));
    else localStorage.removeItem(keyOf(sheet));
  } catch { /* a private window without storage: the tab itself still keeps the outbox */ }
}

function readOutbox(text) {
  try {
    const events = JSON.parse(text);
    const whole = (event) => event && typeof event === "object" && Number.isSafeInteger(event.sequence) && event.sequence > 0;
    return Array.isArray(events) && events.length && events.every(whole) ? events : null;
  } catch { return null; }
}

// Outboxes that a closed tab left behind; sending them again is harmless. One that cannot be read is put aside.
function leftOutboxes(prefix, own) {
  const boxes = [];
  try {
    for (const key of Object.keys(localStorage)) {
      if (!key.startsWith(prefix) || key === own) continue;
      const text = localStorage.getItem(key), events = readOutbox(text);
      if (events) boxes.push({ key, batch: key.slice(key.lastIndexOf(":") + 1), events });
      else { localStorage.setItem(UNREADABLE + key, text); localStorage.removeItem(key); }
    }
  } catch { /* as above */ }
  return boxes;
}

// Labels from before an update go to this database only when somebody says that they belong to it.
function adoptOlder(sheet) {
  sheet.left.push(...sheet.older);
  sheet.older = [];
  flush(sheet);
  fillBar(sheet);
}

function flush(sheet, more = {}) {
  const { database } = sheet, own = { batch: sheet.batch, events: sheet.outbox };
  const boxes = [...sheet.left, own].filter((box) => box.events.length).map(({ batch, events }) => ({ database, batch, events }));
  showStatus(sheet);
  if (!boxes.length) return;
  const sent = { boxes, secret: secretOf(sheet), ...more };
  if (sheet.header && sheet.header.project) sendByDoor(sheet, sent);
  else sheet.send(sent);
}

function acknowledged(sheet, saved) {
  const own = saved[sheet.batch] || 0;
  const before = sheet.outbox.length;
  sheet.outbox = sheet.outbox.filter((event) => event.sequence > own);
  sheet.saved += before - sheet.outbox.length;
  if (sheet.database) keepOutbox(sheet);
  sheet.left = sheet.left.filter((box) => {
    const gone = (saved[box.batch] || 0) >= Math.max(...box.events.map((event) => event.sequence));
    if (gone) try { localStorage.removeItem(box.key); } catch { /* as above */ }
    return !gone;
  });
  showStatus(sheet);
}

