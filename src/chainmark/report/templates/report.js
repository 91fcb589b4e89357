"use strict";
(() => {
  const byId = (id) => document.getElementById(id);

  // ---- rows: open, filter -------------------------------------------------------------------------------------
  function open(button, wanted) {
    button.setAttribute("aria-expanded", String(wanted));
    byId(button.getAttribute("aria-controls")).classList.toggle("open", wanted);
  }
  document.querySelectorAll("button.expand").forEach((button) => {
    button.addEventListener("click", () => open(button, button.getAttribute("aria-expanded") !== "true"));
  });

  const filter = byId("filter");
  const onlyMoved = byId("only-moved");
  const entries = [...document.querySelectorAll("tbody.entry")];

  function applyFilter() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const entry of entries) {
      const speaks = entry.classList.contains("gates") || entry.classList.contains("has-moved");
      const fits = words.every((word) => entry.dataset.text.includes(word)) && (!onlyMoved.checked || speaks);
      entry.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    byId("matches").textContent = shown === entries.length ? "" : `${shown} of ${entries.length} rows`;
    remember();
  }

  // ---- the address holds the state: a link can be sent to a colleague -------------------------------------------
  function remember() {
    const state = new URLSearchParams();
    if (filter.value) state.set("filter", filter.value);
    if (onlyMoved.checked) state.set("moved", "1");
    const text = state.toString();
    try {
      history.replaceState(null, "", text ? `#?${text}` : location.pathname + location.search);
    } catch { /* some browsers forbid it for local files; the filter works all the same */ }
  }
  function follow() {
    const id = decodeURIComponent(location.hash.slice(1));
    if (id.startsWith("?")) {
      const state = new URLSearchParams(id.slice(1));
      filter.value = state.get("filter") ?? "";
      onlyMoved.checked = state.get("moved") === "1";
      applyFilter();
      return;
    }
    const target = id && byId(id);
    for (let part = target && target.closest("details"); part; part = part.parentElement.closest("details")) {
      part.open = true;
    }
    const button = target && target.querySelector(":scope > th > button.expand");
    if (button) {
      target.parentElement.hidden = false;
      open(button, true);
      target.scrollIntoView();
    }
  }
  filter.addEventListener("input", applyFilter);
  onlyMoved.addEventListener("change", applyFilter);
  window.addEventListener("hashchange", follow);
  follow();
})();
