"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const settings = JSON.parse(byId("chart-data").textContent);
  let parsed = null;
  const comparison = () => (parsed ??= JSON.parse(byId("comparison-data").textContent));

  // ---- charts -------------------------------------------------------------------------------------------------
  function pointsOf(chart, drawing) {
    const factor = chart.kind === "cdf" ? drawing.x_factor : drawing.y_factor;
    const points = [];
    const candidateFirst = (line) => (line.side === "candidate" ? 0 : 1); // the dashed baseline is drawn over it
    for (const line of [...chart.lines].sort((a, b) => candidateFirst(a) - candidateFirst(b))) {
      const side = settings.sides[line.side] ?? line.label;
      const run = line.run_id ?? "all runs";
      const pooled = line.run_id === null;
      for (let i = 0; i < line.x.length; i++) {
        const point = { x: line.x[i] * drawing.x_factor, y: line.y[i] * drawing.y_factor, side, run, pooled };
        if (line.low && line.high) {
          point.low = line.low[i] * factor;
          point.high = line.high[i] * factor;
        }
        points.push(point);
      }
    }
    return points;
  }

  async function draw(place) {
    const drawing = settings.charts[place.dataset.chart];
    const chart = comparison().charts[drawing.index];
    const spec = { ...drawing.spec, width: "container", height: 250,
                   datasets: { [settings.data_name]: pointsOf(chart, drawing) } };
    const renderer = place.dataset.kind === "scatter" ? "canvas" : "svg"; // thousands of dots, thousands of elements
    await chainmark.embed(place, spec, settings, renderer);
  }

  chainmark.drawWhenSeen(draw);

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
    const closed = target && target.closest("details:not([open])");
    if (closed) closed.open = true;
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

  chainmark.offerDownload("comparison-data", "comparison.json");
})();
