"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js"); // without a script every row is open and readable
  const byId = (id) => document.getElementById(id);
  const settings = JSON.parse(byId("chart-data").textContent);
  let parsed = null;
  const comparison = () => (parsed ??= JSON.parse(byId("comparison-data").textContent));

  // ---- charts -------------------------------------------------------------------------------------------------
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

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

  function look() {
    const ink = dark.matches ? "#d5dade" : "#333333";
    const grid = dark.matches ? "#333a41" : "#e4e7ea";
    return {
      font: "system-ui, sans-serif",
      background: "transparent",
      range: { category: [...(dark.matches ? settings.dark : settings.light), "#009e73", "#cc79a7", "#888888"] },
      axis: { labelColor: ink, titleColor: ink, gridColor: grid, domainColor: "#888888", tickColor: "#888888",
              titleFontWeight: "normal", titleFontSize: 12, labelFontSize: 11 },
      legend: { labelColor: ink, labelFontSize: 12, symbolSize: 200 },
      view: { stroke: null },
    };
  }

  async function draw(place) {
    const drawing = settings.charts[place.dataset.chart];
    const chart = comparison().charts[drawing.index];
    const spec = { ...drawing.spec, width: "container", height: 250,
                   datasets: { [settings.data_name]: pointsOf(chart, drawing) } };
    // The interpreter instead of compiled expressions: the page allows itself no eval.
    const options = {
      actions: false, ast: true, config: look(), tooltip: { theme: dark.matches ? "dark" : "light" },
      renderer: place.dataset.kind === "scatter" ? "canvas" : "svg", // thousands of dots would be thousands of elements
    };
    try {
      await window.vegaEmbed(place, spec, options);
    } catch (error) {
      place.textContent = `This chart could not be drawn: ${error.message}`;
    }
    place.dataset.drawn = "yes";
  }

  const places = [...document.querySelectorAll(".plot")];
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        seen.unobserve(entry.target);
        draw(entry.target);
      }
    }
  }, { rootMargin: "400px" });
  places.forEach((place) => seen.observe(place));
  dark.addEventListener("change", () => places.filter((place) => place.dataset.drawn).forEach(draw));
  window.addEventListener("beforeprint", () => places.filter((place) => !place.dataset.drawn).forEach(draw));

  // ---- rows: open, filter, sort -------------------------------------------------------------------------------
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

  // A figure's place in the order; words ("no data") come last.
  function rank(cell) {
    const text = cell.textContent.trim().replaceAll("\u2212", "-").replaceAll(",", "");
    const figure = Number.parseFloat(text);
    return Number.isNaN(figure) ? text : figure;
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a === typeof b) return a.localeCompare(b);
    return typeof a === "number" ? -1 : 1;
  }

  document.querySelectorAll("table.sortable").forEach((table) => {
    const original = [...table.tBodies];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (head.classList.contains("barcell")) return;
      head.setAttribute("aria-sort", "none");
      head.tabIndex = 0;
      const sort = () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
        heads.filter((other) => other.hasAttribute("aria-sort"))
          .forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", next);
        const sign = next === "descending" ? -1 : 1;
        const ordered = next === "none" ? original
          : [...original].sort((a, b) => sign * compare(rank(a.rows[0].cells[column]), rank(b.rows[0].cells[column])));
        ordered.forEach((body) => table.append(body));
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
      });
    });
  });

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

  // ---- the data ---------------------------------------------------------------------------------------------------
  byId("download").addEventListener("click", () => {
    const blob = new Blob([byId("comparison-data").textContent], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = "comparison.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
})();
