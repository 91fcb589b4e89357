"use strict";
// Tables: sorted, unfolded, filtered; what an address leads to is unfolded.
function followRows() {
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

  // What is wider than the window is reached by the keyboard; what is not keeps its headings in sight.
  const contents = document.querySelector(".contents");
  // In a frame of its own: what changes sizes while they are observed is an error of the page.
  const fitted = new ResizeObserver((entries) => requestAnimationFrame(() => entries.forEach(({ target }) => {
    if (target.dataset.width === String(target.clientWidth)) return;
    target.dataset.width = target.clientWidth;
    target.classList.remove("fits", "tight");
    if (target.scrollWidth > target.clientWidth) target.classList.add("tight");
    const fits = target.scrollWidth <= target.clientWidth;
    target.classList.toggle("fits", fits);
    if (fits) target.removeAttribute("tabindex");
    else target.tabIndex = 0;
    document.documentElement.style.setProperty("--stuck", `${contents?.offsetHeight ?? 0}px`);
  })));
  document.querySelectorAll(".scroll").forEach((part) => fitted.observe(part));

  // Every row, with what belongs to it, is a body of its own.
  document.querySelectorAll("table.sortable").forEach((table) => {
    if (!table.tHead) return;
    let original = [...table.tBodies];
    const heads = [...table.tHead.rows[0].cells];
    table.addEventListener("rows", () => { original = [...table.tBodies]; });  // who exchanges rows says so
    heads.forEach((head, column) => {
      if (head.tagName === "TD" || head.classList.contains("barcell")) return;
      head.setAttribute("aria-sort", "none");
      head.tabIndex = 0;
      const sort = () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
        heads.filter((other) => other.hasAttribute("aria-sort"))
          .forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", next);
        put(next);
      };
      const put = (next) => {
        const sign = next === "descending" ? -1 : 1;
        const ordered = next === "none" ? original
          : [...original].sort((a, b) => sign * compare(rank(a.rows[0].cells[column]), rank(b.rows[0].cells[column])));
        ordered.forEach((body) => table.append(body));
      };
      table.addEventListener("rows", () => {
        if (head.getAttribute("aria-sort") !== "none") put(head.getAttribute("aria-sort"));
      });
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
      });
    });
  });

  // ---- rows: unfold, filter ------------------------------------------------------------------------------------
  function open(button, wanted) {
    button.setAttribute("aria-expanded", String(wanted));
    document.getElementById(button.getAttribute("aria-controls")).classList.toggle("open", wanted);
  }
  document.querySelectorAll("button.expand").forEach((button) => {
    button.addEventListener("click", () => open(button, button.getAttribute("aria-expanded") !== "true"));
  });

  // A filter's state stands in the address: a link can be sent to a colleague.
  const filters = [...document.querySelectorAll("form[data-filters]")].map((form) => {
    const name = form.dataset.filters;
    const rows = [...document.querySelectorAll(`#${name} tbody[data-text]`)];
    const figures = [...document.querySelectorAll("figure[data-text]")];
    const text = form.querySelector('input[type="search"]');
    const kept = form.querySelector('input[type="checkbox"]');
    form.addEventListener("submit", (event) => event.preventDefault());
    function apply() {
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const fits = words.every((word) => row.dataset.text.includes(word)) && (!kept.checked || "kept" in row.dataset);
        row.hidden = !fits;
        shown += fits ? 1 : 0;
      }
      document.querySelectorAll(`#${name} > .scroll`).forEach((part) => {
        part.hidden = !part.querySelector(":scope > table > tbody:not([hidden])");
      });
      let drawn = 0;
      for (const figure of figures) {
        figure.hidden = !words.every((word) => figure.dataset.text.includes(word));
        drawn += figure.hidden ? 0 : 1;
        if (words.length && !figure.hidden && figure.closest("details")) figure.closest("details").open = true;
      }
      const charts = figures.length ? `, ${drawn} of ${figures.length} charts` : "";
      const all = shown === rows.length && drawn === figures.length;
      form.querySelector(".matches").textContent = all ? "" : `${shown} of ${rows.length} rows${charts}`;
    }
    [[text, "input"], [kept, "change"]].forEach(([field, event]) => field.addEventListener(event, () => {
      apply();
      remember();
    }));
    return {
      read(state) {
        text.value = state.get(name) ?? "";
        kept.checked = state.get(`${name}-all`) !== "1";
        apply();
      },
      write(state) {
        if (text.value) state.set(name, text.value);
        if (!kept.checked) state.set(`${name}-all`, "1");
      },
    };
  });
  function remember() {
    const state = new URLSearchParams();
    filters.forEach((filter) => filter.write(state));
    const text = state.toString();
    try {
      history.replaceState(null, "", text ? `#?${text}` : location.pathname + location.search);
    } catch { /* some browsers forbid it for local files; the filter works all the same */ }
  }

  // What an address leads to is unfolded, however deep it is folded away.
  function follow() {
    const id = decodeURIComponent(location.hash.slice(1));
    if (id.startsWith("?")) {
      const state = new URLSearchParams(id.slice(1));
      filters.forEach((filter) => filter.read(state));
      return;
    }
    const target = id && document.getElementById(id);
    if (!target) return;
    const part = target.querySelector(":scope > details.part");
    if (part) part.open = true;
    for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
    const button = target.querySelector(":scope > th > button.expand");
    if (button) {
      target.parentElement.hidden = false;
      target.closest(".scroll").hidden = false;
      open(button, true);
    }
    target.scrollIntoView();
  }
  filters.forEach((filter) => filter.read(new URLSearchParams()));
  window.addEventListener("hashchange", follow);
  follow();
}
