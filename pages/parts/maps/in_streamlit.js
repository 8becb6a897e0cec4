
// The workbench as a Streamlit component: data in, the view out, as high as the window leaves room for.

const WORKBENCHES = new WeakMap();
const UNDER = 52; // pixels left free under it, for a line that says what is shown
const LONGEST = 3000; // ms that a view waits for the answer to Back: none comes where something else was asked at once

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".root");
  let workbench = WORKBENCHES.get(root);
  if (!workbench) {
    const host = { tell: () => {}, room: () => roomOf(root) };
    workbench = startWorkbench(root, host);
    const back = () => {
      takeView(workbench, Object.fromEntries(new URLSearchParams(location.search)));
      clearTimeout(workbench.timer); clearTimeout(workbench.telling); // told once the script has answered
      workbench.backAt = performance.now();
    };
    window.addEventListener("popstate", back);
    const page = new ResizeObserver(() => { if (workbench.header && host.room() !== workbench.room) draw(workbench); });
    const block = document.querySelector('[data-testid="stMainBlockContainer"]') || document.body;
    page.observe(block); // as high as the window; what stands in it says when something above the maps went away
    const inside = block.querySelector('.st-key-page');
    if (inside) page.observe(inside);
    workbench.leave = () => { workbench.stop(); page.disconnect(); window.removeEventListener("popstate", back); WORKBENCHES.delete(root); };
    WORKBENCHES.set(root, workbench);
  }
  workbench.host.tell = (view) => tellInPeace(workbench, view, setStateValue);
  const before = workbench.header;
  openPayload(workbench, data instanceof Uint8Array ? data : new Uint8Array(data), themeOf(root));
  const answer = workbench.header.back;
  if (before && answer && answer.turn !== before.back?.turn && isHere(answer.asked)) {
    workbench.backAt = null;
    tellSoon(workbench);
  }
  return workbench.leave;
}

// Whether the address asks for this.
function isHere(asked) {
  const here = new URLSearchParams(location.search), names = [...new Set(here.keys())];
  return names.length === Object.keys(asked).length && names.every((name) => here.getAll(name).join("\n") === asked[name]);
}

// A message takes along what the page's other widgets held when it left, so the last view waits while the script runs. On
// the browser's Back the page hears that it runs only after a while, and until then its fields hold what they held before:
// a message would take that along and undo Back. It waits for the payload that names the address which it answers.
function tellInPeace(workbench, view, setStateValue) {
  clearTimeout(workbench.telling);
  const busy = document.querySelector('[data-testid="stApp"]:not([data-test-script-state="notRunning"])');
  const unanswered = workbench.backAt && performance.now() - workbench.backAt < LONGEST;
  if (busy || unanswered) workbench.telling = setTimeout(() => tellInPeace(workbench, view, setStateValue), 50);
  else if (workbench.root.isConnected) setStateValue("view", view);
}

// What the window leaves under the component's top; further down a page, where that is little, a window full.
function roomOf(root) {
  const left = window.innerHeight - topOf(root) - UNDER;
  return left >= SMALLEST ? left : Math.max(SMALLEST, window.innerHeight - 2 * UNDER);
}

// Where the component begins on the page, however far the page is scrolled.
function topOf(root) {
  const main = document.querySelector('[data-testid="stMain"]');
  return root.getBoundingClientRect().top + (main ? main.scrollTop : 0);
}
