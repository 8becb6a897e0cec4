// How the labelling sheet is laid out and painted: as many maps as the window holds, or one map over all of it with its
// tokens. A label is a band below its map and a frame around it, a suggestion a frame and a corner; nothing lies on a map.

const GAP = 12, STRIP = 16, FOOT = 15, LEAST_TILE = 112, LEAST_HEIGHT = 300, BELOW = 30, MOST_TOKEN = 14, TOGETHER_MOST = 24;
const GROUND = rampOf(LIGHT.sequential); // in every theme: what a label says must not depend on the reader's

// The height from the canvas to the window's lower edge, wherever the page is scrolled to.
/** @param {Sheet} sheet */
function roomOf(sheet) {
  const main = document.querySelector('[data-testid="stMain"]'), { canvas } = sheet.parts;
  const top = canvas.getBoundingClientRect().top + (main ? main.scrollTop : 0);
  return Math.max(LEAST_HEIGHT, window.innerHeight - top - BELOW);
}

/** @param {Sheet} sheet */
const widthOf = (sheet) => Math.max(280, sheet.parts.box.clientWidth);
/** @param {Sheet} sheet */
const fits = (sheet) => sheet.layout.width === widthOf(sheet) && Math.abs(sheet.layout.room - roomOf(sheet)) < 5;

/** @param {Sheet} sheet */
function layoutOf(sheet) {
  const width = widthOf(sheet), room = roomOf(sheet);
  return { ...(sheet.mode === "single" ? singleLayout(sheet, width, room) : sheetLayout(sheet, width, room)), width, room };
}

/** @param {Sheet} sheet */
function sheetLayout(sheet, width, room) {
  const widest = Math.max(2, Math.min(16, Math.floor(width / (LEAST_TILE + GAP)))), together = sheet.mode === "together";
  for (let columns = together ? 2 : widest; ; columns += together ? 1 : -1) {
    const tile = Math.floor((width - GAP) / columns) - GAP, pitch = tile + STRIP + FOOT + GAP;
    const rows = Math.max(1, Math.floor(room / pitch)), count = columns * rows, layout = { columns, tile, left: GAP / 2, pitch, height: rows * pitch };
    if (together && (count >= TOGETHER_MOST || columns >= widest)) return { ...layout, count: Math.min(count, TOGETHER_MOST) };
    if (!together && (count <= sheet.header.per_sheet || columns <= 2)) return { ...layout, count };
  }
}

/** @param {Sheet} sheet */
function singleLayout(sheet, width, room) {
  const map = sheet.header.maps[sheet.cursor], tokens = (map && map.tokens) || [];
  const longest = Math.max(0, ...tokens.map((token) => shortened(token, MOST_TOKEN).length));
  const margin = tokens.length ? Math.min(100, 16 + longest * 6.2) : 4;
  const tile = Math.max(120, Math.floor(Math.min(width - margin - GAP, room - margin - STRIP - FOOT)));
  return { columns: 1, tile, left: margin, margin, pitch: room, count: 1, height: tile + margin + STRIP + FOOT };
}

/** @param {Sheet} sheet */
function placeOf(sheet, place) {
  const k = place - firstOf(sheet), { columns, tile, pitch, left, margin = 0 } = sheet.layout;
  return { x: left + (k % columns) * (tile + GAP), y: margin + STRIP + Math.floor(k / columns) * pitch };
}

/** @param {Sheet} sheet */
function paintAll(sheet) {
  const began = performance.now(), { parts, theme } = sheet;
  sheet.layout = layoutOf(sheet);
  const { width, height } = sheet.layout;
  parts.canvas.style.width = `${width}px`; parts.canvas.style.height = `${height}px`;
  sheet.pen = canvasPen(parts.canvas, width, height, window.devicePixelRatio || 1, theme);
  onSheet(sheet).forEach((_, k) => paintMap(sheet, firstOf(sheet) + k));
  look(sheet); fillBar(sheet); showStatus(sheet);
  sheet.root.dataset.sheetMilliseconds = (performance.now() - began).toFixed(1);
}

/** @param {Sheet} sheet */
function repaint(sheet, place) {
  const first = firstOf(sheet);
  if (sheet.holding || place < first || place >= first + perSheet(sheet)) return; // painted after the step
  if (sheet.mode === "single") return paintAll(sheet); // another map may have other margins
  const { x, y } = placeOf(sheet, place), { tile } = sheet.layout, edge = GAP / 2;
  sheet.pen.rect(x - edge, y - STRIP, tile + 2 * edge, tile + STRIP + FOOT + edge, { fill: sheet.theme.paper });
  paintMap(sheet, place);
  showStatus(sheet);
}

/** @param {Sheet} sheet */
function paintMap(sheet, place) {
  const { header, theme, pen } = sheet, map = header.maps[place], { tile } = sheet.layout, { x, y } = placeOf(sheet, place);
  const state = stateOf(sheet, map.id), given = state && state.kind === "label" ? classOf(sheet, state.class) : null;
  const among = state ? [] : amongOf(sheet, map), hinted = !state && map.hint && !among.length ? classOf(sheet, map.hint[0]) : null;
  const full = sheet.scale === "absolute" ? 65535 : Math.max(1, map.maximum * 65535);
  const out = sheet.mode === "together" && !state && sheet.out.has(map.id), marked = sheet.mode === "together" && !state && !out;
  pen.tile(x, y, tile, tile, sheet.weights, map.offset, map.length, GROUND, full, out || (state && state.kind === "skip") ? 0.35 : 1);
  if (sheet.mode === "single") paintTokens(sheet, map, x, y, tile);
  paintSeparators(sheet, map, x, y, tile);
  const shade = given ? given.colour : hinted ? hinted.colour : marked ? theme.text : theme.border, line = given ? 4 : hinted || marked ? 2 : 1;
  pen.rect(x - line / 2, y - line / 2, tile + line, tile + line, { stroke: shade, line });
  if (hinted) paintCorner(sheet, hinted, x + tile, y);
  const chance = hinted ? `${(map.hint[1] * 100).toFixed(0)} %` : "";
  const said = given ? [given.title] : state ? ["skipped"] : hinted ? [`${hinted.title}? ${chance}`, `${hinted.title}?`, `${hinted.key || hinted.title[0]}? ${chance}`]
    : among.length ? [`${among.map((cls) => cls.title).join(" or ")}?`, `${among.map((cls) => cls.key || cls.title).join(" or ")}?`] : out ? ["unmarked"] : [""];
  if (given) pen.rect(x - 2, y + tile, tile + 4, FOOT, { fill: shade });
  fitted(pen, said, x + 3, y + tile + 8, tile - 6, { colour: given ? textOn(shade) : theme.text, bold: Boolean(given) });
  if (sheet.mode !== "single") fitted(pen, captionsOf(sheet, map), x, y - 9, tile - (hinted ? 18 : 0), {});
  if (place === sheet.cursor && sheet.mode !== "single") pen.rect(x - 4, y - 4, tile + 8, tile + 8, { stroke: theme.text, line: 3 });
}

// What stands above a map, from long to short.
/** @param {Sheet} sheet */
function captionsOf(sheet, map) {
  const right = sheet.verdicts && sheet.verdicts.get(map.id), mark = `${right === undefined ? "" : right ? "✓ " : "✗ "}${sheet.marks.has(map.id) ? "⚑ " : ""}`;
  const most = `${mark}max ${map.maximum.toFixed(2)}`;
  return [`${most} · ${map.length} tokens`, `${most} · ${map.length} tok.`, most];
}

// The first of these texts that fits whole, rather smaller than cut.
function fitted(pen, texts, x, y, width, look) {
  for (const text of texts) for (const size of [10, 9, 8.5]) {
    if (pen.wide(text, size, look.bold) <= width) return pen.text(text, x, y, { ...look, size });
  }
  return pen.text(shortened(texts.at(-1), Math.floor(width / 5)), x, y, { ...look, size: 8.5 });
}

// The key of the suggested class, in the corner above the map.
/** @param {Sheet} sheet */
function paintCorner({ pen }, cls, right, y) {
  if (!cls.key) return; // picked by a click alone
  pen.rect(right - 15, y - 15, 15, 14, { fill: cls.colour });
  pen.text(cls.key, right - 7.5, y - 8, { size: 10, align: "center", bold: true, colour: textOn(cls.colour) });
}

/** @param {Sheet} sheet */
function paintSeparators({ pen, theme }, map, x, y, tile) {
  for (const position of map.separators) {
    const at = ((position + 0.5) / map.length) * tile;
    pen.rect(x + at - 1, y - 4, 2, 4, { fill: theme.accent });
    pen.rect(x - 4, y + at - 1, 4, 2, { fill: theme.accent });
  }
}

// Queries at the left, keys above; in a long input every second or third one, so that they can be read.
/** @param {Sheet} sheet */
function paintTokens({ pen }, map, x, y, tile) {
  const cell = tile / map.length, every = Math.ceil(9 / cell), size = Math.max(8, Math.min(12, cell * every * 0.85));
  (map.tokens || []).forEach((token, k) => {
    if (k % every) return;
    const words = shortened(token, MOST_TOKEN), middle = (k + 0.5) * cell;
    pen.text(words, x - 7, y + middle, { size, align: "right" });
    pen.text(words, x + middle, y - 7, { size, turn: -90 });
  });
}

function textOn(colour) {
  const [r, g, b] = parseColour(colour);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 140 ? "#14171C" : "#FFFFFF";
}

// Which maps of the sheet are inside the window now: only what was looked at may be accepted unseen.
/** @param {Sheet} sheet */
function look(sheet) {
  if (!sheet.layout) return;
  const area = sheet.parts.canvas.getBoundingClientRect(), { tile } = sheet.layout, before = sheet.seen.size;
  onSheet(sheet).forEach((map, k) => {
    const top = area.top + placeOf(sheet, firstOf(sheet) + k).y;
    if (top >= -tile / 2 && top + tile / 2 <= window.innerHeight) sheet.seen.add(map.id);
  });
  if (sheet.seen.size !== before) nameRest(sheet);
}

// Scroll as far as the chosen map needs to be whole on the screen.
/** @param {Sheet} sheet */
function bringCursor(sheet) {
  const main = document.querySelector('[data-testid="stMain"]'), { tile } = sheet.layout;
  const top = sheet.parts.canvas.getBoundingClientRect().top + placeOf(sheet, sheet.cursor).y - STRIP;
  const low = top + tile + STRIP + FOOT + GAP - window.innerHeight, high = top - sheet.parts.bar.offsetHeight;
  if (main && low > 0) main.scrollTop += Math.min(low, Math.max(0, high));
  else if (main && high < 0) main.scrollTop += high;
}
