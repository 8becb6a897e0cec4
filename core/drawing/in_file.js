
// The workbench in a file of its own: its payload lies in the page, compressed, and nothing is asked of the network.

const UNDER = 80; // pixels left free under a workbench

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return restored(new Uint8Array(await new Response(stream).arrayBuffer()));
}

// The header, and the weights as 16 bits (packing.py): first all high bytes and then all low ones, or 8 bits a weight.
function restored(bytes) {
  const size = new DataView(bytes.buffer).getUint32(0, true), body = bytes.subarray(4 + size);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  const count = header.bits === 16 ? body.length / 2 : body.length, weights = new Uint16Array(count);
  if (header.bits === 16) for (let k = 0; k < count; k++) weights[k] = (body[k] << 8) | body[count + k];
  else for (const pane of header.panes) {
    const end = pane.offset + pane.layers * pane.heads * areaOf(pane), step = pane.signed ? 65534 / 254 : 257;
    for (let k = pane.offset; k < end; k++) weights[k] = Math.round(body[k] * step);
  }
  return { header, weights };
}

// A workbench lives in a shadow root, so that its styles and the page's leave each other alone. Of a shelf its buttons
// choose which maps it shows; the look (matrix or lines) stays.
async function openFile(place) {
  place.attachShadow({ mode: "open" }).append(/** @type {HTMLTemplateElement} */ (document.getElementById("workbench")).content.cloneNode(true));
  const root = place.shadowRoot.querySelector(".root");
  const buttons = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(`#${place.id}-shelf button`)]);
  const room = () => Math.max(SMALLEST, Math.min(window.innerHeight - UNDER, 760));
  const workbench = startWorkbench(root, { tell: () => {}, room });
  let payload, wanted = 0;
  const show = () => openMaps(workbench, payload, themeOf(root));
  const choose = async (number) => {
    wanted = number;
    const read = await unpacked(document.getElementById(`${place.id}-maps${number ? `-${number}` : ""}`).textContent);
    if (wanted !== number) return; // another one was chosen meanwhile
    payload = read;
    show();
    takeView(workbench, { ...payload.header.opened, look: workbench.view.look });
    buttons.forEach((button, k) => button.setAttribute("aria-pressed", String(k === number)));
  };
  buttons.forEach((button, number) => { button.onclick = () => choose(number); });
  payload = await unpacked(document.getElementById(place.id + "-maps").textContent);
  show();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
}

for (const place of document.querySelectorAll(".maps")) {
  openFile(place).catch((error) => {
    place.replaceWith(`The maps need a browser of 2023 or later (${error.message}).`);
  });
}
