"use strict";
(() => {
  const settings = JSON.parse(document.getElementById("chart-data").textContent);
  const row = 30; // the height of a bar with its gap

  // Bars down the side get a height of their own; everything else has one height.
  function heightOf(spec) {
    const names = spec.layer.map((layer) => layer.encoding.y).find((y) => y && y.type === "nominal");
    return names ? Math.max(60, row * names.sort.length) : 320;
  }

  // As many columns in a legend as there is room for.
  function fitted(spec, width) {
    const columns = Math.max(1, Math.min(6, Math.floor(width / 240)));
    return JSON.parse(JSON.stringify(spec), (key, value) => (key === "columns" ? columns : value));
  }

  chainmark.drawWhenSeen((place) => {
    const spec = fitted(settings.specs[place.dataset.chart], place.clientWidth);
    chainmark.embed(place, { ...spec, width: "container", height: spec.height ?? heightOf(spec) }, settings, "svg");
  });
  chainmark.offerDownload("source-data", `${settings.kind}.json`);
})();
