// What a page of the dashboard does besides: keys, and a page that is measured right now loads itself again.
(() => {
  document.documentElement.classList.add("js");
  followRows();
  const KEYS = { h: "/", r: "/runs", c: "/compare", t: "/history", l: "/live", m: "/metrics" };
  let went = 0;
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      const field = document.querySelector('input[type="search"]');
      if (field) { event.preventDefault(); field.focus(); }
    } else if (event.key === "g") {
      went = Date.now();
    } else if (Date.now() - went < 1500 && KEYS[event.key]) {
      location.assign(KEYS[event.key]);
    }
  });
  // The matrix: rows by relevance, and a metric opened below its row.
  const slider = document.querySelector('#matrix input[type="range"]');
  slider?.addEventListener("input", () => {
    slider.parentElement.querySelector("output").textContent = slider.value;
    document.querySelectorAll("#matrix tbody[data-relevance]").forEach((row) => {
      row.hidden = !("gating" in row.dataset) && Number(row.dataset.relevance) < Number(slider.value);
    });
    const address = new URL(location.href);
    address.searchParams.set("relevance", slider.value);
    history.replaceState(null, "", address);
  });
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("a.opens");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const row = link.closest("tr");
    if (row.nextElementSibling) { row.nextElementSibling.remove(); link.removeAttribute("aria-expanded"); return; }
    link.setAttribute("aria-expanded", "true");
    const opened = row.parentElement.insertRow();
    opened.className = "opened";
    const cell = opened.insertCell();
    cell.colSpan = row.cells.length;
    cell.textContent = "…";
    try {
      const answer = await fetch(link.href, { headers: { accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      cell.replaceChildren(...page.querySelectorAll("#main > .tools, #strips, #judged, #distribution, #hosts"));
    } catch { location.assign(link.href); }
  });
  document.querySelectorAll('.what-if input[type="range"]').forEach((field) => {
    field.addEventListener("input", () => { field.parentElement.querySelector("output").textContent = field.value; });
    field.addEventListener("change", () => field.form.requestSubmit());
  });
  // Brushing: what is dragged over in one drawing is marked wherever it is shown.
  function mark(keys) {
    document.querySelectorAll('.dots circle, tr[id^="key-"]').forEach((shown) => {
      shown.classList.toggle("marked", keys.has(shown.dataset.key ?? shown.id.slice(4)));
    });
  }
  let brushed = null;
  document.addEventListener("pointerdown", (event) => {
    const drawing = event.target.closest?.("svg.dots");
    if (drawing) brushed = { drawing, x: event.clientX };
  });
  document.addEventListener("pointermove", (event) => {
    if (!brushed || !event.buttons) return;
    const [low, high] = [brushed.x, event.clientX].sort((a, b) => a - b);
    const within = [...brushed.drawing.querySelectorAll("circle")].filter((dot) => {
      const box = dot.getBoundingClientRect();
      return box.right >= low && box.left <= high;
    });
    mark(new Set(within.map((dot) => dot.dataset.key)));
  });
  document.addEventListener("pointerup", (event) => {
    if (brushed && Math.abs(event.clientX - brushed.x) < 3) {
      mark(new Set(event.target.dataset?.key ? [event.target.dataset.key] : []));
    }
    brushed = null;
  });
  const seconds = Number(document.body.dataset.refresh);
  if (seconds) {
    const again = async () => {
      if (document.hidden || document.activeElement?.matches("input")) { setTimeout(again, seconds * 1000); return; }
      try {
        const answer = await fetch(location.href, { headers: { accept: "text/html" } });
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        document.getElementById("main").replaceWith(page.getElementById("main"));
        if (!page.body.dataset.refresh) return;
      } catch { /* the server is away: it is asked again */ }
      setTimeout(again, seconds * 1000);
    };
    setTimeout(again, seconds * 1000);
  }
})();
