// How attention maps are painted: the one drawing path of the map grid and the labelling sheet.
// Plain functions without exports; payload.py puts this text before a component's own script. No host is known here.

// ------------------------------------------------------------ the payload
// 4 bytes: length of the header; the header (JSON, padded to even length); then uint16 weights, 65535 is 1,
// map after map, each rows x columns (query x key), little-endian.

function readPayload(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const size = view.getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const start = bytes.byteOffset + 4 + size;
  const count = (bytes.byteLength - 4 - size) >> 1;
  const weights = start % 2 === 0
    ? new Uint16Array(bytes.buffer, start, count)
    : new Uint16Array(bytes.slice(4 + size).buffer, 0, count);
  return { header, weights };
}

// ------------------------------------------------------------ the theme

// The light theme's colours (.streamlit/config.toml): of files whatever the theme, and of maps that are labelled.
const LIGHT = {
  text: "#22262B", paper: "#FDFCFA", second: "#F1EEE8", border: "#D9D4CA",
  sequential: ["#F6F7F8", "#E0EAF4", "#C6DAEC", "#A5C6E2", "#7DAED6", "#5593C8", "#3476B3", "#1E5998", "#113F76", "#08264F"],
  diverging: ["#0B4F94", "#2F78B7", "#6BA3D3", "#A9CBE8", "#EEF0F1", "#F1F0EE", "#F3C594", "#E79A4D", "#C96F1B", "#8F4A08"],
};

const lightTheme = (theme) => ({ ...theme, ...LIGHT, ink: rampOf(LIGHT.sequential), differences: rampOf(LIGHT.diverging) });

function themeOf(element) {
  const style = getComputedStyle(element);
  const read = (name, otherwise) => style.getPropertyValue("--st-" + name).trim() || otherwise;
  const colours = (name, otherwise) => {
    const found = read(name, "").match(/#[0-9a-fA-F]{3,8}|rgba?\([^)]*\)/g);
    return found && found.length > 1 ? found : otherwise;
  };
  const sequential = colours("chart-sequential-colors", ["#F6F7F8", "#7DAED6", "#08264F"]);
  const diverging = colours("chart-diverging-colors", ["#0B4F94", "#EEF0F1", "#8F4A08"]);
  return {
    text: read("text-color", "#22262B"),
    paper: read("background-color", "#FDFCFA"),
    second: read("secondary-background-color", "#F1EEE8"),
    border: read("border-color", "#D9D4CA"),
    accent: "#D55E00",
    primary: read("primary-color", "#1F5FA8"),
    font: read("font", "sans-serif"),
    sequential,
    ink: rampOf(sequential),
    diverging,
    differences: rampOf(diverging),
    hues: colours("chart-categorical-colors", ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C8C8C", "#B8A400"]),
  };
}

function parseColour(text) {
  if (text[0] === "#") {
    const hex = text.length === 4 ? [...text.slice(1)].map((c) => c + c).join("") : text.slice(1, 7);
    return [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16));
  }
  return text.match(/[\d.]+/g).slice(0, 3).map(Number);
}

// 256 colours, straight lines between the theme's stops; as little-endian RGBA words for ImageData.
function rampOf(colours) {
  const stops = colours.map(parseColour), ramp = new Uint32Array(256);
  for (let k = 0; k < 256; k++) {
    const place = (k / 255) * (stops.length - 1), low = Math.min(Math.floor(place), stops.length - 2);
    const mix = stops[low].map((a, c) => Math.round(a + (stops[low + 1][c] - a) * (place - low)));
    ramp[k] = (255 << 24) | (mix[2] << 16) | (mix[1] << 8) | mix[0];
  }
  return ramp;
}

function cssOf(ramp, level) {
  const word = ramp[Math.max(0, Math.min(255, Math.round(level)))];
  return `rgb(${word & 255},${(word >> 8) & 255},${(word >> 16) & 255})`;
}

function readableOn(ramp, level) {
  const word = ramp[Math.max(0, Math.min(255, Math.round(level)))];
  const [r, g, b] = [word & 255, (word >> 8) & 255, (word >> 16) & 255].map((c) => (c <= 10 ? c / 3295 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#FFFFFF"; // where both contrast equally, 4.6 to 1
}

// ------------------------------------------------------------ tiles

function greatestOf(weights, offset, count) {
  let most = 0;
  for (let k = offset; k < offset + count; k++) if (weights[k] > most) most = weights[k];
  return most;
}

const percentiles = new WeakMap(); // of weights: what was found of each map, which is asked for at every drawing

function percentileOf(weights, offset, count, share) {
  const found = percentiles.get(weights) || percentiles.set(weights, new Map()).get(weights);
  if (!found.has(offset)) found.set(offset, weights.slice(offset, offset + count).sort()[Math.min(count - 1, Math.floor(share * count))]);
  return found.get(offset);
}

// A difference of weights, -1 to 1, is sent as 0 to 65534 with no difference in the middle.
const MIDDLE = 32767;
const signedOf = (number) => (number - MIDDLE) / MIDDLE;

function greatestDifference(numbers, offset, count) {
  let most = 0;
  for (let k = offset; k < offset + count; k++) most = Math.max(most, Math.abs(numbers[k] - MIDDLE));
  return most;
}

// The rows and columns of a map: a number where it is square, else [queries, keys].
const sidesOf = (length) => (typeof length === "number" ? [length, length] : length);

// One map as an ImageData of width x height pixels, which may be one of that size to write over. Where a pixel covers
// several weights it shows the greatest, so that a one-token line stays visible at any size; where a weight covers
// several pixels its edges are sharp. signed: the numbers are differences, and full is the greatest of them in either
// direction.
function tileOf(weights, offset, length, width, height, ramp, full, signed = false, image = new ImageData(width, height)) {
  const pixels = new Uint32Array(image.data.buffer), [rows, columns] = sidesOf(length);
  const middle = signed ? MIDDLE : 0, start = signed ? 127.5 : 0, factor = full > 0 ? (255 - start) / full : 0;
  const from = new Uint16Array(width), to = new Uint16Array(width), strip = new Uint16Array(columns);
  for (let x = 0; x < width; x++) {
    from[x] = Math.floor((x * columns) / width);
    to[x] = Math.max(from[x] + 1, Math.floor(((x + 1) * columns) / width));
  }
  for (let y = 0; y < height; y++) {
    const top = Math.floor((y * rows) / height), bottom = Math.max(top + 1, Math.floor(((y + 1) * rows) / height));
    const first = offset + top * columns;
    for (let k = 0; k < columns; k++) strip[k] = weights[first + k]; // the greatest of each column in these rows
    for (let row = first + columns; row < offset + bottom * columns; row += columns) {
      for (let k = 0; k < columns; k++) {
        const value = weights[row + k], before = strip[k];
        strip[k] = Math.abs(value - middle) > Math.abs(before - middle) ? value : before;
      }
    }
    for (let x = 0; x < width; x++) {
      let shown = strip[from[x]];
      for (let k = from[x] + 1; k < to[x]; k++) if (Math.abs(strip[k] - middle) > Math.abs(shown - middle)) shown = strip[k];
      const level = (start + (shown - middle) * factor + 0.5) | 0; // rounded
      pixels[y * width + x] = ramp[level > 255 ? 255 : level < 0 ? 0 : level];
    }
  }
  return image;
}

// ------------------------------------------------------------ pens: a canvas on screen, or a picture file
// A picture is drawn by calling a pen; both pens have the same five methods that draw. Text is always text, never markup.

function canvasPen(canvas, width, height, scale, theme) {
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const ink = canvas.getContext("2d");
  ink.fillStyle = theme.paper;
  ink.fillRect(0, 0, canvas.width, canvas.height);
  let image = new ImageData(1, 1); // of the last tile: most have one size
  return {
    rect(x, y, w, h, /** @type {{ fill?: string, stroke?: string, line?: number }} */ { fill, stroke, line = 1 }) {
      if (fill) { ink.fillStyle = fill; ink.fillRect(x * scale, y * scale, w * scale, h * scale); }
      if (stroke) {
        ink.strokeStyle = stroke; ink.lineWidth = line * scale;
        ink.strokeRect(x * scale, y * scale, w * scale, h * scale);
      }
    },
    text(string, x, y, { size = 11, align = "left", turn = 0, colour = theme.text, bold = false } = {}) {
      ink.save();
      ink.font = `${bold ? "600 " : ""}${size * scale}px ${theme.font}`;
      ink.fillStyle = colour; ink.textAlign = align; ink.textBaseline = "middle";
      ink.translate(x * scale, y * scale);
      if (turn) ink.rotate((turn * Math.PI) / 180);
      ink.fillText(string, 0, 0);
      ink.restore();
    },
    wide(string, size, bold = false) {
      ink.font = `${bold ? "600 " : ""}${size}px ${theme.font}`;
      return ink.measureText(string).width;
    },
    line(x, y, toX, toY, { colour, width = 1, alpha = 1 }) {
      ink.globalAlpha = alpha; ink.strokeStyle = colour; ink.lineWidth = width * scale;
      ink.beginPath(); ink.moveTo(x * scale, y * scale); ink.lineTo(toX * scale, toY * scale); ink.stroke();
      ink.globalAlpha = 1;
    },
    tile(x, y, w, h, weights, offset, length, ramp, full, alpha = 1, signed = false) {
      const left = Math.round(x * scale), top = Math.round(y * scale);
      const wide = Math.max(1, Math.round((x + w) * scale) - left), high = Math.max(1, Math.round((y + h) * scale) - top);
      if (image.width !== wide || image.height !== high) image = new ImageData(wide, high);
      ink.putImageData(tileOf(weights, offset, length, wide, high, ramp, full, signed, image), left, top);
      if (alpha < 1) {
        ink.globalAlpha = 1 - alpha; ink.fillStyle = theme.paper; ink.fillRect(left, top, wide, high); ink.globalAlpha = 1;
      }
    },
    gradient(x, y, w, h, ramp) {
      const fill = ink.createLinearGradient(x * scale, 0, (x + w) * scale, 0);
      for (let k = 0; k <= 16; k++) fill.addColorStop(k / 16, cssOf(ramp, (k / 16) * 255));
      ink.fillStyle = fill;
      ink.fillRect(x * scale, y * scale, w * scale, h * scale);
    },
  };
}

const VECTOR_TOKENS = 64; // a longer map is a picture of pixels in the file, which a path a cell would make too large

function svgPen(width, height, theme) {
  const space = "http://www.w3.org/2000/svg", root = document.createElementNS(space, "svg");
  const add = (name, attributes, text) => {
    const made = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    root.appendChild(made);
    return made;
  };
  for (const [key, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) root.setAttribute(key, value);
  add("rect", { width, height, fill: theme.paper });
  const picture = (x, y, w, h, image, alpha) => {
    const canvas = document.createElement("canvas");
    canvas.width = image.width; canvas.height = image.height;
    canvas.getContext("2d").putImageData(image, 0, 0);
    add("image", { x, y, width: w, height: h, href: canvas.toDataURL("image/png"), opacity: alpha,
      preserveAspectRatio: "none", "image-rendering": "pixelated" });
  };
  return {
    root,
    rect: (x, y, w, h, { fill = "none", stroke = "none", line = 1 }) =>
      add("rect", { x, y, width: w, height: h, fill, stroke, "stroke-width": line }),
    text: (string, x, y, { size = 11, align = "left", turn = 0, colour = theme.text, bold = false } = {}) =>
      add("text", { "font-size": size, "font-family": "sans-serif", fill: colour, "dominant-baseline": "central",
        "font-weight": bold ? 600 : 400, "text-anchor": { left: "start", center: "middle", right: "end" }[align],
        transform: `translate(${x},${y}) rotate(${turn})` }, string),
    line: (x, y, toX, toY, { colour, width = 1, alpha = 1 }) =>
      add("line", { x1: x, y1: y, x2: toX, y2: toY, stroke: colour, "stroke-width": width, "stroke-opacity": alpha.toFixed(3) }),
    tile(x, y, w, h, weights, offset, length, ramp, full, alpha = 1, signed = false) {
      const [rows, columns] = sidesOf(length), image = tileOf(weights, offset, length, columns, rows, ramp, full, signed);
      if (Math.max(rows, columns) > VECTOR_TOKENS) return picture(x, y, w, h, image, alpha);
      for (const [fill, d] of pathsOf(image)) {
        add("path", { d, fill, opacity: alpha, "shape-rendering": "crispEdges", transform: `translate(${x},${y}) scale(${w / columns},${h / rows})` });
      }
      return undefined;
    },
    gradient(x, y, w, h, ramp) {
      const fill = add("linearGradient", { id: `scale-${root.childElementCount}` });
      for (let k = 0; k <= 16; k++) {
        const stop = document.createElementNS(space, "stop");
        stop.setAttribute("offset", String(k / 16)); stop.setAttribute("stop-color", cssOf(ramp, (k / 16) * 255));
        fill.append(stop);
      }
      add("rect", { x, y, width: w, height: h, fill: `url(#${fill.id})` });
    },
  };
}

// The cells of a picture as one path a colour, equal neighbours of a row in one step; the first colour is the ground.
function pathsOf({ data, width, height }) {
  const pixels = new Uint32Array(data.buffer), runs = new Map(), counts = new Map();
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width;) {
      const colour = pixels[y * width + x], from = x;
      while (x < width && pixels[y * width + x] === colour) x += 1;
      counts.set(colour, (counts.get(colour) || 0) + x - from);
      runs.set(colour, `${runs.get(colour) || ""}M${from} ${y}h${x - from}v1h${from - x}z`);
    }
  }
  const [ground] = [...counts].sort((a, b) => b[1] - a[1])[0];
  runs.delete(ground);
  return [[ground, `M0 0h${width}v${height}h${-width}z`], ...runs].map(([colour, d]) => [cssOf([colour], 0), d]);
}

// The scale, drawn beside every picture: what the two ends mean.
function drawLegend(pen, theme, x, y, { perMap = "", width = 160, full = 1, signed = false } = {}) {
  pen.text(signed ? "difference" : "weight", x, y + 6, { size: 11 });
  const left = x + (signed ? 62 : 44);
  pen.gradient(left, y, width, 11, signed ? theme.differences : theme.ink);
  pen.rect(left, y, width, 11, { stroke: theme.border });
  if (signed) {
    if (!full) return pen.text("no difference", left + width / 2, y + 21, { size: 10, align: "center" });
    const most = perMap ? "each map\u2019s greatest" : full === 1 ? "1" : full.toPrecision(2);
    pen.text(perMap ? most : `+${most}`, left + width, y + 21, { size: 10, align: "right" });
    pen.text(perMap ? "" : `\u2212${most}`, left, y + 21, { size: 10 });
    return pen.text("0", left + width / 2, y + 21, { size: 10, align: "center" });
  }
  const ends = perMap ? ["0", perMap] : ["0", full === 1 ? "1" : full.toPrecision(2)];
  pen.text(ends[0], left, y + 21, { size: 10, align: "center" });
  pen.text(ends[1], left + width, y + 21, { size: 10, align: perMap ? "right" : "center" });
  return perMap ? undefined : pen.text((full / 2).toPrecision(1), left + width / 2, y + 21, { size: 10, align: "center" });
}

const LEGEND_HEIGHT = 34;

function shortened(text, most) {
  const letters = [...text];
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : text;
}

function saveBlob(blob, name) {
  const link = document.createElement("a"), address = URL.createObjectURL(blob);
  link.href = address; link.download = name; link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
