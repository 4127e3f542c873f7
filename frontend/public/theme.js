// Runs before the first paint, so that the page never flashes in the other theme.
(() => {
  let choice = null;
  try {
    choice = localStorage.getItem("eloquio-theme");
  } catch {
    // Storage is blocked: follow the system.
  }
  const dark =
    choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
