
// One head enlarged: its matrix with tokens, the cell that is pointed at, and the sentence tinted by weight.

const LABEL = { margin: 92, letters: 14, least: 8 }; // tokens beside the enlarged map

function frameOf(pane, width, height = Infinity) {
  const longest = Math.max(...[...pane.tokens, ...pane.keyTokens].map((token) => shortened(token, LABEL.letters).length));
  const sided = (margin) => Math.max(90, Math.min(width - margin - 8, height - margin - 6, 900));
  const wanted = Math.max(50, Math.min(LABEL.margin, 14 + longest * 6.4));
  const most = Math.max(...sides(pane)), labelled = sided(wanted) / most >= LABEL.least, margin = labelled ? wanted : 50; // numbers need little room
  const side = sided(margin), cell = side / pane.length, across = side / pane.keys; // a cell's height and width
  return { margin, side, cell, across, labelled, width: margin + side + 8, height: margin + side + 4 };
}

function drawMatrix(pen, workbench, pane, frame) {
  const { theme, view } = workbench, { margin, side, cell, across } = frame, head = headIn(pane, view.head);
  pen.tile(margin, margin, side, side, workbench.weights, offsetOf(pane, head), sides(pane), rampFor(workbench, pane),
    fullOf(workbench, pane, head), 1, pane.signed);
  pen.rect(margin, margin, side, side, { stroke: theme.border });
  const label = (tokens, start, wide, write) => {
    const size = frame.labelled ? Math.min(12, Math.max(8, wide * 0.85)) : 10, every = frame.labelled ? 1 : Math.ceil(24 / wide);
    tokens.forEach((token, k) => {
      if (k % every === 0) write(frame.labelled ? shortened(token, LABEL.letters) : String(start + k * (pane.block || 1) + 1), margin + (k + 0.5) * wide, size);
    });
  };
  label(pane.tokens, startsOf(pane)[0], cell, (words, middle, size) => pen.text(words, margin - 6, middle, { size, align: "right" }));
  label(pane.keyTokens, startsOf(pane)[1], across, (words, middle, size) => pen.text(words, middle, margin - 6, { size, turn: -90 }));
  pen.text("key →", margin - 8, margin - 22, { size: 9, align: "right" });
  pen.text("query ↓", margin - 8, margin - 9, { size: 9, align: "right" });
}

// What the pointer or the keyboard points at: {q, k}, either may be null (a whole row or column).
function drawCell(workbench, column) {
  const { theme, cell, scale } = workbench, { parts, frame, pane } = column;
  if (!frame) return;
  parts.over.width = frame.width * scale; parts.over.height = frame.height * scale;
  const pointed = cell && (cell.q ?? 0) < pane.length && (cell.k ?? 0) < pane.keys;
  if (!pointed) {
    parts.reading.textContent = column.first ? "Point at a cell or a token to read weights." : "";
    parts.row.replaceChildren();
    return;
  }
  const ink = parts.over.getContext("2d");
  ink.scale(scale, scale);
  ink.strokeStyle = theme.accent; ink.lineWidth = 1.5;
  const { margin, side } = frame;
  const outline = (k, across) => across
    ? ink.strokeRect(margin, margin + k * frame.cell, side, frame.cell) : ink.strokeRect(margin + k * frame.across, margin, frame.across, side);
  if (cell.q !== null) { outline(cell.q, true); flag(ink, theme, column, cell.q, true); }
  if (cell.k !== null) { outline(cell.k, false); flag(ink, theme, column, cell.k, false); }
  describe(workbench, column, cell);
}

// The full token beside the outlined row or column, on its own ground so that it is readable at 128 tokens.
function flag(ink, theme, { frame, pane }, position, across) {
  const words = shortened((across ? pane.tokens : pane.keyTokens)[position], 28), wideness = across ? frame.cell : frame.across;
  ink.save();
  ink.font = `600 12px ${theme.font}`;
  const wide = ink.measureText(words).width + 8, middle = frame.margin + (position + 0.5) * wideness;
  const x = across ? Math.max(0, frame.margin - 4 - wide) : Math.min(Math.max(0, middle - wide / 2), frame.width - wide);
  const y = across ? Math.min(Math.max(9, middle), frame.height - 9) : frame.margin - 12;
  ink.fillStyle = theme.second; ink.fillRect(x, y - 9, wide, 18);
  ink.strokeStyle = theme.accent; ink.lineWidth = 1; ink.strokeRect(x, y - 9, wide, 18);
  ink.fillStyle = theme.text; ink.textBaseline = "middle"; ink.fillText(words, x + 4, y);
  ink.restore();
}

// The tokens before the first query and key, where the pane is a window of a longer map.
const startsOf = (pane) => pane.starts || [0, 0];

// Where a row or column lies, counted from 1: a token, or a block of them.
function placeOf(pane, position, start = 0) {
  const block = pane.block || 1, from = start + position * block + 1;
  return block > 1 ? `${from} to ${Math.min(pane.tokensAll || Infinity, from + block - 1)}` : `${from}`;
}

function weightAt(workbench, pane, q, k, index = headIn(pane, workbench.view.head)) {
  const number = workbench.weights[offsetOf(pane, index) + q * pane.keys + k];
  return pane.signed ? signedOf(number) : number / 65535;
}

function describe(workbench, { parts, pane }, { q, k }) {
  const [firstQuery, firstKey] = startsOf(pane), own = pane.part === "Cross" ? NaN : firstQuery - firstKey;
  const query = (position) => `“${pane.tokens[position]}” (${placeOf(pane, position, firstQuery)})`;
  const key = (position) => `“${pane.keyTokens[position]}” (${placeOf(pane, position, firstKey)})`;
  const { reading } = parts;
  if (q !== null && k !== null) {
    const weight = weightAt(workbench, pane, q, k), sign = pane.signed && weight > 0 ? "+" : "";
    const what = pane.block > 1 ? "greatest weight " : "";
    reading.textContent = `${nameOf(pane, headIn(pane, workbench.view.head))}: from ${query(q)} to ${key(k)}: ${what}${sign}${weight.toFixed(4)}`;
    reading.dataset.weight = weight.toFixed(6);
  } else {
    reading.textContent = q !== null ? `What ${query(q)} attends to (its row)` : `Who attends to ${key(k)} (its column)`;
  }
  const tokens = q !== null ? pane.keyTokens : pane.tokens;
  const weights = tokens.map((_, position) => (q !== null ? weightAt(workbench, pane, q, position) : weightAt(workbench, pane, position, k)));
  showRow(workbench, parts.row, { ...pane, tokens }, weights, q !== null ? q + own : k - own);
}

// The sentence with every token tinted by a weight of its own.
function showRow({ theme, view }, row, pane, weights, self) {
  const ramp = pane.signed ? theme.differences : theme.ink;
  const scale = view.scale === "own" || pane.signed ? Math.max(...weights.map(Math.abs)) || 1 : 1;
  const chips = pane.tokens.map((token, position) => {
    const share = weights[position] / scale, level = Math.min(255, pane.signed ? 127.5 * (1 + share) : share * 255);
    const chip = make("span", { textContent: shortened(token, 24), title: `${token} ${weights[position].toFixed(4)}` });
    chip.style.background = cssOf(ramp, level);
    chip.style.color = readableOn(ramp, level);
    if (position === self) chip.className = "self";
    return chip;
  });
  row.replaceChildren(...chips);
  row.dataset.scale = `colours: ${pane.signed ? `−${scale.toPrecision(2)} to ${scale.toPrecision(2)}` : `0 to ${scale === 1 ? 1 : scale.toPrecision(2)}`}`;
}

function cellAt({ frame, pane }, x, y) {
  const k = Math.floor((x - frame.margin) / frame.across), q = Math.floor((y - frame.margin) / frame.cell);
  const isQuery = q >= 0 && q < pane.length, isKey = k >= 0 && k < pane.keys;
  if (isKey && isQuery) return { q, k };
  if (k < 0 && isQuery) return { q, k: null };
  if (q < 0 && isKey) return { q: null, k };
  return null;
}
