
// The workbench as a widget of a notebook (anywidget): the payload in, the view out. Its styles lie in a shadow root.

// Whether the notebook is dark: JupyterLab, VS Code, Colab, else what the system says.
function isDark() {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false";
  if (vscodeThemeKind) return /dark|contrast/.test(vscodeThemeKind);
  if (document.documentElement.getAttribute("theme")) return document.documentElement.getAttribute("theme") === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

function render({ model, el }) {
  const place = document.createElement("div"), shadow = place.attachShadow({ mode: "open" });
  const style = make("style", { textContent: STYLE }), colours = make("style"), root = make("div", { className: "root" });
  shadow.append(style, colours, root);
  el.append(place);
  const told = { view: "" };
  const tell = (view) => {
    told.view = JSON.stringify(view);
    model.set("view", view); model.save_changes();
    root.dataset.told = view.head; // Python has it before anything that is run from now on
  };
  const workbench = startWorkbench(root, { tell, room: () => model.get("height") });
  const show = () => {
    const { buffer, byteOffset, byteLength } = model.get("payload");
    colours.textContent = `:host { --st-font: var(--jp-ui-font-family, sans-serif); ${COLOURS[isDark() ? "dark" : "light"]}; `
      + "display: block; padding: 4px; background: var(--st-background-color); }";
    openPayload(workbench, new Uint8Array(buffer, byteOffset, byteLength), themeOf(root));
  };
  const chosen = () => { if (JSON.stringify(model.get("view")) !== told.view) takeView(workbench, model.get("view")); };
  const resize = () => draw(workbench);
  show();
  model.on("change:payload", show);
  model.on("change:height", resize);
  model.on("change:view", chosen);
  const watcher = new MutationObserver(show);
  watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] });
  return () => {
    watcher.disconnect(); workbench.stop();
    model.off("change:payload", show); model.off("change:height", resize); model.off("change:view", chosen);
  };
}

export default { render };
