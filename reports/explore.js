// The chart of every case: a reader chooses cases by their parameters, machines and environments,
// what is on the axes, and a reference that all values are divided by. Values come from scripts
// beside the page (gpubench/report/series.py), once they are asked for.
"use strict";

(() => {
  const root = document.getElementById("explore");
  if (!root) return;
  const { date, quantity, ratioText } = gpubenchText;
  const MOST = 12; // series in one chart: more have no colours of their own
  const MOST_TAGS = 15;
  const ALL = "*"; // of a choice: no value of a parameter
  const COLOURS = 7; // as in gpubench/report/figures.py
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
  const { kernel, setups: sources } = gpubenchLists.sources();
  const chosen = new Map(); // what the selects say, by their names

  // Not in the page: a report has hundreds of pages, and without this script it would be empty.
  root.innerHTML = `<details>
    <summary><b>Every case over commits</b>: choose parameters${sources.length > 1 ? ", machines" : ""}, axes and a reference</summary>
    <div class="tools"></div>
    <p class="muted" role="status">The values are read.</p>
    <div class="explored-chart" role="group" aria-label="Chosen cases over commits; the table below has their newest values"></div>
    <div class="explored" hidden>
    <div class="scroll" tabindex="0" role="region" aria-label="Newest values of the cases in the chart">
    <table>
      <caption><span>The newest value of each case in the chart, and its ratio to the reference.</span></caption>
      <thead><tr><th scope="col">Case</th><th scope="col" class="number">Newest value</th><th scope="col">At</th><th scope="col">State</th><th scope="col" class="number">Over the reference</th></tr></thead>
      <tbody></tbody>
    </table>
    </div>
    </div>
  </details>`;
  root.querySelector("details").open = "open" in root.dataset;

  const make = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  const open = async (source) => {
    const [commits, series] = await Promise.all(gpubenchLists.seriesOf(kernel, source).map(gpubenchLists.read));
    return Promise.all(series.cases.map(async (one) => {
      one.numbers ??= (await gpubenchLists.floats(one.values ?? series.charted[one.charted])).subarray(0, series.commits);
      return { ...one, setup: source.setup, commits };
    }));
  };

  const setupsChosen = () => sources.filter((one) => chosen.get("machine") === ALL || one.setup === chosen.get("machine"));

  const fits = (one) => [...chosen].every(([name, value]) => {
    if (["machine", "x", "y", "reference"].includes(name) || value === ALL) return true;
    if (name === "implementation") return one.implementation === value;
    if (name === "measures") return one.time === value;
    return one.parameters[name.slice(2)] === value;
  });

  const label = (one) => {
    const many = sources.length > 1 && chosen.get("machine") === ALL;
    const what = [one.implementation === "time" ? "" : one.implementation, one.case, one.time === "kernel" ? "" : one.time.replaceAll("_", " ")];
    return [...what, many ? one.setup : ""].filter(Boolean).join(" ") || "time";
  };

  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");

  // Commits of all series on one axis, by date: setups have different ones.
  const axisOf = (all) => {
    const places = new Map();
    for (const one of all) for (const commit of one.commits) places.set(commit[0], commit);
    return [...places.values()].sort((a, b) => a[1] - b[1]);
  };

  const referenceOf = (one, hash) => {
    if (!hash) return NaN;
    const place = one.commits.findIndex(([short]) => short === hash);
    return place < 0 ? NaN : one.numbers[place];
  };

  const chart = root.querySelector(".explored-chart");
  const status = root.querySelector("[role=status]");
  const table = root.querySelector("tbody");

  const last = (one) => {
    for (let place = one.numbers.length - 1; place >= 0; place -= 1) if (!Number.isNaN(one.numbers[place])) return place;
    return -1;
  };

  const draw = async () => {
    const every = (await Promise.all(setupsChosen().map(open))).flat();
    const fitting = every.filter(fits);
    const shown = fitting.slice(0, MOST);
    const order = axisOf(shown.length ? shown : every);
    const byOrder = chosen.get("x") === "order";
    const placeOf = new Map(order.map((commit, place) => [commit[0], place]));
    const at = chosen.get("reference");
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const isRatio = Boolean(at);
    // Tags of the commits, the newest: more names would lie on each other.
    const tagged = order.map(([, moment, , tags], place) => [byOrder ? place : date(moment), tags]).filter(([, tags]) => tags).slice(-MOST_TAGS);
    const data = shown.map((one, number) => {
      const base = referenceOf(one, at);
      const values = Array.from(one.numbers, (value) => (isRatio ? value / base : value));
      return {
        name: escaped(label(one)),
        x: one.commits.map(([short, moment]) => (byOrder ? placeOf.get(short) : date(moment))),
        y: values.map((value) => (Number.isNaN(value) ? null : value)),
        customdata: one.commits.map(([short]) => short),
        text: one.commits.map(([short, moment, subject], place) => {
          const value = one.numbers[place];
          const ratio = isRatio && Number.isFinite(value / base) ? `, ${ratioText(value / base)} of the reference` : "";
          return `<b>${escaped(label(one))}</b><br>${short} ${date(moment)} ${escaped(subject)}<br>${escaped(quantity(value, one.unit))}${ratio}`;
        }),
        hovertemplate: "%{text}<extra></extra>",
        mode: one.numbers.length > 60 ? "lines" : "lines+markers",
        connectgaps: true,
        line: {
          color: colour(`--series-${1 + (number % (COLOURS - 1))}`),
          dash: DASHES[Math.floor(number / (COLOURS - 1)) % DASHES.length],
          width: 1.75,
        },
      };
    });
    const units = [...new Set(shown.map((one) => one.unit))];
    const isLog = chosen.get("y") === "log" && shown.every((one) => !one.numbers.some((value) => value <= 0));
    const ticks = order.map((_, place) => place).filter((place) => place % Math.ceil(order.length / 8) === 0);
    const axis = { gridcolor: colour("--line"), linecolor: colour("--line"), zeroline: false, automargin: true };
    const layout = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: style.fontFamily, color: colour("--text"), size: 0.8125 * parseFloat(style.fontSize) },
      margin: { l: 8, r: 8, t: 8, b: 8 },
      showlegend: true,
      legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom" },
      hovermode: "closest",
      dragmode: window.innerWidth < 700 ? false : "zoom",
      xaxis: {
        ...axis,
        type: byOrder ? "linear" : "date",
        title: { text: byOrder ? "commit, oldest first" : "date of the commit" },
        ...(byOrder ? { tickvals: ticks, ticktext: ticks.map((place) => order[place][0]) } : {}),
      },
      yaxis: {
        ...axis,
        type: isLog ? "log" : "linear",
        title: { text: isRatio ? "over the reference" : escaped(units.map((unit) => unit || "value").join(", ")) },
        ...(units[0] === "seconds" && !isRatio ? { tickformat: "~s", ticksuffix: "s" } : {}),
      },
      annotations: tagged.map(([place, names]) => ({
        x: place, xref: "x", y: 1, yref: "paper", yanchor: "top", xanchor: "right", textangle: -90,
        showarrow: false, text: escaped(names.join(", ")), font: { color: colour("--muted"), size: 11 },
      })),
      shapes: [...tagged.map(([place]) => ({
        type: "line", xref: "x", x0: place, x1: place, yref: "paper", y0: 0, y1: 1,
        line: { color: colour("--muted"), width: 1, dash: "dot" },
      })), ...(isRatio ? [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: 1, y1: 1, line: { color: colour("--text"), width: 1 } }] : [])],
    };
    await gpubenchLists.load("plotly.min.js");
    await Plotly.react(chart, data, layout, { responsive: true, displaylogo: false, displayModeBar: false, plotlyServerURL: "" });
    chart.removeAllListeners("plotly_click");
    chart.on("plotly_click", ({ points }) => choose("reference", points[0].customdata));
    const more = fitting.length - shown.length;
    status.textContent = `${shown.length} of ${every.length} cases drawn${more ? `; ${more} more fit: choose their parameters` : ""}.`;
    table.replaceChildren(...shown.map((one) => {
      const place = last(one);
      const [short, moment] = one.commits[place] ?? ["", 0];
      const base = referenceOf(one, at);
      const since = one.failed.find((index) => index > place);
      return make("tr", {},
        make("th", { scope: "row" }, label(one)),
        make("td", { className: "number" }, place < 0 ? "none" : quantity(one.numbers[place], one.unit)),
        make("td", {}, place < 0 ? "" : `${short} ${date(moment)}`),
        make("td", {}, since === undefined ? "" : `none since ${one.commits[since][0]}`),
        make("td", { className: "number" }, Number.isFinite(base) && place >= 0 ? ratioText(one.numbers[place] / base) : ""));
    }));
  };

  const selects = new Map();
  const keyOf = (name) => `explore-${encodeURIComponent(name)}`;
  // A part of the address; one that somebody has cut in the midst of a character is none.
  const asked = (name) => {
    const text = gpubenchLists.parts().get(keyOf(name));
    try {
      return text === undefined ? undefined : decodeURIComponent(text);
    } catch {
      return undefined;
    }
  };

  const remember = () => gpubenchLists.remember(Object.fromEntries(
    [...chosen].map(([name, value]) => [keyOf(name), value === selects.get(name)?.dataset.first ? "" : encodeURIComponent(value)]),
  ));

  const choose = (name, value) => {
    chosen.set(name, value);
    if (selects.has(name)) selects.get(name).value = value;
    remember();
    draw();
  };

  const select = (name, title, options, first) => {
    const wanted = asked(name) ?? first;
    const value = options.some(([one]) => one === wanted) ? wanted : first;
    const element = make("select", { onchange: () => choose(name, element.value) },
      ...options.map(([one, words]) => make("option", { value: one }, words)));
    element.value = value;
    element.dataset.first = first;
    chosen.set(name, value);
    selects.set(name, element);
    return make("label", {}, title, element);
  };

  const start = async () => {
    const here = sources.find((one) => one.isHere);
    const cases = await open(here);
    const distinct = (values) => [...new Set(values)];
    const all = (values, words = "all") => [[ALL, words], ...values.map((one) => [one, one.replaceAll("_", " ")])];
    const tools = root.querySelector(".tools");
    const fields = [];
    if (sources.length > 1) fields.push(select("machine", "Machine, environment", [...sources.map((one) => [one.setup, one.setup]), [ALL, "all in one chart"]], here.setup));
    else chosen.set("machine", here.setup);
    const implementations = distinct(cases.map((one) => one.implementation));
    if (implementations.length > 1) fields.push(select("implementation", "Implementation", all(implementations), ALL));
    const times = distinct(cases.map((one) => one.time));
    if (times.length > 1) fields.push(select("measures", "What is measured", all(times), times.includes("kernel") ? "kernel" : ALL));
    for (const name of distinct(cases.flatMap((one) => Object.keys(one.parameters)))) {
      const values = distinct(cases.map((one) => one.parameters[name]).filter((one) => one !== undefined));
      if (values.length > 1) fields.push(select(`p-${name}`, name, all(values), ALL));
    }
    fields.push(select("x", "Commits by", [["order", "order"], ["date", "date"]], "order"));
    fields.push(select("y", "Scale", [["log", "logarithmic"], ["linear", "linear"]], "log"));
    const { commits } = cases[0];
    const words = commits.map(([short, moment, subject]) => [short, `${short} ${date(moment)} ${subject}`]).reverse();
    fields.push(select("reference", "Reference (or press a point)", [["", "none"], ...words], ""));
    tools.replaceChildren(...fields);
    root.querySelector(".explored").hidden = false;
    await draw();
  };

  const fold = root.querySelector("details");
  const begin = () => {
    if (fold.open && !selects.size) start().catch((error) => { status.textContent = error.message; });
  };
  fold.addEventListener("toggle", begin);
  if ([...gpubenchLists.parts().keys()].some((name) => name.startsWith("explore-"))) fold.open = true;
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => selects.size && draw());
  begin();
})();
