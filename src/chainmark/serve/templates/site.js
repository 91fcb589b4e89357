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
