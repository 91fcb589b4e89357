"use strict";
// What every report's page does: charts drawn when they come into view, tables sorted, the data given back.
const chainmark = (() => {
  document.documentElement.classList.add("js"); // without a script every row is open and readable
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function look(colours) {
    const ink = dark.matches ? "#d5dade" : "#333333";
    const grid = dark.matches ? "#333a41" : "#e4e7ea";
    return {
      font: "system-ui, sans-serif",
      background: "transparent",
      range: { category: dark.matches ? colours.dark : colours.light },
      axis: { labelColor: ink, titleColor: ink, gridColor: grid, domainColor: "#888888", tickColor: "#888888",
              titleFontWeight: "normal", titleFontSize: 12, labelFontSize: 11 },
      legend: { labelColor: ink, labelFontSize: 12, symbolSize: 200 },
      view: { stroke: null },
    };
  }

  // Draw `spec` into `place`. The interpreter instead of compiled expressions: the page allows itself no eval.
  async function embed(place, spec, colours, renderer) {
    const options = {
      actions: false, ast: true, config: look(colours), tooltip: { theme: dark.matches ? "dark" : "light" }, renderer,
    };
    try {
      await window.vegaEmbed(place, spec, options);
    } catch (error) {
      place.textContent = `This chart could not be drawn: ${error.message}`;
    }
    place.dataset.drawn = "yes";
  }

  function drawWhenSeen(draw) {
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
    const isFolded = (place) => place.closest("details:not([open])") !== null;
    window.addEventListener("beforeprint", () =>
      places.filter((place) => !place.dataset.drawn && !isFolded(place)).forEach(draw));
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

  // Every row, with what belongs to it, is a body of its own.
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

  function offerDownload(id, name) {
    document.getElementById("download").addEventListener("click", () => {
      const blob = new Blob([document.getElementById(id).textContent], { type: "application/json" });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }

  return { drawWhenSeen, embed, offerDownload };
})();
