
// The sidebar. In a narrow window (or an enlarged one) it gives its room to the page, and opens again with its own button.
const NARROW = 1000;

// Say once that the first page stands: the script has run, its maps are painted, and the browser has nothing else to do.
function whenPainted(say) {
  const idle = window.requestIdleCallback || ((done) => setTimeout(done, 200)), latest = performance.now() + 5000;
  const parts = () => [...document.querySelectorAll('[data-testid^="stBidiComponent"]')].map((one) => one.shadowRoot || one);
  const drawn = (part) => part.firstElementChild && !part.querySelector(".root:not([data-painted])");
  const stands = () => document.querySelector('[data-testid="stApp"][data-test-script-state="notRunning"]')
    && ((!document.querySelector('[data-testid="stSkeleton"]') && parts().every(drawn)) || performance.now() > latest);
  const look = () => (stands() ? idle(say, { timeout: 1500 }) : setTimeout(look, 50));
  setTimeout(look, 200);
}

export default function () {
  const fold = () => {
    const sidebar = document.querySelector('[data-testid="stSidebar"][data-collapsed="false"]');
    if (window.innerWidth < NARROW && sidebar) /** @type {HTMLElement} */ (sidebar.querySelector('[data-testid="stSidebarCollapseButton"] button'))?.click();
  };
  if (!window.atlasFolds) {
    let wide = window.innerWidth >= NARROW;
    window.atlasFolds = () => { if (wide && window.innerWidth < NARROW) fold(); wide = window.innerWidth >= NARROW; };
    window.addEventListener("resize", window.atlasFolds);
    fold();
    // Every page lies right below the app's base path; a server that went away meanwhile needs no telling.
    whenPainted(() => fetch("painted", { method: "POST" }).catch(() => {}));
  }
}
