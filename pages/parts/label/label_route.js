// How the sheet speaks with the server: labels, and the maps of a project, go through doors of their own
// (team/http_routes.py), so that no page runs at a label. One request at a time; what failed is sent again until the store
// acknowledges it.

const SLOWEST = 5000; // ms between two tries
const VERDICT = 72; // pixels of the map beside its verdict
const AT_ONCE = 200; // events of an outbox in one request; the next ones go when the store has them
const LASTING = 60000; // characters of a request that goes on when the tab is closed: a browser takes no longer one

const doorOf = (name) => new URL(`team/${name}`, location.href.split("?")[0]).href;

function tokenOf() {
  const found = document.cookie.split("; ").find((one) => one.startsWith("_streamlit_xsrf="));
  return found ? decodeURIComponent(found.slice("_streamlit_xsrf=".length)).replace(/^"|"$/g, "") : "";
}

function post(name, asked) {
  const body = JSON.stringify(asked);
  return fetch(doorOf(name), { method: "POST", credentials: "same-origin", body, keepalive: body.length < LASTING,
    headers: { "Content-Type": "application/json", "X-Xsrftoken": tokenOf() } });
}

// The first events of each outbox: after a long outage a whole one is more than a request may hold.
const earliestOf = (sent) => ({ ...sent, boxes: sent.boxes.map((box) => ({ ...box, events: box.events.slice(0, wholeSteps(box.events)) })) });

// At most so many that no step of several maps is divided: its events have one time.
function wholeSteps(events) {
  let count = Math.min(AT_ONCE, events.length);
  while (count && count < events.length && events[count].happened === events[count - 1].happened) count--;
  return count || AT_ONCE;
}

// Send what waits; of several calls while one is on its way, the last one goes after it.
/** @param {Sheet} sheet */
async function send(sheet, sent) {
  sheet.unsent = sent;
  if (sheet.sending) return;
  sheet.sending = true;
  let wait = 250;
  while (sheet.unsent && !sheet.stopped) {
    const whole = sheet.unsent, body = earliestOf(whole);
    sheet.unsent = null;
    try {
      const answer = await post("labels", body), reply = await answer.json();
      if (!answer.ok) { sheet.word = reply.refused; showWord(sheet); throw new Error(reply.refused); } // signed out, say
      heard(sheet, reply);
      const more = reply.more || whole.boxes.some((box) => box.events.length > AT_ONCE);
      const went = Object.keys(reply.acknowledged || {}).length > 0;
      if (more && went && !reply.refused) flush(sheet, whole.drop ? { drop: true } : {});
      if (reply.again) throw new Error(reply.refused); // the store takes nothing now: later, perhaps
      wait = 250;
    } catch {
      sheet.unsent = sheet.unsent || whole;
      await new Promise((done) => { setTimeout(done, wait); });
      wait = Math.min(SLOWEST, 2 * wait);
    }
  }
  sheet.sending = false;
  if (!sheet.stopped) onwards(sheet);
}

// The next maps of the queue, once the store has what was said of these.
/** @param {Sheet} sheet */
function askMore(sheet) {
  if (sheet.header.project) { fetchMaps(sheet); return; }
  sheet.asking = true;
  if (!sheet.sending) onwards(sheet);
}

// What the server says of the labels: which it has, what was right, and how the person stands.
/** @param {Sheet} sheet */
function heard(sheet, reply) {
  acknowledged(sheet, reply.acknowledged || {});
  for (const one of reply.feedback || []) {
    showVerdict(sheet, one);
    sheet.told = one.right ? `Right: ${one.known}.` : `You said ${one.given || "nothing"}; it is ${one.known}: ${one.eye}`;
    sheet.root.dataset.feedback = one.right ? "right" : "wrong";
  }
  sheet.refused = reply.refused || "";
  sheet.storeRefuses = Boolean(reply.again); // everything, now: nothing of it need be dropped
  sheet.root.dataset.refused = sheet.refused;
  if (reply.word !== undefined) sheet.word = reply.word;
  showWord(sheet);
}

// A small picture of the map that a verdict is of: by then the next one is on the sheet.
/** @param {Sheet} sheet */
function showVerdict(sheet, { map_id: id, right }) {
  const map = sheet.header.maps[sheet.index.get(id)];
  sheet.verdicts.set(id, right);
  sheet.toldOf = null;
  if (!map) return;
  const canvas = made("canvas", { class: "verdict", role: "img", "aria-label": `The map that this is of, L${map.layer + 1}H${map.head + 1}` });
  const pen = canvasPen(canvas, VERDICT, VERDICT, window.devicePixelRatio || 1, sheet.theme);
  canvas.style.width = canvas.style.height = `${VERDICT}px`;
  pen.tile(0, 0, VERDICT, VERDICT, sheet.weights, map.offset, map.length, GROUND, sheet.scale === "absolute" ? 65535 : Math.max(1, map.maximum * 65535));
  pen.rect(0, 0, VERDICT, VERDICT, { stroke: right ? "#009E73" : "#D55E00", line: 5 });
  sheet.toldOf = { canvas, name: `L${map.layer + 1}H${map.head + 1}` };
  if (sheet.mode !== "single") repaint(sheet, sheet.index.get(id));
}

/** @param {Sheet} sheet */
const allDecided = (sheet) => Boolean(sheet.header.project) && sheet.header.maps.every((map) => stateOf(sheet, map.id));

// When everything on a project's sheet is decided and stored, the next maps come; elsewhere when they are asked for.
/** @param {Sheet} sheet */
function onwards(sheet) {
  if (sheet.asking) sheet.ask(Date.now());
  sheet.asking = false;
  if (!sheet.header || sheet.refused || !sheet.header.maps.length) return;
  if (allDecided(sheet) && !sheet.outbox.length) fetchMaps(sheet);
}

/** @param {Sheet} sheet */
async function fetchMaps(sheet) {
  if (sheet.fetching) return;
  sheet.fetching = true;
  const began = performance.now(), { project, annotator } = sheet.header;
  try {
    const answer = await post("maps", { project, annotator });
    if ((answer.headers.get("content-type") || "").startsWith("application/json")) {
      sheet.word = (await answer.json()).refused;
    } else {
      const bytes = new Uint8Array(await answer.arrayBuffer());
      sheet.wanted = readPayload(bytes).header.id;
      window.atlasLabels = bytes;
      sheet.fetched = sheet.wanted;
      open(sheet);
      sheet.word = sheet.header.word;
      sheet.root.dataset.fetchMilliseconds = (performance.now() - began).toFixed(1);
    }
  } catch { sheet.word = "The server does not answer; what you labelled waits here and is sent when it does."; }
  sheet.fetching = false;
  showWord(sheet);
}

/** @param {Sheet} sheet */
function showWord(sheet) {
  const { word: line } = sheet.parts, map = sheet.header && sheet.header.maps[sheet.cursor];
  const held = HELD.size ? `This browser's storage takes no more: ${HELD.size} of what you did waits in this tab alone. Leave it open until it is saved.` : "";
  const said = [held, sheet.refused, sheet.word, ...((map && map.said) || [])].filter(Boolean);
  line.replaceChildren(...(sheet.told ? [verdictLine(sheet)] : []), ...said.map((text) => made("div", {}, text)));
  if (sheet.refused && !sheet.storeRefuses) line.append(button("Drop the labels that cannot be kept", "", () => dropRefused(sheet)));
  sheet.root.dataset.word = sheet.word || "";
}

/** @param {Sheet} sheet */
function verdictLine(sheet) {
  const box = made("div", { class: "told" }), { toldOf } = sheet;
  if (toldOf) box.append(toldOf.canvas);
  box.append(made("span", {}, `${toldOf ? `${toldOf.name}, the map before. ` : ""}${sheet.told}`));
  return box;
}

/** @param {Sheet} sheet */
function dropRefused(sheet) {
  sheet.refused = "";
  sheet.memory.decided.clear();
  flush(sheet, { drop: true });
}
