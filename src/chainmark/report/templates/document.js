// What every report's page does: charts drawn when they come into view, the data given back.
(async () => {
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

  // What lies in the page as gzip in base85: five letters are four bytes.
  const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";
  function lettersToBytes(text) {
    const value = new Uint8Array(128);
    [...LETTERS].forEach((letter, at) => { value[letter.charCodeAt(0)] = at; });
    const bytes = new DataView(new ArrayBuffer(4 * Math.ceil(text.length / 5)));
    for (let at = 0; at < text.length; at += 5) {
      let four = 0;
      for (let place = at; place < at + 5; place += 1) {
        four = four * 85 + (place < text.length ? value[text.charCodeAt(place)] : 84);
      }
      bytes.setUint32(at / 5 * 4, four);
    }
    return new Uint8Array(bytes.buffer, 0, Math.floor(text.length * 4 / 5));
  }
  async function unpackedBytes(id) {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("this browser cannot decompress data (no DecompressionStream); use a browser from 2023 or later");
    }
    const bytes = lettersToBytes(document.getElementById(id).textContent);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  }
  const unpacked = async (id) => new TextDecoder().decode(await unpackedBytes(id));

  // The page's document: its lists of figures stand behind it as steps, and are written out to the letter.
  async function sourceText() {
    const bytes = new Uint8Array(await unpackedBytes("source-data"));
    const end = bytes.indexOf(0);
    const text = new TextDecoder().decode(bytes.subarray(0, end));
    const folded = bytes.subarray(end + 1);
    const lists = /\x01(\d+):(\d+)/g;
    const steps = [...text.matchAll(lists)].reduce((sum, found) => sum + Number(found[2]), 0);
    let next = 0;
    const step = () => { // the highest byte comes last
      let found = 0;
      for (let at = folded.length - steps + next; at >= 0; at -= steps) found = found * 256 + folded[at];
      next += 1;
      return found % 2 ? -(found + 1) / 2 : found / 2;
    };
    const figure = (value, places) => {
      const digits = String(Math.abs(value)).padStart(places + 1, "0");
      const decimals = digits.slice(-places).replace(/0+$/, "") || "0";
      return `${value < 0 ? "-" : ""}${digits.slice(0, -places)}.${decimals}`;
    };
    return text.replace(lists, (_, places, size) => {
      let value = 0;
      return Array.from({ length: Number(size) }, () => figure(value += step(), Number(places))).join(",");
    });
  }

  // What is folded away on long pages, put in its place before anything below looks for it.
  async function unfold() {
    const places = document.querySelectorAll("[data-folded]");
    try {
      const parts = JSON.parse(await unpacked("folded-data"));
      const fill = (place) => {
        place.innerHTML = parts[place.dataset.folded];
        place.querySelectorAll("[data-folded]").forEach(fill);
      };
      places.forEach(fill);
    } catch (error) {
      places.forEach((place) => { place.textContent = `This could not be shown: ${error.message}`; });
    }
  }
  await unfold();

  // The charts and the library that draws them, when the first one comes into view.
  let loading = null;
  async function load() {
    const [charts, source, library] = await Promise.all([unpacked("chart-data"), sourceText(), unpacked("vega")]);
    const script = document.createElement("script");
    script.textContent = library;
    document.head.append(script);
    return { ...JSON.parse(charts), source: JSON.parse(source) };
  }

  // A column's values: texts are places in a list; figures may stand in the page's document, stretch by stretch.
  function valuesOf(column, source) {
    if (Array.isArray(column)) return column;
    if (column.labels) return column.at.map((place) => column.labels[place]);
    return column.from.flatMap(([path, size, factor]) => {
      if (path === null) return Array(size).fill(null);
      const found = path.reduce((value, key) => value[key], source);
      return found.map((value) => (value === null ? null : value * factor));
    });
  }

  function rowsOf(columns, source) {
    const names = Object.keys(columns);
    const read = names.map((name) => valuesOf(columns[name], source));
    return (read[0] ?? []).map((_, row) => Object.fromEntries(names.map((name, at) => [name, read[at][row]])));
  }

  // As many columns in a legend as there is room for.
  function fitted(spec, width) {
    const columns = Math.max(1, Math.min(6, Math.floor(width / 240)));
    return JSON.parse(JSON.stringify(spec), (key, value) => (key === "columns" ? columns : value));
  }

  // The interpreter instead of compiled expressions: the page allows itself no eval.
  async function draw(place) {
    try {
      const all = await (loading ??= load());
      const { spec, data, palette, renderer } = all.charts[place.dataset.chart];
      const datasets = Object.fromEntries(
        Object.entries(data).map(([name, columns]) => [name, rowsOf(columns, all.source)]));
      const config = look(all.palettes[palette]);
      const tooltip = { disableDefaultStyle: true }; // the page's policy allows its own style alone
      await window.vegaEmbed(place, { ...fitted(spec, place.clientWidth), width: "container", datasets },
                             { actions: false, ast: true, config, defaultStyle: false, tooltip, renderer });
    } catch (error) {
      place.textContent = `This chart could not be drawn: ${error.message}`;
    }
    place.dataset.drawn = "yes";
  }

  function drawWhenSeen() {
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

  // The document that the page was made from; its button names the file.
  const button = document.getElementById("download");
  button.addEventListener("click", async () => {
    try {
      const blob = new Blob([await sourceText()], { type: "application/json" });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = button.dataset.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    } catch (error) {
      button.after(` ${error.message}`);
    }
  });

  drawWhenSeen();
  followRows();
})();
