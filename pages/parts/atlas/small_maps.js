// A shelf of small maps, each with a title, its tokens where it has some, and a note below; hover reads a weight.
// data: { id, cell, maps: [{ title, note, tokens, length, weights: 0 to 255 by query and key, most: the weight of 255 }] }

const NAMES = 64, LONGEST = 11, LETTERS = 8, WIDEST = 230, SHELVES = new WeakMap();

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root"), theme = themeOf(root);
  const shown = `${data.id} ${theme.paper}`;
  if (SHELVES.get(root) === shown) return;
  SHELVES.set(root, shown);
  root.replaceChildren(...data.maps.map((map) => figureOf(map, data.cell, theme)));
  root.dataset.painted = data.id;
}

function add(tag, inside, properties = {}) {
  const element = Object.assign(document.createElement(tag), properties);
  inside.append(element);
  return element;
}

function figureOf(map, cell, theme) {
  const figure = document.createElement("figure");
  add("figcaption", figure, { textContent: map.title, className: "title" });
  figure.append(canvasOf(map, Math.max(4, Math.min(cell, Math.floor(WIDEST / map.length))), theme));
  if (map.note) add("figcaption", figure, { textContent: map.note });
  return figure;
}

function canvasOf(map, cell, theme) {
  const { length, weights, tokens } = map, margin = tokens.length ? NAMES : 0, size = margin + length * cell;
  const canvas = document.createElement("canvas"), sharp = Math.max(1, window.devicePixelRatio || 1), pen = canvas.getContext("2d");
  Object.assign(canvas, { width: size * sharp, height: size * sharp });
  canvas.style.width = canvas.style.height = `${size}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${map.title}: ${length} by ${length}, largest weight ${map.most.toFixed(2)}`);
  pen.scale(sharp, sharp);
  for (let k = 0; k < weights.length; k++) {
    pen.fillStyle = cssOf(theme.ink, weights[k]);
    pen.fillRect(margin + (k % length) * cell, margin + Math.floor(k / length) * cell, cell, cell);
  }
  pen.strokeStyle = theme.border;
  pen.strokeRect(margin + 0.5, margin + 0.5, length * cell - 1, length * cell - 1);
  names(pen, tokens, cell, theme);
  canvas.addEventListener("pointermove", (event) => { canvas.title = told(map, margin, cell, event); });
  return canvas;
}

function names(pen, tokens, cell, theme) {
  pen.fillStyle = theme.text;
  pen.font = `${LETTERS}px ${theme.font}`;
  pen.textBaseline = "middle";
  const every = Math.ceil(LETTERS / cell);
  tokens.forEach((token, k) => {
    if (k % every) return; // where cells are too small, only some names have room
    const word = token.length > LONGEST ? `${token.slice(0, LONGEST - 1)}…` : token, middle = NAMES + (k + 0.5) * cell;
    pen.textAlign = "right";
    pen.fillText(word, NAMES - 4, middle);
    pen.save();
    pen.translate(middle, NAMES - 4);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "left";
    pen.fillText(word, 0, 0);
    pen.restore();
  });
}

function told({ length, weights, tokens, most }, margin, cell, event) {
  const query = Math.floor((event.offsetY - margin) / cell), key = Math.floor((event.offsetX - margin) / cell);
  if (Math.min(query, key) < 0 || Math.max(query, key) >= length) return "";
  const name = (k) => (tokens.length ? `“${tokens[k]}” (${k + 1})` : `part ${k + 1}`);
  return `from ${name(query)} to ${name(key)}: ${((weights[query * length + key] / 255) * most).toFixed(2)}`;
}
