
// Heads as lines from words to words (the head view of BertViz, Vig 2019): queries left, keys right, a colour a head,
// and what each word receives from all of them together.

const LINE_ROW = { most: 24, least: 12 }, WORDS_WIDE = 110, THICKEST = 4;

function linesFrame(pane, width, height) {
  const row = Math.max(LINE_ROW.least, Math.min(LINE_ROW.most, Math.floor((height - 26) / Math.max(...sides(pane)))));
  const wide = Math.min(width, 520), words = Math.min(WORDS_WIDE, wide * 0.3);
  return { row, words, width: wide, height: 22 + row * Math.max(...sides(pane)) + 4, top: 22 };
}

const middleOf = (frame, position) => frame.top + (position + 0.5) * frame.row;

// pointed: {side: "from" or "to", position} keeps the lines of one word; null draws all.
function drawLines(pen, workbench, pane, frame, pointed = null) {
  const { theme, view } = workbench, left = frame.words, right = frame.width - frame.words;
  pen.text("from (query)", left - 6, 10, { size: 10, align: "right" });
  pen.text("to (key)", right + 6, 10, { size: 10 });
  chosenHeads(view).forEach((name, place) => {
    const colour = theme.hues[place % theme.hues.length], index = headIn(pane, name);
    if (index === null) return; // of two models that are compared, the other one has it
    for (const { q, k, weight } of linesOf(workbench, pane, index, pointed)) {
      pen.line(left, middleOf(frame, q), right, middleOf(frame, k), { colour, width: 0.6 + THICKEST * weight, alpha: Math.min(1, 0.12 + weight) });
    }
  });
  const size = Math.min(13, Math.max(9, frame.row - 3)), bold = (side, position) => pointed?.side === side && pointed.position === position;
  const write = (tokens, side, x, align) => tokens.forEach((token, position) =>
    pen.text(shortened(token, LABEL.letters), x, middleOf(frame, position), { size, align, bold: bold(side, position) }));
  write(pane.tokens, "from", left - 6, "right");
  write(pane.keyTokens, "to", right + 6, "left");
}

// The weights of a head that are drawn, as {q, k, weight}.
function linesOf(workbench, pane, index, pointed) {
  const { view, weights } = workbench, start = offsetOf(pane, index), least = view.line * 65535, drawn = [];
  for (let q = 0; q < pane.length; q++) {
    if (pointed?.side === "from" && pointed.position !== q) continue;
    for (let k = 0; k < pane.keys; k++) {
      if (pointed?.side === "to" && pointed.position !== k) continue;
      const number = weights[start + q * pane.keys + k];
      if (number >= least && number > 0) drawn.push({ q, k, weight: number / 65535 });
    }
  }
  return drawn;
}

// Mean over queries and over the chosen heads of the weight on each token; even attention gives 1 / keys.
function received({ view, weights }, pane) {
  const heads = chosenHeads(view).map((name) => headIn(pane, name)).filter((index) => index !== null), sums = new Float64Array(pane.keys);
  for (const index of heads) {
    const start = offsetOf(pane, index);
    for (let k = 0; k < areaOf(pane); k++) sums[k % pane.keys] += weights[start + k];
  }
  return [...sums].map((sum) => sum / 65535 / pane.length / Math.max(1, heads.length));
}

function wordAt(frame, x, y, [queries, keys]) {
  const position = Math.floor((y - frame.top) / frame.row);
  if (position < 0) return null;
  if (x < frame.words) return position < queries ? { side: "from", position } : null;
  return x > frame.width - frame.words && position < keys ? { side: "to", position } : null;
}

function showReceived(workbench, { parts, pane }) {
  if (pane.block > 1) {
    parts.reading.textContent = "A line is the greatest weight from one block of tokens to another; what each token receives was left out.";
    return parts.row.replaceChildren();
  }
  const heads = chosenHeads(workbench.view).filter((name) => headIn(pane, name) !== null), weights = received(workbench, pane);
  const most = weights.indexOf(Math.max(...weights));
  parts.reading.textContent = `What each token receives, mean of ${heads.length === 1 ? "1 head" : `${heads.length} heads`}: `
    + `most “${pane.keyTokens[most]}” ${weights[most].toFixed(2)}; even attention gives ${(1 / pane.keys).toFixed(2)}`;
  return showRow({ ...workbench, view: { ...workbench.view, scale: "own" } }, parts.row, { ...pane, tokens: pane.keyTokens }, weights, -1);
}
