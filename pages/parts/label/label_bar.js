// The bar above the labelling sheet: classes with their keys and counts, tools, progress, and what is said of a map.

function made(name, attributes = {}, text = "") {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

/** @typedef {{ pressed?: boolean, colour?: string, title?: string, name?: string, disabled?: boolean }} ButtonLook */

function button(label, key, does, /** @type {ButtonLook} */ { pressed, colour, title, name, disabled } = {}) {
  const element = made("button", { type: "button", title: title || label, "data-act": name || label });
  if (colour) { const swatch = made("span", { class: "swatch" }); swatch.style.background = colour; element.append(swatch); }
  element.append(label);
  if (key) element.append(made("kbd", {}, key));
  if (pressed !== undefined) element.setAttribute("aria-pressed", String(pressed));
  element.disabled = Boolean(disabled);
  element.onclick = does;
  return element;
}

/** @param {Sheet} sheet */
function fillBar(sheet) {
  const { parts, header } = sheet, hints = header.maps.some((map) => map.hint);
  const does = (work) => () => { work(); parts.canvas.focus({ preventScroll: true }); };
  parts.classes.replaceChildren(...header.classes.map((cls) => button(`${cls.title} (${sheet.counts[cls.name] || 0})`, cls.key,
    does(() => pick(sheet, cls.name)), { pressed: sheet.brush ? sheet.brush === cls.name : undefined, colour: cls.colour,
      title: cls.eye, name: `class ${cls.name}` })));
  if (!sheet.noting) parts.acts.replaceChildren(...tools(sheet, does), ...(hints ? accepting(sheet, does) : []), ...turning(sheet, does));
  parts.canvas.classList.toggle("brush", Boolean(sheet.brush));
  parts.why.hidden = !header.maps.some((map) => map.small || (map.hint && map.hint[2]));
}

/** @param {Sheet} sheet */
function tools(sheet, does) {
  const single = sheet.mode === "single", own = sheet.scale === "own";
  const together = sheet.mode === "together", marked = alikeOf(sheet).length;
  return [
    ...(sheet.header.mode === "together" ? [button("Together", "", does(() => setMode(sheet, "together")), { pressed: together,
      title: "Label alike maps together: unmark the maps that do not belong, then give one class to the others" })] : []),
    button("Sheet", "", does(() => setMode(sheet, "sheet")), { pressed: sheet.mode === "sheet" }),
    button("Single", "m", does(() => setMode(sheet, "single")), { pressed: single }),
    button(own ? "Scale: each map's own" : "Scale: 0 to 1", "s", does(() => setScale(sheet)), { name: "scale" }),
    ...(together ? [button("Unmark", "x", does(() => toggle(sheet, sheet.cursor)), { name: "unmark",
      title: "Unmark the chosen map or mark it again, as a click on a map does. A label of the map is taken back." }),
      button(`Unmark all (${marked} marked)`, "u", does(() => toggleAll(sheet)), { name: "unmark all", title: "Unmark all maps of the group, to label them one by one" })] : []),
    ...(sheet.mode !== "sheet" ? [] : [button(sheet.brush ? `Brush: ${classOf(sheet, sheet.brush).title}` : "Brush", sheet.brush ? "Esc" : "b",
      does(() => setBrush(sheet, sheet.brush ? null : brushOf(sheet))), { name: "brush", pressed: Boolean(sheet.brush),
        title: "Drag over maps to give all of them one class; Escape puts the brush down" })]),
    button("Undo", "⌫", does(() => undo(sheet)), { name: "undo", title: "Take back the last label, or a whole stroke (Ctrl+Z)" }),
    button("Skip", "Space", does(() => skip(sheet)), { name: "skip" }),
    button("Flag", "f", does(() => flag(sheet)), { name: "flag" }),
    button("Note", "n", () => askNote(sheet), { name: "note" }),
  ];
}

/** @param {Sheet} sheet */
function accepting(sheet, does) {
  const rest = restOf(sheet).length;
  return [button("Accept", "Enter", does(() => accept(sheet)), { name: "accept" }),
    button(`Accept the rest (${rest})`, "a", does(() => acceptRest(sheet)), { name: "rest", disabled: !rest,
      title: "Label the maps of this sheet that were on screen as suggested" })];
}

/** @param {Sheet} sheet */
function turning(sheet, does) {
  const older = sheet.older.reduce((sum, box) => sum + box.events.length, 0);
  return [
    button("Back", "PgUp", does(() => turn(sheet, -1)), { name: "back" }),
    button("On", "PgDn", does(() => turn(sheet, 1)), { name: "on" }),
    ...(older ? [button(`Save ${older} older labels here`, "", () => adoptOlder(sheet), { name: "older",
      title: "Labels that this browser kept before an update, if they belong to this database" })] : []),
    button("More maps", "", () => askMore(sheet), { name: "more", title: "Fetch the next maps of the queue" }),
  ];
}

// How many "accept the rest" would take, as more maps come into the window.
/** @param {Sheet} sheet */
function nameRest(sheet) {
  const shown = /** @type {HTMLButtonElement} */ (sheet.parts.acts.querySelector('[data-act="rest"]')), rest = restOf(sheet).length;
  if (!shown) return;
  shown.firstChild.textContent = `Accept the rest (${rest})`;
  shown.disabled = !rest;
}

// The field stays with its words, whatever is painted while somebody writes.
/** @param {Sheet} sheet */
function askNote(sheet) {
  const map = sheet.header.maps[sheet.cursor], field = made("input", { class: "note", type: "text", placeholder: "Note on this map; Enter keeps it, Esc leaves", maxlength: "500", "aria-label": "Note" });
  const done = () => { sheet.noting = false; fillBar(sheet); sheet.parts.canvas.focus({ preventScroll: true }); };
  field.onkeydown = (press) => {
    press.stopPropagation();
    if (press.key === "Enter") { note(sheet, map, field.value); done(); }
    if (press.key === "Escape") done();
  };
  sheet.noting = true;
  sheet.parts.acts.replaceChildren(field);
  field.focus();
}

// Why a class is suggested for a map that nobody decided on yet: what the codebook measures of it.
/** @param {Sheet} sheet */
function whyOf(sheet, map, given) {
  if (map.small) return "Too small to have a pattern: nothing is suggested or trained on.";
  if (given || !map.hint || !map.hint[2]) return "";
  const titles = amongOf(sheet, map).map((cls) => cls.title);
  return `${titles.join(" or ") || classOf(sheet, map.hint[0]).title}? ${map.hint[2]}`;
}

/** @param {Sheet} sheet */
function showStatus(sheet) {
  if (!sheet.header || !sheet.layout) return; // the maps are still on their way
  const { header, parts } = sheet, map = header.maps[sheet.cursor], done = decidedOf(sheet), all = allOf(sheet);
  const waiting = sheet.outbox.length + sheet.left.reduce((sum, box) => sum + box.events.length, 0);
  parts.progress.max = Math.max(1, all); parts.progress.value = done;
  const unsaved = new Set([...sheet.left, { events: sheet.outbox }].flatMap((box) => box.events.map((event) => event.map_id)));
  const saved = sheet.before + header.maps.filter((one) => stateOf(sheet, one.id) && !unsaved.has(one.id)).length;
  parts.status.textContent = `${done} of ${all} maps done · ${saved} saved · ${waiting} waiting`
    + (HELD.size ? ` (${HELD.size} in this tab alone)` : "")
    + (sheet.mode === "together" && map ? ` · group ${map.group + 1} of ${header.maps.at(-1).group + 1}` : ` · sheet ${Math.floor(sheet.cursor / perSheet(sheet)) + 1} of ${Math.max(1, Math.ceil(header.maps.length / perSheet(sheet)))}`);
  const given = map && stateOf(sheet, map.id), named = given && given.kind === "label" ? classOf(sheet, given.class) : null;
  parts.about.textContent = map ? `L${map.layer + 1}H${map.head + 1} · ${map.checkpoint} · ${map.task} · largest weight `
    + `${map.maximum.toFixed(3)} · ${map.length} tokens${named ? ` · ${named.title}` : ""}` : "";
  parts.why.textContent = map ? whyOf(sheet, map, given) : "";
  if ((map && map.said) || Number(sheet.root.dataset.held || 0) !== HELD.size) showWord(sheet);
  nameRest(sheet);
  Object.assign(sheet.root.dataset, { cursor: map ? map.id : "", place: sheet.cursor, saved: sheet.saved, waiting, done, held: HELD.size,
    mode: sheet.mode, scale: sheet.scale, brush: sheet.brush || "", rest: restOf(sheet).length, sheet: onSheet(sheet).length, marked: alikeOf(sheet).length });
}
