// What a page of the dashboard does besides: keys, rows that come and change, and a page that loads itself again.
(() => {
  document.documentElement.classList.add("js");
  followRows();
  const KEYS = { h: "/", r: "/runs", c: "/compare", t: "/history", l: "/live", m: "/metrics" };
  const FIELD = 'input:not([type="checkbox"]), textarea, select, [contenteditable]';
  const help = document.getElementById("keys");
  const helper = document.querySelector("button.keys");
  helper.hidden = false;
  helper.addEventListener("click", () => help.showModal());
  let went = 0;
  document.addEventListener("keydown", (event) => {
    if (event.target.matches(FIELD) || event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.key === "/") {
      const field = document.querySelector('input[type="search"]');
      if (field) { event.preventDefault(); field.focus(); }
    } else if (event.key === "?") {
      help.showModal();
    } else if (event.key === "g") {
      went = Date.now();
    } else if (Date.now() - went < 1500 && KEYS[event.key]) {
      location.assign(KEYS[event.key]);
    } else if (list && inList(event.key)) {
      event.preventDefault();
    }
  });
  // The list of runs: the focus itself goes from row to row, so that a screen reader says where it is.
  const list = document.querySelector("table.list");
  const BOX = 'input[type="checkbox"]';
  const say = (text) => { document.getElementById("list-status").textContent = text; };
  const marked = () => list.querySelectorAll(`${BOX}:checked`).length;
  function inList(key) {
    const row = document.activeElement.closest("table.list tbody tr");
    if (key === "j" || (key === "ArrowDown" && row)) move(row, 1);
    else if (key === "k" || (key === "ArrowUp" && row)) move(row, -1);
    else if (key === "x" && row) row.querySelector(BOX)?.click();
    else if (key === "o" && row) row.querySelector("a").click();
    else if (key === "c" && marked()) list.closest("form").requestSubmit();
    else if (key === "c") say("No run is marked. Press x to mark the focused run.");
    else return false;
    return true;
  }
  function move(row, by) {
    const rows = [...list.querySelectorAll("tbody tr")];
    const place = row ? rows.indexOf(row) + by : by > 0 ? 0 : rows.length - 1;
    const next = rows[Math.min(Math.max(place, 0), rows.length - 1)];
    next?.querySelector(`${BOX}, a`).focus({ preventScroll: true });
    next?.scrollIntoView({ block: "nearest" });
  }
  list?.addEventListener("change", () => say(`${marked()} marked`));
  // A run that begins, ends or goes: its row alone is exchanged; marks, focus and order stay as they are.
  function exchange(page) {
    const focused = document.activeElement;
    const known = new Map([...list.tBodies].map((body) => [body.dataset.run, body]));
    const news = [];
    const wanted = [...page.querySelectorAll("table.list tbody")].map((body) => {
      const old = known.get(body.dataset.run);
      if (old?.outerHTML === body.outerHTML) return old;
      const box = body.querySelector(BOX);
      if (box) box.checked = Boolean(old?.querySelector(BOX)?.checked);
      news.push(`${body.dataset.run}: ${body.dataset.status}`);
      return body;
    });
    const held = focused.closest("tbody")?.dataset.run;
    known.forEach((body) => { if (!wanted.includes(body)) body.remove(); });
    let place = list.tBodies[0];
    wanted.forEach((body) => {
      if (body === place) place = place.nextElementSibling;
      else list.insertBefore(body, place ?? null);
    });
    list.dispatchEvent(new Event("rows"));
    if (held && document.activeElement !== focused) {
      wanted.find((body) => body.dataset.run === held)?.querySelector(`${BOX}, a`).focus({ preventScroll: true });
    }
    const facets = document.querySelector(".facets");
    const opened = [...facets.querySelectorAll("details")].map((part) => part.open);
    const counted = document.adoptNode(page.querySelector(".facets"));
    const parts = counted.querySelectorAll("details");
    if (parts.length === opened.length) parts.forEach((part, at) => { part.open = opened[at]; });
    if (!facets.contains(document.activeElement)) facets.replaceWith(counted);
    [".subtitle", "#found"].forEach((name) => {
      document.querySelector(name).textContent = page.querySelector(name).textContent;
    });
    if (news.length) say(news.length > 3 ? `${news.length} runs are new or changed` : news.join("; "));
  }
  let state = document.body.dataset.live;
  const look = async () => {
    try {
      if (!document.hidden) {
        const answer = await fetch(location.href, { headers: { accept: "text/html", "if-none-match": `"${state}"` } });
        if (answer.status === 200) {
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          state = page.body.dataset.live;
          exchange(page);
        }
      }
    } catch { /* the server is away: it is asked again */ }
    setTimeout(look, 3000);
  };
  if (list && state) setTimeout(look, 3000);
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
    document.querySelectorAll('#strips [data-key], tr[id^="key-"]').forEach((shown) => {
      shown.classList.toggle("marked", keys.has(shown.dataset.key ?? shown.id.slice(4)));
    });
  }
  let brushed = null;
  document.addEventListener("pointerdown", (event) => {
    const drawing = event.target.closest?.("#strips svg");
    if (drawing) brushed = { drawing, x: event.clientX };
  });
  document.addEventListener("pointermove", (event) => {
    if (!brushed || !event.buttons) return;
    const [low, high] = [brushed.x, event.clientX].sort((a, b) => a - b);
    const within = [...brushed.drawing.querySelectorAll("[data-key]")].filter((dot) => {
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
  // A timeline is played: a moment moves on slower than it was, and what had happened by then is lit.
  const replay = document.getElementById("replay");
  if (replay) {
    const parts = ["button", "input", "output", ".scroll"].map((name) => replay.querySelector(name));
    const [button, slider, output, frame] = parts;
    const [first, last] = [Number(slider.min), Number(slider.max)];
    const at = (dot) => Number(dot.dataset.key);
    const across = (dot) => dot.transform.baseVal.consolidate().matrix.e;
    let events = [];
    let cursor = null;
    let playing = false;
    let before = 0;
    // The drawing comes when it is first needed: most readers of a timeline do not play it.
    let drawing = null;
    const drawn = () => (drawing ??= fetch(replay.dataset.drawing).then(async (answer) => {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const lanes = page.querySelector("svg");
      frame.replaceChildren(lanes);
      frame.hidden = false;
      events = [...lanes.querySelectorAll("[data-key]")].sort((one, other) => at(one) - at(other));
      cursor = document.createElementNS(lanes.namespaceURI, "path");
      cursor.setAttribute("class", "cursor");
      cursor.setAttribute("d", `M0 0V${frame.querySelector("svg").getBBox().height}`);
      events[0].parentElement.append(cursor);
    }).catch(() => { drawing = null; })); // the server is away: it is asked again
    const show = async (moment) => {
      slider.value = moment;
      await drawn();
      if (!events.length) return;
      const [one, other] = [events[0], events.at(-1)];
      const scale = (across(other) - across(one)) / (at(other) - at(one) || 1);
      cursor.setAttribute("transform", `translate(${across(one) + (moment - at(one)) * scale} 0)`);
      const lit = events.filter((dot) => at(dot) <= moment);
      events.forEach((dot, place) => dot.classList.toggle("lit", place < lit.length));
      frame.querySelector(".now")?.classList.remove("now");
      lit.at(-1)?.classList.add("now");
      output.textContent = lit.at(-1)?.textContent ?? "";
    };
    const set = (wanted) => {
      playing = wanted;
      button.setAttribute("aria-pressed", String(playing));
      before = 0;
      if (playing) drawn().then(() => requestAnimationFrame(step));
    };
    const step = (now) => {
      if (!playing) return;
      const moment = Number(slider.value) + (before ? (now - before) / 1000 / Number(replay.dataset.slowness) : 0);
      before = now;
      show(Math.min(moment, last));
      if (moment < last) requestAnimationFrame(step);
      else set(false);
    };
    button.addEventListener("click", () => {
      if (!playing && Number(slider.value) >= last) slider.value = first;
      set(!playing);
    });
    slider.addEventListener("input", () => { set(false); show(Number(slider.value)); });
    replay.hidden = false;
  }
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
