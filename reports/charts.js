// Draws the figures that the page carries as JSON, each when it comes near the view: Plotly takes
// longer to read than all else of a page. Colours in them name CSS custom properties. What a reader
// has zoomed to stands in the address, so that a link shows the same part.
"use strict";

(() => {
  const COLOUR_KEYS = new Set(["color", "fillcolor", "bgcolor", "bordercolor", "activecolor", "gridcolor", "linecolor"]);

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

  const narrow = () => window.innerWidth < 700;

  const axis = { gridcolor: "--line", zeroline: false, linecolor: "--line", automargin: true };

  const themed = (layout, style) => {
    const axes = Object.keys(layout).filter((name) => /^[xy]axis/.test(name));
    const full = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: style.fontFamily, color: "--text", size: 0.8125 * parseFloat(style.fontSize) },
      margin: { l: 8, r: 8, t: 8, b: 8 },
      // A legend's entry works by mouse alone: it hides nothing, the tables leave nothing out.
      legend: {
        orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom",
        itemclick: false, itemdoubleclick: false,
      },
      uirevision: "zoom", // kept when the theme changes
      modebar: { bgcolor: "rgba(0,0,0,0)", color: "--muted", activecolor: "--text" },
      hoverlabel: { bgcolor: "--raised", bordercolor: "--line", font: { color: "--text" }, align: "left" },
      hovermode: "closest",
      dragmode: narrow() ? false : "zoom", // a finger scrolls the page
      ...layout,
      ...Object.fromEntries(axes.map((name) => [name, { ...axis, ...layout[name] }])),
    };
    return resolve(full, "", style);
  };

  // A figure over commits carries each series' numbers once, in columns: from them come the lines,
  // the bands of their intervals, and the words under the pointer (gpubench/report/figures.py).

  const { DASH, digits, quantity, ratioText, secondsInterval } = gpubenchText;

  const words = (series, commits, unit) =>
    commits.map((commit, index) => {
      const part = ({ values, lows, highs }) => [values[index], lows[index] ?? NaN, highs[index] ?? NaN];
      const [time, ...times] = part(series.times);
      const [ratio, low, high] = part(series.speedups);
      const ratios = Number.isFinite(low) ? `${digits(low)}${DASH}${digits(high)}×` : "no interval";
      return [
        series.name,
        commit,
        ...(time === null ? [] : [`${quantity(time, unit)}${unit === "seconds" ? ` (${secondsInterval(...times)})` : ""}`]),
        ...(ratio === null ? [] : [`${ratioText(ratio)} (${ratios})`]),
      ].join("<br>");
    });

  // Runs of neighbouring commits with an interval, as indices.
  const stretches = ({ lows }) => {
    const runs = [];
    lows.forEach((low, index) => {
      if (low === null) return;
      if (index && lows[index - 1] !== null) runs.at(-1).push(index);
      else runs.push([index]);
    });
    return runs;
  };

  const bands = (curve, trace) =>
    stretches(curve).filter((run) => run.length > 1).map((run) => ({
      x: [...run, ...run.toReversed()],
      y: [...run.map((index) => curve.lows[index]), ...run.toReversed().map((index) => curve.highs[index])],
      fill: "toself",
      fillcolor: trace.drawn.band,
      line: { width: 0 },
      mode: "lines",
      hoverinfo: "skip",
      showlegend: false,
      legendgroup: trace.legendgroup,
    }));

  // Intervals of commits that stand alone and so have no band: one line with gaps, since Plotly makes
  // an element for each error bar, of those without a length too.
  const bars = (curve, trace) => {
    const alone = stretches(curve).filter((run) => run.length === 1).flat();
    if (!alone.length) return [];
    return [{
      x: alone.flatMap((index) => [index, index, null]),
      y: alone.flatMap((index) => [curve.lows[index], curve.highs[index], null]),
      mode: "lines",
      line: { color: trace.line.color, width: 2 },
      hoverinfo: "skip",
      showlegend: false,
      legendgroup: trace.legendgroup,
    }];
  };

  // The numbers and commits of a figure that names scripts: gpubench/report/series.py.
  const filled = async (figure) => {
    if (!figure.places) return figure;
    const { kernel, setups } = gpubenchLists.sources();
    const [commits, series] = await Promise.all(gpubenchLists.seriesOf(kernel, setups[0]).map(gpubenchLists.read));
    const every = figure.places.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, place) => first + place));
    const isLog = figure.unit === "seconds";
    const columns = await Promise.all(figure.names.map(async (name, index) => {
      const numbers = await gpubenchLists.floats(series.charted[index]);
      const part = (kind, shown = true) => every.map((place) => {
        const value = numbers[kind * series.commits + place];
        return shown && Number.isFinite(value) && (!isLog || value > 0) ? value : null;
      });
      const curve = (kind, shown) => {
        const [values, lows, highs] = [0, 1, 2].map((end) => part(kind + end, shown));
        const known = lows.map((low, place) => low !== null && low > 0 && highs[place] !== null);
        const ends = (column) => column.map((end, place) => (known[place] ? end : null));
        return { values, lows: ends(lows), highs: ends(highs) };
      };
      const failed = new Set(series.cases.find((one) => one.charted === index)?.failed);
      const values = Array.from(every, (place) => numbers[place]);
      return { name, times: curve(0, figure.has_times), speedups: curve(3), values, failed: every.map((place) => failed.has(place)) };
    }));
    const changed = new Set(figure.uncommitted);
    const words = every.map((place, index) => {
      const [short, moment, subject] = commits[place];
      const mark = changed.has(index) ? " (measured with uncommitted changes)" : "";
      return escaped(`${short} ${gpubenchText.date(moment)} ${subject}${mark}`);
    });
    return { ...figure, columns, commits: words, labels: every.map((place) => commits[place]) };
  };

  const escaped = (words) => words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

  // Every commit in the table below a chart, the newest first, on request.
  const fillTable = async (button) => {
    const { changes, columns, labels, uncommitted, unit } = await filled(JSON.parse(document.getElementById(button.dataset.tableOf).textContent));
    const { make } = gpubenchLists;
    const changed = new Set(uncommitted);
    const cell = ({ speedups, values, failed }, number, index) => {
      const change = changes[number][index];
      const [ratio, low, high] = [speedups.values[index], speedups.lows[index], speedups.highs[index]];
      const parts = [
        change ? make("span", { className: "change" }, change) : "",
        ...(ratio === null ? [] : [make("b", {}, ratioText(ratio)), make("small", {}, low === null ? "no interval" : `${digits(low)}${DASH}${digits(high)}×`)]),
      ];
      const none = failed[index] ? "no value" : "not measured";
      const value = Number.isNaN(values[index]) ? make("span", { className: "muted" }, none) : make("small", {}, quantity(values[index], unit));
      return make("td", { className: "number" }, ...parts, value);
    };
    const rows = labels.map(([short, moment, subject], index) => {
      const commit = make("span", { className: "commit" }, make("code", {}, short), " ", make("span", { className: "muted" }, gpubenchText.date(moment)));
      const mark = changed.has(index) ? make("span", { className: "uncommitted" }, " with uncommitted changes") : "";
      return make("tr", {}, make("th", { scope: "row" }, commit, mark, subject ? make("small", {}, subject) : ""), ...columns.map((column, number) => cell(column, number, index)));
    });
    button.closest("details").querySelector("tbody").replaceChildren(...rows.reverse());
    button.remove();
  };

  document.querySelectorAll("[data-table-of]").forEach((button) => button.addEventListener("click", () => fillTable(button)));

  const traces = (figure) => {
    if (!figure.columns) return figure.data;
    const texts = figure.columns.map((series) => words(series, figure.commits, figure.unit));
    return figure.data.flatMap((trace) => {
      const { series, column, band } = trace.drawn;
      const curve = figure.columns[series][column];
      const drawn = { ...trace, x: curve.values.map((_, index) => index), y: curve.values, text: texts[series] };
      return band ? [...bands(curve, trace), ...bars(curve, trace), drawn] : [drawn];
    });
  };

  const draw = async (element) => {
    const figure = await filled(JSON.parse(document.getElementById(element.dataset.figure).textContent));
    const style = getComputedStyle(document.documentElement);
    const options = {
      responsive: true,
      displaylogo: false,
      displayModeBar: narrow() ? false : "hover",
      modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
      plotlyServerURL: "", // the default buttons offer to upload the data; nothing leaves this page
    };
    await Plotly.react(element, resolve(traces(figure), "", style), themed(figure.layout, style), options);
  };

  // The address: #size-1=xaxis:9.5,17.2;yaxis:-1,3&history=...

  const whole = new Map(); // ranges of each chart's axes before any zoom

  const ranges = (element) =>
    Object.fromEntries(
      Object.entries(element.layout)
        .filter(([name, value]) => /^[xy]axis\d*$/.test(name) && value.range)
        .map(([name, value]) => [name, value.range.map((end) => Number(Number(end).toPrecision(5))).join(",")]),
    );

  const zoomed = (element) => {
    const first = whole.get(element);
    const changed = Object.entries(ranges(element)).filter(([name, range]) => range !== first[name]);
    return changed.map(([name, range]) => `${name}:${range}`).join(";");
  };

  const drawn = () => [...whole.keys()];

  const key = (element) => element.id.replace(/^chart-/, "");

  const remember = () => gpubenchLists.remember(Object.fromEntries(drawn().map((element) => [key(element), zoomed(element)])));

  const zoomOf = (element, asked) => {
    const update = {};
    for (const [name, range] of (asked.get(key(element)) ?? "").split(";").map((part) => part.split(":"))) {
      const ends = (range ?? "").split(",").map(Number);
      if (name in whole.get(element) && ends.length === 2 && ends.every(Number.isFinite)) {
        update[`${name}.range`] = ends;
      }
    }
    return update;
  };

  const restore = (element) => {
    const update = zoomOf(element, gpubenchLists.parts());
    if (Object.keys(update).length) Plotly.relayout(element, update);
  };

  const start = async (element) => {
    await draw(element);
    whole.set(element, ranges(element));
    restore(element);
    element.on("plotly_relayout", remember);
  };

  const observe = () => {
    const near = new IntersectionObserver((entries) => {
      for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
        near.unobserve(target);
        gpubenchLists.load("plotly.min.js").then(() => start(target));
      }
    }, { rootMargin: "50%" });
    document.querySelectorAll(".chart[data-figure]").forEach((element) => near.observe(element));
  };

  if (document.readyState === "complete") observe();
  else window.addEventListener("load", observe);
  window.addEventListener("hashchange", () => drawn().forEach(restore));
  // A chart has the size of the window that it was drawn in, which is wider than paper.
  const PAPER = { width: 660, height: 330, autosize: false };
  window.addEventListener("beforeprint", () => drawn().forEach((element) => Plotly.relayout(element, PAPER)));
  window.addEventListener("afterprint", () => drawn().forEach((element) => Plotly.relayout(element, { width: null, height: null, autosize: true })));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn().forEach(draw));
})();
