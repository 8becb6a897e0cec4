
// What a user does to the workbench: controls, pointer, keys, and pictures as files.

function listen(workbench) {
  const { parts, view } = workbench;
  const change = (name, read) => (event) => { view[name] = read(event.target); changed(workbench); };
  // An order is what is asked for: choosing a score puts its heads highest first.
  parts.score.onchange = (event) => { view.score = event.target.value; view.show = view.score ? "highest" : "layers"; changed(workbench); };
  parts.show.onchange = change("show", (control) => control.value);
  parts.scale.onchange = change("scale", (control) => control.value);
  parts.least.oninput = change("least", (control) => Number(control.value) || 0);
  parts.jump.onkeydown = (event) => { if (event.key === "Enter") jump(workbench); };
  parts.jump.oninput = () => parts.jump.setCustomValidity("");
  parts.png.onclick = () => savePicture(workbench, "png", true);
  parts.svg.onclick = () => savePicture(workbench, "svg", true);
  parts.onePng.onclick = () => savePicture(workbench, "png", false);
  parts.oneSvg.onclick = () => savePicture(workbench, "svg", false);
  parts.close.onclick = () => { parts.menu.hidePopover(); choose(workbench, null); };
  parts.menu.onbeforetoggle = () => placeMenu(parts);
  parts.root.onkeydown = (event) => event.stopPropagation(); // in Streamlit r would rerun the app, c clear its caches
  const observer = new ResizeObserver(() => { if (workbench.header && parts.root.clientWidth !== workbench.width) draw(workbench); });
  observer.observe(parts.root);
  const again = () => draw(workbench);
  window.addEventListener("resize", again);
  workbench.stop = () => { observer.disconnect(); window.removeEventListener("resize", again); };
}

function listenColumn(workbench, column) {
  const { parts } = column;
  parts.allBox.onkeydown = (event) => onKey(workbench, column, event);
  parts.all.onclick = (event) => {
    const head = headAt(column.layout, event.offsetX, event.offsetY);
    const name = head && placeNameOf(column.pane, head.index);
    if (head && (event.ctrlKey || event.metaKey || event.shiftKey)) add(workbench, name);
    else if (head) choose(workbench, name);
  };
  parts.all.onmousemove = (event) => nameTile(workbench, column, event);
  parts.over.onmousemove = (event) => { if (!workbench.pinned) point(workbench, cellAt(column, event.offsetX, event.offsetY)); };
  parts.over.onmouseleave = () => { if (!workbench.pinned) point(workbench, null); };
  parts.over.onclick = (event) => {
    workbench.pinned = !workbench.pinned;
    point(workbench, cellAt(column, event.offsetX, event.offsetY));
    if (column.pane.block > 1) tellSoon(workbench); // the host shows what a block is the greatest of
  };
  parts.oneMap.onmousemove = (event) => pointWord(workbench, column.lines && wordAt(column.lines, event.offsetX, event.offsetY, sides(column.pane)));
  parts.oneMap.onmouseleave = () => pointWord(workbench, null);
  for (const tab of parts.tabs) tab.onclick = () => { workbench.view.look = tab.value; changed(workbench); };
  parts.line.oninput = () => { workbench.view.line = Number(parts.line.value); changed(workbench); };
}

// The menu lies above the page, right-aligned below its button, or higher up where the window ends there.
const MENU_HEIGHT = 180; // pixels
function placeMenu({ menu, tools }) {
  const { right, bottom } = tools.getBoundingClientRect();
  const top = Math.min(bottom + 4, window.innerHeight - MENU_HEIGHT);
  Object.assign(menu.style, { right: `${document.documentElement.clientWidth - right}px`, top: `${top}px` });
}

function changed(workbench) {
  fillControls(workbench); draw(workbench); tellSoon(workbench);
}

// The host hears of the view once it rests, so holding an arrow key is one message and not thirty.
function tellSoon(workbench) {
  clearTimeout(workbench.timer);
  workbench.timer = setTimeout(() => {
    const { view, header } = workbench, full = (name) => (name === null ? "none" : fullName(header, name));
    const { cell, pinned } = workbench, at = pinned && cell ? `${cell.q ?? 0},${cell.k ?? 0}` : "";
    workbench.host.tell({ ...view, head: full(view.head), also: view.also.map(full).join(","), ...(at && { at }) });
  }, 250);
}

function nameTile(workbench, { layout, pane, parts }, event) {
  const head = headAt(layout, event.offsetX, event.offsetY), score = pane.scores[workbench.view.score];
  const value = head && score ? score.values[head.index] : null;
  parts.all.title = head ? nameOf(pane, head.index) + (value === null ? "" : `: ${score.label} ${value.toFixed(3)}`) : "";
}

function point(workbench, cell) {
  workbench.cell = cell;
  for (const column of workbench.columns) if (column.frame) drawCell(workbench, column);
}

function pointWord(workbench, word) {
  const same = word === workbench.pointed || (word && word.side === workbench.pointed?.side && word.position === workbench.pointed?.position);
  if (same) return;
  workbench.pointed = word;
  for (const column of workbench.columns) if (column.lines) drawHead(workbench, column);
}

function choose(workbench, name) {
  if (name === workbench.view.head) return;
  Object.assign(workbench, { cell: null, pinned: false, pointed: null });
  workbench.parts.absent.hidden = true;
  workbench.view.head = name;
  if (name === null) workbench.view.also = [];
  draw(workbench); tellSoon(workbench);
}

// Add a head to those whose lines are drawn together, or take it away.
function add(workbench, name) {
  const { view } = workbench, heads = chosenHeads(view);
  const chosen = heads.includes(name) ? heads.filter((head) => head !== name) : [...heads, name];
  workbench.parts.absent.hidden = true;
  view.head = chosen.length ? chosen[0] : null;
  view.also = chosen.slice(1);
  view.look = chosen.length > 1 ? "lines" : view.look;
  changed(workbench);
}

function jump(workbench) {
  const { jump: box } = workbench.parts, { panes } = workbench.header, pane = panes.find((one) => indexOf(one, box.value) !== null);
  if (!pane) {
    box.setCustomValidity(`${panes[0].whole ? "Maps" : "Heads"} run from ${rangeOf(panes[0])}.`);
    box.reportValidity();
    return;
  }
  const name = placeNameOf(pane, indexOf(pane, box.value));
  box.value = "";
  workbench.parts.menu.hidePopover();
  choose(workbench, name);
  workbench.columns[0].parts.allBox.focus({ preventScroll: true });
}

function onKey(workbench, { layout, pane }, event) {
  const { view } = workbench, steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -layout.columns, ArrowDown: layout.columns };
  if (event.key === "Escape") return workbench.cell ? ((workbench.pinned = false), point(workbench, null)) : choose(workbench, null);
  if (event.key.toLowerCase() === "l" && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    workbench.parts.menu.showPopover();
    workbench.parts.jump.value = "L";
    return workbench.parts.jump.focus();
  }
  if (event.key === " ") { event.preventDefault(); return view.head === null ? undefined : walkAdding(workbench); }
  if (!(event.key in steps)) return undefined;
  event.preventDefault();
  if (event.shiftKey && view.head !== null) return moveCell(workbench, event.key);
  const place = layout.heads.findIndex((head) => head.index === headIn(pane, view.head));
  const next = place < 0 ? 0 : place + steps[event.key];
  return layout.heads[next] ? choose(workbench, placeNameOf(pane, layout.heads[next].index)) : undefined;
}

// Space keeps the head that is chosen among the lines, so that the arrows can go on to the next one.
function walkAdding(workbench) {
  const { view } = workbench;
  view.also = view.also.includes(view.head) ? view.also.filter((name) => name !== view.head) : [...view.also, view.head];
  view.look = "lines";
  changed(workbench);
}

function moveCell(workbench, key) {
  const [queries, keys] = sides(workbench.header.panes[0]), { cell } = workbench;
  const within = (place, count) => Math.max(0, Math.min(count - 1, place));
  const down = { ArrowUp: -1, ArrowDown: 1 }[key] || 0, across = { ArrowLeft: -1, ArrowRight: 1 }[key] || 0;
  workbench.pinned = true;
  point(workbench, cell ? { q: within((cell.q ?? 0) + down, queries), k: within((cell.k ?? 0) + across, keys) } : { q: 0, k: 0 });
}

// ------------------------------------------------------------ files

// All columns side by side, or the enlarged head of each; with the scale of each and a caption; on a light ground.
function savePicture(shownHere, kind, all) {
  const theme = lightTheme(shownHere.theme), workbench = { ...shownHere, theme };
  const { header, view, columns } = workbench, column = columns.find(({ pane }) => headIn(pane, view.head) !== null) || columns[0], pane = column.pane;
  const lines = !all && column.lines, layout = all ? layoutOf(pane, view, 1100) : lines ? linesFrame(pane, 640, 760) : frameOf(pane, 760);
  const wide = Math.max(layout.width, 320) + 12, height = layout.height + LEGEND_HEIGHT + 34;
  const paint = (pen, shown, x) => {
    const pens = shifted(pen, x), frame = all ? layoutOf(shown, view, 1100) : layout;
    if (all) drawHeads(pens, workbench, shown, frame);
    else if (lines && !shown.signed) drawLines(pens, workbench, shown, frame);
    else drawMatrix(pens, workbench, shown, frameOf(shown, 760));
    const full = shown.signed ? shown.full / MIDDLE : view.scale === "own" && !all ? fullOf(workbench, shown, headIn(shown, view.head)) / 65535 : 1;
    drawLegend(pens, theme, 8, layout.height + 6, { perMap: all && view.scale === "own" ? endOf(shown) : "", full, signed: shown.signed });
    const said = all ? `${shown.title}, all heads` : `${shown.title}, ${chosenHeads(view).map((name) => fullName(header, name)).join(" ")}`;
    pens.text(shortened(`${said}: ${header.caption}`, Math.floor(wide / 6)), 8, layout.height + LEGEND_HEIGHT + 16, { size: 11 });
  };
  const panes = all ? header.panes : header.panes.filter((shown) => headIn(shown, view.head) !== null && !(lines && shown.signed));
  const picture = (pen) => panes.forEach((one, place) => paint(pen, one, place * wide));
  const name = `${header.file}${all ? "" : "-" + fullName(header, view.head)}.${kind}`;
  if (kind === "svg") {
    const pen = svgPen(wide * panes.length, height, theme);
    picture(pen);
    return saveBlob(new Blob([new XMLSerializer().serializeToString(pen.root)], { type: "image/svg+xml" }), name);
  }
  const canvas = document.createElement("canvas");
  picture(canvasPen(canvas, wide * panes.length, height, SAVED_SCALE, theme));
  return canvas.toBlob((blob) => saveBlob(blob, name), "image/png");
}

// A pen that draws everything `right` pixels further to the right.
function shifted(pen, right) {
  return {
    rect: (x, ...rest) => pen.rect(x + right, ...rest),
    text: (string, x, ...rest) => pen.text(string, x + right, ...rest),
    line: (x, y, toX, ...rest) => pen.line(x + right, y, toX + right, ...rest),
    tile: (x, ...rest) => pen.tile(x + right, ...rest),
    gradient: (x, ...rest) => pen.gradient(x + right, ...rest),
  };
}
