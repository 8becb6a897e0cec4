const {specs, ranges} = JSON.parse(document.getElementById("report-data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const axis = {labelColor: ink, titleColor: ink, gridColor: "#88888838", domainColor: ink, tickColor: ink};
  const config = {background: "transparent", range: ranges[dark.matches ? "dark" : "light"], axis,
    legend: {labelColor: ink, titleColor: ink}, title: {color: ink}, header: {labelColor: ink, titleColor: ink},
    view: {stroke: "#88888855"}};
  for (const [id, spec] of Object.entries(specs)) {
    const own = {...spec, config: {...config, range: config.range}};
    vegaEmbed("#chart-" + id, own, {actions: {export: true, source: false, compiled: false, editor: false}});
  }
}
draw();
dark.addEventListener("change", draw);
