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

  // ---- the life of a block, and a metric host by host ---------------------------------------------------------
  function timesOf(story, drawing) {
    const marks = [];
    const spans = [];
    story.places.forEach((found, row) => {
      const place = drawing.labels[row];
      const told = found.seconds.filter((time) => time !== null).map((time) => time * drawing.factor);
      if (told.length > 0) spans.push({ place, first: Math.min(...told), last: Math.max(...told) });
      found.seconds.forEach((time, stage) => {
        if (time === null) return;
        const mark = { place, stage: story.stages[stage], time: time * drawing.factor };
        if (found.steps[stage] !== null) mark.step = found.steps[stage] * drawing.factor;
        const line = found.lines[stage] ?? null;
        const file = found.files[stage] ?? null;
        if (line !== null) mark.log = file === null ? `line ${line}` : `${story.files[file]}:${line}`;
        marks.push(mark);
      });
    });
    return { marks, spans };
  }

  function meansOf(breakdown, drawing) {
    const dots = [];
    const links = [];
    breakdown.values.forEach((value, row) => {
      const means = ["baseline", "candidate"].map((side) => breakdown[side][row]);
      ["baseline", "candidate"].forEach((side, index) => {
        if (means[index] === null) return;
        const mean = means[index] * drawing.factor;
        const n = breakdown[`${side}_n`][row];
        dots.push({ value, side: settings.sides[side], mean, text: mean.toPrecision(4), n });
      });
      if (means.includes(null)) return;
      const scaled = means.map((mean) => mean * drawing.factor);
      links.push({ value, low: Math.min(...scaled), high: Math.max(...scaled) });
    });
    return { dots, links };
  }

  async function drawLife(place) {
    const drawing = settings.lives[place.dataset.life];
    const datasets = timesOf(comparison().stories[drawing.index], drawing);
    const colours = { light: settings.line_light, dark: settings.line_dark };
    await chainmark.embed(place, { ...drawing.spec, width: "container", datasets }, colours, "svg");
  }

  async function drawBreakdown(place) {
    const drawing = settings.breakdowns[place.dataset.breakdown];
    const datasets = meansOf(comparison().breakdowns[drawing.index], drawing);
    await chainmark.embed(place, { ...drawing.spec, width: "container", datasets }, settings, "svg");
  }

  async function draw(place) {
    if (place.dataset.life) return drawLife(place);
    if (place.dataset.breakdown) return drawBreakdown(place);
    const drawing = settings.charts[place.dataset.chart];
    const chart = comparison().charts[drawing.index];
    const spec = { ...drawing.spec, width: "container", height: 250,
                   datasets: { [settings.data_name]: pointsOf(chart, drawing) } };
    const renderer = place.dataset.kind === "scatter" ? "canvas" : "svg"; // thousands of dots, thousands of elements
    return chainmark.embed(place, spec, settings, renderer);
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

  chainmark.offerDownload("comparison-data", "comparison.json");
})();
