// Charts of a page in one file, by the Vega that the page holds, in the light or the dark theme's colours.
const { specs, ranges } = JSON.parse(document.getElementById("figures").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const ROOM = 0.94; // of the window that an enlarged chart may take

function themed(spec) {
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const axis = { labelColor: ink, titleColor: ink, gridColor: "#88888838", domainColor: ink, tickColor: ink };
  const config = { background: "transparent", range: ranges[dark.matches ? "dark" : "light"], axis,
    legend: { labelColor: ink, titleColor: ink }, title: { color: ink }, header: { labelColor: ink, titleColor: ink },
    view: { stroke: "#88888855" } };
  return { ...spec, config };
}

function drawCharts() {
  for (const [id, spec] of Object.entries(specs)) {
    vegaEmbed("#chart-" + id, themed(spec), { actions: { export: true, source: false, compiled: false, editor: false } });
  }
}

// A chart over the whole window, hover and all; Escape or Close goes back.
async function enlarge(id, button) {
  const layer = document.createElement("div"), close = document.createElement("button"), place = document.createElement("div");
  Object.assign(layer, { className: "enlarged", role: "dialog", ariaModal: "true", ariaLabel: "Enlarged chart" });
  Object.assign(close, { type: "button", textContent: "Close" });
  layer.append(close, place);
  document.body.append(layer);
  const leave = () => { layer.remove(); button.focus(); };
  close.onclick = leave;
  layer.onkeydown = (event) => { if (event.key === "Escape") leave(); };
  close.focus();
  await vegaEmbed(place, themed(specs[id]), { actions: false, renderer: "svg" });
  const drawn = place.querySelector("svg"), [wide, high] = [drawn.width, drawn.height].map((side) => side.baseVal.value);
  const times = Math.min((innerWidth * ROOM) / wide, (innerHeight * ROOM - close.offsetHeight) / high);
  Object.assign(drawn.style, { width: `${wide * times}px`, height: `${high * times}px` });
}

for (const id of Object.keys(specs)) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Enlarge" });
  button.onclick = () => enlarge(id, button);
  document.getElementById("chart-" + id).after(button);
}
drawCharts();
dark.addEventListener("change", drawCharts);
