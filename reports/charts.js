// Draws the figures that the page carries as JSON. Colours in them name CSS custom properties.
"use strict";

(() => {
  const COLOUR_KEYS = new Set(["color", "fillcolor", "bgcolor", "bordercolor", "activecolor"]);

  const resolve = (value, key, style) => {
    if (Array.isArray(value)) return value.map((item) => resolve(item, key, style));
    if (value && typeof value === "object") {
      return Object.fromEntries(
        Object.entries(value).map(([name, item]) => [name, resolve(item, name, style)]),
      );
    }
    const isName = COLOUR_KEYS.has(key) && typeof value === "string" && value.startsWith("--");
    return isName ? style.getPropertyValue(value).trim() : value;
  };

  const axis = { gridcolor: "--line", zeroline: false, linecolor: "--line", automargin: true };

  const themed = (layout, style) => {
    const axes = Object.keys(layout).filter((name) => /^[xy]axis/.test(name));
    const full = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: style.fontFamily, color: "--text", size: 13 },
      margin: { l: 8, r: 8, t: 8, b: 8 },
      legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: "--muted", activecolor: "--text" },
      hoverlabel: { bgcolor: "--raised", bordercolor: "--line", font: { color: "--text" }, align: "left" },
      hovermode: "closest",
      ...layout,
      ...Object.fromEntries(axes.map((name) => [name, { ...axis, ...layout[name] }])),
    };
    const resolved = resolve(full, "", style);
    for (const name of axes) resolved[name].gridcolor = style.getPropertyValue("--line").trim();
    return resolved;
  };

  const draw = (element) => {
    const figure = JSON.parse(document.getElementById(element.dataset.figure).textContent);
    const style = getComputedStyle(document.documentElement);
    const options = {
      responsive: true,
      displaylogo: false,
      displayModeBar: window.innerWidth < 700 ? false : "hover",
      modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
      plotlyServerURL: "", // the default buttons offer to upload the data; nothing leaves this page
    };
    Plotly.react(element, resolve(figure.data, "", style), themed(figure.layout, style), options);
  };

  const drawAll = () => document.querySelectorAll(".chart").forEach(draw);
  drawAll();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
})();
