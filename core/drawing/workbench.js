
// The workbench: a bar, all heads at the left, one head at the right; or two stacks of maps and their difference as
// three columns under one set of controls. It knows no host: startWorkbench takes {tell(view), room()}, where tell
// hears of the view and room says how many pixels high the workbench may be.

const USUAL = { head: null, also: [], look: "map", score: "", show: "layers", least: 0, scale: "absolute", line: 0.1 };
const SMALLEST = 340, STACKED = 620, BESIDE = 16; // pixels: height of the workbench, width below which parts lie under each other

function startWorkbench(root, host) {
  const workbench = { root, host, header: null, columns: [], cell: null, pinned: false, pointed: null, view: { ...USUAL } };
  workbench.parts = makeBar(root);
  listen(workbench);
  return workbench;
}

// Show a payload (map_drawing.js). Maps that are shown already are left alone, whatever view they came with.
function openPayload(workbench, bytes, theme) {
  openMaps(workbench, readPayload(bytes), theme);
}

// The same for a payload that is read already.
function openMaps(workbench, { header, weights }, theme) {
  const look = JSON.stringify([theme.paper, theme.text, theme.sequential]);
  if (header.id === workbench.header?.id && look === workbench.look) return;
  const fresh = !workbench.header;
  Object.assign(workbench, { header, weights, theme, look, cell: null, pinned: false, pointed: null });
  header.panes.forEach(fillPane);
  header.panes.forEach((pane) => { if (pane.signed) pane.full = greatestDifference(weights, pane.offset, pane.layers * pane.heads * areaOf(pane)); });
  if (fresh) Object.assign(workbench.view, viewOf(header.usual, header.panes), viewOf(header.opened, header.panes));
  const closed = fitView(workbench);
  makeColumns(workbench);
  fillControls(workbench);
  draw(workbench);
  if (closed) tellSoon(workbench); // the address names a head that this model does not have
}

// What square maps of one sentence, whose layers see all of it, leave out of their header.
function fillPane(pane) {
  pane.keyTokens = pane.keyTokens || pane.tokens;
  pane.keys = pane.keyTokens.length;
  pane.windows = pane.windows || [];
  pane.attending = pane.attending || [];
  const [firstQuery, firstKey] = startsOf(pane);
  pane.startsAtFirst = firstQuery === 0 && firstKey === 0 && pane.keys === pane.tokens.length; // a sink is one key more
  for (const score of Object.values(pane.scores)) score.even = [score.even].flat();
}

// A view as a link has it ({head: "L1H6", also: "L2H1,L3H4", ...}) as the workbench has it.
function viewOf(opened, panes) {
  const view = {};
  for (const name of ["look", "score", "show", "scale"]) if (opened[name] !== undefined) view[name] = opened[name];
  for (const name of ["least", "line"]) if (opened[name] !== undefined) view[name] = Math.min(1, Math.max(0, Number(opened[name]) || 0));
  const holding = (name) => panes.find((pane) => indexOf(pane, name) !== null);
  const named = (name) => (holding(name) ? placeNameOf(holding(name), indexOf(holding(name), name)) : name);
  if (opened.head !== undefined) view.head = opened.head && opened.head !== "none" ? named(opened.head) : null;
  view.also = (opened.also || "").split(",").filter(holding).map(named);
  return view;
}

// A view from elsewhere (the browser's Back): what it does not name is as this payload opens.
function takeView(workbench, opened) {
  if (!workbench.header) return;
  const { usual, panes } = workbench.header;
  Object.assign(workbench.view, USUAL, viewOf(usual, panes), viewOf(opened, panes));
  fitView(workbench); fillControls(workbench); draw(workbench); tellSoon(workbench);
}

// Heads are kept by layer and head. One that none of these maps is of is closed, and the workbench says so; true if so.
function fitView({ view, header, parts }) {
  const [pane] = header.panes, absent = (name) => header.panes.every((one) => headIn(one, name) === null);
  const closed = view.head !== null && absent(view.head);
  parts.absent.hidden = !closed;
  parts.absent.textContent = closed ? `${shortened(view.head, 20)} was closed: these maps are of ${rangeOf(pane)}. Click one of them.` : "";
  if (closed) view.head = null;
  view.also = view.also.filter((name) => !absent(name));
  if (!pane.scores[view.score]) view.score = "";
  return closed;
}

// ------------------------------------------------------------ parts

function makeBar(root) {
  const parts = { root }, labelled = (text, control) => make("label", {}, text, control);
  parts.scale = make("select", { title: "Each map's own: from 0 to the largest weight of the map, or from 64 tokens on to a high percentile, "
    + "which the scale names. The first token of a decoder sees only itself, so its weight of 1 is left out." }, new Option("0 to 1", "absolute"), new Option("each map's own", "own"));
  parts.score = make("select", { title: "A number per head to order and filter by" });
  parts.show = make("select", {}, new Option("in layers, others faint", "layers"), new Option("highest first", "highest"));
  parts.least = make("input", { type: "number", min: 0, max: 1, step: 0.05, value: 0 });
  parts.jump = make("input", { type: "text", size: 6, ariaLabel: "Go to a head by name", maxLength: 12 });
  parts.png = make("button", { textContent: "PNG", title: "Download the picture of all heads as PNG" });
  parts.svg = make("button", { textContent: "SVG", title: "Download the picture of all heads as SVG" });
  parts.ordered = [labelled("Show", parts.show), labelled("At least", parts.least)];
  parts.legends = make("span", { className: "legends" });
  parts.onePng = make("button", { textContent: "PNG", title: "Download this map as PNG" });
  parts.oneSvg = make("button", { textContent: "SVG", title: "Download this map as SVG" });
  parts.close = make("button", { textContent: "Close", title: "Close the enlarged head (Escape)" });
  parts.ofOne = make("span", { className: "files" }, "Enlarged head", parts.onePng, parts.oneSvg, parts.close);
  parts.menu = make("div", { className: "menu", popover: "auto" }, labelled("Colour", parts.scale), labelled("Go to", parts.jump),
    make("span", { className: "files" }, "All heads", parts.png, parts.svg), parts.ofOne);
  parts.tools = make("button", { textContent: "Tools ▾", title: "Change the colour scale, go to a head by name, and download the maps", popoverTargetElement: parts.menu });
  parts.bar = make("div", { className: "bar", role: "group", ariaLabel: "View of the maps" }, labelled("Order by", parts.score), ...parts.ordered,
    parts.legends, make("span", { className: "buttons" }, parts.tools, parts.menu));
  parts.note = make("p", { className: "note" });
  parts.none = make("p", { className: "note", textContent: "No head has that score: lower “at least”.", hidden: true });
  parts.absent = make("p", { className: "note absent", role: "status", hidden: true });
  parts.columns = make("div", { className: "columns" });
  root.replaceChildren(parts.bar, parts.note, parts.none, parts.absent, parts.columns);
  return parts;
}

function makeColumns(workbench) {
  const { header, parts } = workbench, compared = header.panes.length > 1;
  parts.note.textContent = header.note || "";
  parts.note.hidden = !header.note;
  parts.columns.className = compared ? "columns compared" : "columns";
  const kept = workbench.columns.length === header.panes.length;
  if (!kept) {
    workbench.columns = header.panes.map((_, place) => ({ first: place === 0, parts: makeColumn(place) }));
    parts.columns.replaceChildren(...workbench.columns.map((column) => column.parts.column));
    for (const column of workbench.columns) listenColumn(workbench, column);
  }
  workbench.columns.forEach((column, place) => {
    column.pane = header.panes[place];
    column.parts.title.textContent = column.pane.title;
    column.parts.top.hidden = !compared;
    (compared ? column.parts.top : parts.legends).append(column.parts.legend);
    if (!kept || column.treeOf !== header.id) fillTree(column.parts, column.pane, workbench.view);
    column.treeOf = header.id;
  });
  if (compared) parts.legends.replaceChildren();
}

function makeColumn(place) {
  const parts = { named: `head-${place}` }, tab = (name, text, title) => make("button", { textContent: text, title, value: name });
  parts.title = make("h3");
  parts.legend = make("canvas", { className: "legend", ariaHidden: "true", width: 230, height: LEGEND_HEIGHT }); // an unsized canvas is 150 high
  parts.top = make("header", { className: "top" }, parts.title);
  parts.all = make("canvas", { className: "all", ariaHidden: "true" });
  parts.tree = make("div", { className: "tree", role: "rowgroup" });
  parts.allBox = make("div", { className: "allBox", role: "grid", tabIndex: 0, ariaLabel: "Attention maps of all heads. Arrow keys choose "
    + "a head, Space adds it to the lines, Shift and arrows move over its weights, Escape closes it, L begins a name." }, parts.all, parts.tree);
  parts.oneName = make("h2");
  parts.tabs = [tab("map", "Matrix", "Weights from each query (row) to each key (column)"),
    tab("lines", "Lines", "Weights as lines; a click with Ctrl or ⌘ on other heads adds them")];
  parts.line = make("input", { type: "range", min: 0, max: 0.95, step: 0.05, title: "Lines of at least this weight" });
  parts.lineSaid = make("output");
  parts.lineBox = make("label", { className: "lineBox" }, "lines from", parts.line, parts.lineSaid);
  parts.tools = make("span", { className: "buttons", hidden: place > 0 }, parts.lineBox, ...parts.tabs);
  parts.chosen = make("span", { className: "chosen" });
  parts.seen = make("p", { className: "seen", role: "status" });
  parts.oneMap = make("canvas", { className: "oneMap", ariaHidden: "true" });
  parts.over = make("canvas", { className: "over", ariaHidden: "true" });
  parts.oneBox = make("div", { className: "oneBox" }, parts.oneMap, parts.over);
  parts.reading = make("p", { className: "reading", role: "status" });
  parts.row = make("div", { className: "row" });
  parts.hint = make("p", { className: "hint", textContent: "Click a map, or use the arrow keys, to see one head with its tokens." });
  parts.one = make("section", { className: "one", ariaLabel: "One head" }, make("header", {}, parts.oneName, parts.chosen, parts.tools), parts.seen,
    parts.oneBox, parts.reading, parts.row);
  parts.column = make("div", { className: "column" }, parts.top, parts.allBox, parts.one, parts.hint);
  return parts;
}

function fillControls({ parts, header, view, columns }) {
  const options = Object.entries(header.panes[0].scores).map(([name, score]) => Object.assign(new Option(score.label, name), { title: score.meaning }));
  parts.score.replaceChildren(new Option("layer and head", ""), ...options);
  parts.score.value = view.score; parts.show.value = view.show; parts.scale.value = view.scale;
  if (Number(parts.least.value) !== view.least) parts.least.value = view.least; // "0." is still being typed
  for (const control of parts.ordered) control.hidden = !view.score;
  parts.score.parentElement.hidden = !options.length;
  parts.jump.parentElement.hidden = Boolean(header.panes[0].named); // there is one head
  parts.jump.placeholder = nameOf(header.panes[0], indexesOf(header.panes[0]).at(-1));
  const { tabs, line, lineSaid, lineBox } = columns[0].parts;
  for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.value === view.look));
  line.value = view.line; lineSaid.textContent = view.line.toFixed(2); lineBox.hidden = view.look !== "lines";
}

// ------------------------------------------------------------ painting

function draw(workbench) {
  if (!workbench.header) return;
  const { root, parts, view, columns, host } = workbench;
  workbench.scale = window.devicePixelRatio || 1;
  workbench.width = root.clientWidth; // what the resize observer compares with
  root.classList.toggle("stacked", workbench.width < STACKED);
  parts.ofOne.hidden = view.head === null;
  workbench.room = host.room(); // what a host compares with
  const room = Math.max(SMALLEST, workbench.room) - parts.bar.offsetHeight - parts.note.offsetHeight - parts.absent.offsetHeight - 8;
  evenTitles(columns);
  for (const column of columns) drawColumn(workbench, column, room);
  parts.none.hidden = columns[0].layout.heads.length > 0;
  root.dataset.painted = workbench.header.id;
  root.dataset.head = view.head === null ? "" : fullName(workbench.header, view.head);
  window.dispatchEvent(new CustomEvent("atlas-painted", { detail: workbench.header.id }));
}

// Titles that wrap into more lines than others would put the grids below them at other heights.
function evenTitles(columns) {
  for (const { parts } of columns) parts.top.style.minHeight = "";
  const tallest = Math.max(...columns.map(({ parts }) => parts.top.offsetHeight));
  for (const { parts } of columns) parts.top.style.minHeight = tallest ? `${tallest}px` : "";
}

// How wide and high the grid of a column may be: what is left is the enlarged head's.
function gridRoom({ columns, width, view }, room) {
  const share = view.head === null ? 1 : 0.45; // the enlarged heads lie below
  if (columns.length > 1) return { wide: (width - BESIDE * (columns.length - 1)) / columns.length, high: (room - 40) * share };
  return width < STACKED ? { wide: width, high: room * 0.75 } : { wide: width * 0.58, high: room };
}

function drawColumn(workbench, column, room) {
  const { theme, view, scale, columns, width } = workbench, { parts, pane } = column, { wide, high } = gridRoom(workbench, room);
  const layout = column.layout = layoutOf(pane, view, wide, high), compared = columns.length > 1;
  sized(parts.all, layout.width, layout.height);
  const pen = canvasPen(parts.all, layout.width, layout.height, scale, theme);
  drawHeads(pen, workbench, pane, layout);
  markChosen(pen, workbench, pane, layout);
  announce(parts, headIn(pane, view.head));
  const legend = pane.signed ? 250 : 230;
  sized(parts.legend, legend, LEGEND_HEIGHT);
  drawLegend(canvasPen(parts.legend, legend, LEGEND_HEIGHT, scale, theme), theme, 0, 2,
    { perMap: view.scale === "own" ? endOf(pane) : "", signed: pane.signed, full: pane.signed ? pane.full / MIDDLE : 1 });
  parts.one.hidden = view.head === null;
  parts.hint.hidden = view.head !== null || compared;
  if (view.head === null) return;
  const beside = !compared && width >= STACKED;
  column.room = { wide: compared ? wide : beside ? width - layout.width - BESIDE : width,
    high: (beside ? room : compared ? room - layout.height - 46 : Math.max(room, 420)) - (compared ? 96 : 132) };
  drawHead(workbench, column);
}

function drawHead(workbench, column) {
  const { theme, view, scale } = workbench, { parts, pane, room } = column, lines = view.look === "lines" && !pane.signed;
  const head = headIn(pane, view.head);
  for (const part of [parts.oneBox, parts.reading, parts.row]) part.hidden = head === null;
  if (head === null) { // of two models that are compared, the other one has it
    parts.oneName.textContent = view.head;
    parts.seen.textContent = `${pane.title} has no ${view.head}: its heads are ${rangeOf(pane)}.`;
    column.frame = column.lines = null;
    return undefined;
  }
  parts.oneName.textContent = nameOf(pane, head);
  parts.chosen.replaceChildren(...(view.look === "lines" ? colourKeys(workbench) : []));
  parts.seen.textContent = seen(workbench, pane, head);
  parts.over.hidden = lines;
  column.frame = lines ? null : frameOf(pane, room.wide, room.high);
  column.lines = lines ? linesFrame(pane, room.wide, room.high) : null;
  const frame = column.frame || column.lines;
  for (const canvas of [parts.oneMap, parts.over]) sized(canvas, frame.width, frame.height);
  parts.oneBox.style.maxHeight = `${Math.max(160, room.high)}px`;
  const pen = canvasPen(parts.oneMap, frame.width, frame.height, scale, theme);
  if (lines) {
    drawLines(pen, workbench, pane, frame, workbench.pointed);
    delete parts.oneBox.dataset.frame;
    return showReceived(workbench, column);
  }
  parts.oneBox.dataset.frame = `${frame.margin},${frame.cell}`;
  drawMatrix(pen, workbench, pane, frame);
  return drawCell(workbench, column);
}

// The heads whose lines are drawn, each in its colour; a click takes one away.
function colourKeys(workbench) {
  const heads = chosenHeads(workbench.view);
  return heads.length < 2 ? [] : heads.map((name, place) => {
    const key = make("button", { textContent: name, title: "Take this head's lines away" });
    key.style.borderColor = key.style.borderLeftColor = workbench.theme.hues[place % workbench.theme.hues.length];
    key.onclick = () => add(workbench, name);
    return key;
  });
}

function sized(canvas, width, height) {
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
}
