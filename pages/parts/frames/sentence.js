
// A sentence whose words are clicked: a click makes a word the target or the element, whichever is chosen above it, in
// place of what was; with Shift or Ctrl it is added, or taken back. After the target the next click marks the element.
// The words are one list: arrow keys go through them, and Enter or Space is a click.
// Marks have a frame and a letter, so that they are told without colour.

const SENTENCES = new WeakMap();
const ROLES = { target: "Target", element: "Element" };

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".root"), known = SENTENCES.get(root) || { role: "target" };
  SENTENCES.set(root, known);
  if (known.key !== data.key) Object.assign(known, { key: data.key, target: new Set(data.target), element: new Set(data.element) });
  known.draw = () => draw(root, data, known, () =>
    setStateValue("marked", { key: data.key, target: [...known.target].sort((a, b) => a - b), element: [...known.element].sort((a, b) => a - b) }));
  known.draw();
}

function made(name, attributes = {}, text = "") {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

function draw(root, data, known, tell) {
  const focused = root.getRootNode().activeElement, at = focused && focused.dataset ? focused.dataset.at : null;
  known.word = Math.min(known.word || 0, data.words.length - 1);
  const choice = made("div", { class: "choice", role: "radiogroup", "aria-label": "A click marks" });
  choice.append("A click marks the ");
  choice.title = "Shift or Ctrl adds a word";
  for (const [role, title] of Object.entries(ROLES)) {
    const button = made("button", { type: "button", role: "radio", "aria-checked": String(known.role === role), class: role, "data-at": role }, title.toLowerCase());
    button.onclick = () => { known.role = role; known.draw(); };
    choice.append(button);
  }
  const line = made("div", { class: "words", role: "listbox", tabindex: "0", "aria-multiselectable": "true", "aria-label": "Words of the sentence",
    "aria-activedescendant": `word-${known.word}`, "data-at": "words" });
  const click = (k, event) => { known.word = k; mark(known, k, event.shiftKey || event.ctrlKey || event.metaKey); known.draw(); tell(); };
  line.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault(); event.stopPropagation();
    if (!step) return click(known.word, event);
    known.word = Math.max(0, known.word + step);
    known.draw();
  };
  data.words.forEach((word, k) => {
    const role = known.target.has(k) ? "target" : known.element.has(k) ? "element" : "";
    const option = made("span", { role: "option", id: `word-${k}`, class: `${role}${k === known.word ? " at" : ""}`, "aria-selected": String(Boolean(role)),
      "aria-label": role ? `${word}, ${ROLES[role].toLowerCase()}` : word }, word);
    option.onclick = (event) => click(k, event);
    line.append(option);
  });
  root.replaceChildren(line, choice);
  const again = at && root.querySelector(`[data-at="${at}"]`);
  if (again) again.focus({ preventScroll: true });
}

function mark(known, k, more) {
  const { role } = known, other = known[role === "target" ? "element" : "target"];
  other.delete(k);
  if (more) {
    if (!known[role].delete(k)) known[role].add(k);
    return;
  }
  known[role] = new Set([k]);
  known.role = "element";
}
