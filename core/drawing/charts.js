// Charts of a page in one file, by the Vega that the page holds, in the light or the dark theme's colours.
const { specs, ranges } = JSON.parse(document.getElementById("figures").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
function drawCharts() {
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const axis = { labelColor: ink, titleColor: ink, gridColor: "#88888838", domainColor: ink, tickColor: ink };
  const config = { background: "transparent", range: ranges[dark.matches ? "dark" : "light"], axis,
    legend: { labelColor: ink, titleColor: ink }, title: { color: ink }, header: { labelColor: ink, titleColor: ink },
    view: { stroke: "#88888855" } };
  for (const [id, spec] of Object.entries(specs)) {
    const own = { ...spec, config: { ...config, range: config.range } };
    vegaEmbed("#chart-" + id, own, { actions: { export: true, source: false, compiled: false, editor: false } });
  }
}
drawCharts();
dark.addEventListener("change", drawCharts);
