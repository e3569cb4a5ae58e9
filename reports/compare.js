// Compares any two snapshots. Their times are scripts beside the page, added when they are chosen;
// the rules are those of gpubench/analysis/comparison.py, the words those of the static tables.
"use strict";

const gpubench = (() => {
  const MOST_ROWS = 500;
  const MOST_MARKDOWN_ROWS = 50;
  const FOLDER = "compare-data/";
  const SIGNS = { slower: "▼", faster: "▲", failed: "!", mended: "✓" };
  const CLASSES = { slower: "worse", failed: "broken", faster: "better", mended: "better" };
  const ORDER = ["slower", "failed", "faster", "mended", "not comparable", "unclear", "not compared", "same"];
  const { DASH, digits, known, ratioText, seconds, secondsInterval } = gpubenchText;

  const form = document.getElementById("sides");
  const fields = form.elements;
  const output = document.getElementById("comparison");
  const told = document.getElementById("told");
  const markdownField = document.getElementById("markdown");
  const copyButton = document.getElementById("copy");
  const rule = document.getElementById("rule").textContent;
  const firstAddress = form.dataset.initial;
  const firstOutput = [...output.childNodes];
  const firstMarkdown = markdownField.textContent;

  const cases = new Map();
  const snapshots = new Map();
  const loading = new Map();
  let index = null;
  let turn = 0;

  const factorText = (ratio) =>
    `${ratioText(Math.max(ratio.value, 1 / ratio.value))} ${ratio.value >= 1 ? "faster" : "slower"}`;
  const intervalText = (ratio) => {
    if (!known(ratio)) return "no interval";
    const [low, high] = ratio.value >= 1 ? [ratio.low, ratio.high] : [1 / ratio.high, 1 / ratio.low];
    return `${digits(low)}${DASH}${digits(high)}×`;
  };
  const plural = (count, noun) => `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
  const join = (parts) => (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`);

  // The comparison: gpubench/analysis/comparison.py

  const speedup = (old, now) => ({
    value: old.median / now.median,
    low: Math.max(old.low, 0) / now.high,
    high: now.low > 0 ? old.high / now.low : Infinity,
  });

  const verdictOf = (ratio) => {
    if (!known(ratio)) return "unclear";
    if (ratio.low >= 1 / index.same && ratio.high <= index.same) return "same";
    if (ratio.low > 1 && ratio.value >= index.same) return "faster";
    if (ratio.high < 1 && ratio.value <= 1 / index.same) return "slower";
    return "unclear";
  };

  const timeAt = (snapshot, place) => {
    if (place < 0 || snapshot.status[place] !== "o") return null;
    const [median, low, high] = snapshot.times.subarray(3 * place, 3 * place + 3);
    return { median, low, high };
  };

  const untimed = (old, now) => {
    const failed = [old, now].map((code) => index.failures.includes(code));
    const words = (code) => index.statuses[code];
    if (!failed[0] && failed[1]) return ["failed", `${words(now)}; the kernel's page says why`];
    if (failed[0] && now === "o") return ["mended", `${words(old)} before`];
    if (old === now) return ["not compared", `${words(now)} on both sides`];
    return ["not compared", `${words(old)} before, ${words(now)} after`];
  };

  const baselineRow = (list, place) => (place < 0 ? null : list.labels[list.baselines[place]] ?? null);

  const difference = (label, old, now) => {
    const [oldTime, newTime] = [timeAt(old.data, old.place), timeAt(now.data, now.place)];
    const codes = [old.data.status[old.place], now.data.status[now.place]];
    const row = { label, old: oldTime, now: newTime, codes, ratio: null, note: "", size: 1, baseline: "", speedups: [] };
    if (codes.includes("v")) {
      return { ...row, verdict: "not comparable", note: "what it measures has changed between the two" };
    }
    const baselines = [old, now].map((side) => side.list.baselines[side.place]);
    const same = baselineRow(old.list, old.place) === baselineRow(now.list, now.place);
    const before = timeAt(old.data, baselines[0]);
    const after = timeAt(now.data, baselines[1]);
    if (same && before && after) {
      const moved = speedup(before, after);
      if (["faster", "slower"].includes(verdictOf(moved))) row.baseline = `its baseline became ${factorText(moved)}`;
    }
    if (!oldTime || !newTime) {
      const [verdict, note] = untimed(...codes);
      return { ...row, verdict, note };
    }
    const compared = /\((transfer|launch|compile)\)$/.test(label) ? [] : [[before, oldTime], [after, newTime]];
    row.speedups = compared.filter((pair) => pair[0]).map((pair) => speedup(...pair));
    const ratio = speedup(oldTime, newTime);
    const note = known(ratio) ? "" : "too few samples for an interval";
    return { ...row, ratio, note, verdict: verdictOf(ratio), size: Math.max(ratio.value, 1 / ratio.value) };
  };

  const compare = (old, now) => {
    const result = { rows: [], onlyOld: [], onlyNew: [] };
    const places = new Map(now.list.labels.map((label, place) => [label, place]));
    const present = (side, place) => place !== undefined && side.data.status[place] !== "-";
    const gone = (side, place) => side.data.status[place] === "v";
    old.list.labels.forEach((label, place) => {
      const other = places.get(label);
      const [here, there] = [present(old, place), present(now, other)];
      if (here && there && !(gone(old, place) && gone(now, other))) {
        result.rows.push(difference(label, { ...old, place }, { ...now, place: other }));
      } else if (here && !there && !gone(old, place)) result.onlyOld.push(label);
      else if (there && !here && !gone(now, other)) result.onlyNew.push(label);
      places.delete(label);
    });
    for (const [label, place] of places) if (present(now, place) && !gone(now, place)) result.onlyNew.push(label);
    result.rows.sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict) || b.size - a.size);
    return result;
  };

  const countsLine = ({ rows, onlyOld, onlyNew }) => {
    const parts = ORDER.map((verdict) => [rows.filter((row) => row.verdict === verdict).length, verdict]);
    parts.push([onlyOld.length, "only before"], [onlyNew.length, "only after"]);
    const words = parts.filter(([count]) => count).map(([count, word]) => `${count.toLocaleString("en-US")} ${word}`);
    return join(words) || "nothing to compare";
  };

  const factsThatDiffer = (old, now) =>
    Object.keys(old.facts)
      .filter((name) => name in now.facts && old.facts[name][1] !== now.facts[name][1])
      .map((name) => ({ label: old.facts[name][0], values: `${old.facts[name][1]} → ${now.facts[name][1]}` }));

  // The page

  const tell = (words, unseen = false) => {
    told.textContent = words;
    told.className = unseen || !words ? "unseen" : "muted";
  };

  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  const sideCell = (time, code) => {
    const cell = element("td", { className: "number" });
    if (time) cell.append(seconds(time.median), element("small", {}, secondsInterval(time.low, time.high)));
    else cell.append(code === "v" ? "another version" : index.statuses[code] ?? "");
    return cell;
  };

  const tableRow = (row) => {
    const name = row.label.split(" ");
    const change = element("span", { className: `change ${CLASSES[row.verdict] ?? ""}` });
    if (SIGNS[row.verdict]) {
      const sign = element("span", {}, SIGNS[row.verdict]);
      sign.setAttribute("aria-hidden", "true");
      change.append(sign, " ");
    }
    const differs = ["slower", "faster"].includes(row.verdict);
    change.append(row.ratio && differs ? factorText(row.ratio) : row.verdict);
    const what = element("td", { className: "what" }, change);
    if (row.ratio) {
      what.append(element("small", {}, `${differs ? "" : `${factorText(row.ratio)}, `}${intervalText(row.ratio)}`));
    }
    const head = element("th", { scope: "row" }, name.slice(0, 2).join(" "), element("small", {}, name.slice(2).join(" ")));
    return element(
      "tr", {}, head, what, sideCell(row.old, row.codes[0]), sideCell(row.now, row.codes[1]),
      element("td", { className: "number" }, speedupsText(row)),
      element("td", { className: "prose" }, [row.note, row.baseline].filter(Boolean).join("; ")),
    );
  };

  const speedupsText = (row) =>
    row.speedups.length === 2 ? row.speedups.map((ratio) => ratioText(ratio.value)).join(" → ") : "";

  const table = (rows, caption) => {
    const heads = [["Case"], ["Change"], ["Before", "number"], ["After", "number"], ["Speedup", "number"], ["Note"]];
    const made = element(
      "table", { className: "differences" },
      element("caption", {}, element("span", {}, caption)),
      element("thead", {}, element("tr", {}, ...heads.map(([text, className = ""]) => element("th", { scope: "col", className }, text)))),
      element("tbody", {}, ...rows.slice(0, MOST_ROWS).map(tableRow)),
    );
    const region = element("div", { className: "scroll", tabIndex: 0 }, made);
    region.setAttribute("role", "region");
    region.setAttribute("aria-label", caption);
    return region;
  };

  const lone = (where, labels) =>
    element("p", { className: "muted" }, `Only ${where}: ${plural(labels.length, "case")}, such as ${labels.slice(0, 4).join("; ")}.`);

  const render = (title, result, facts) => {
    const rows = fields.all.checked ? result.rows : result.rows.filter((row) => index.differing.includes(row.verdict));
    const children = [element("h3", {}, title), element("p", {}, element("strong", {}, countsLine(result)))];
    const differs = facts.map(({ label, values }) => `${label} ${values}`).join("; ");
    if (differs) children.push(element("p", {}, `What they ran on differs: ${differs}.`));
    const caption = `${fields.all.checked ? "Every case" : "Cases that differ"}, ${title}.`;
    children.push(rows.length ? table(rows, caption) : element("p", {}, "No case is known to differ."));
    if (rows.length > MOST_ROWS) {
      children.push(element("p", { className: "muted" }, `and ${plural(rows.length - MOST_ROWS, "more case")}`));
    }
    if (result.onlyOld.length) children.push(lone("before", result.onlyOld));
    if (result.onlyNew.length) children.push(lone("after", result.onlyNew));
    output.replaceChildren(...children);
    markdownField.textContent = markdown(title, result, facts);
  };

  // Markdown: gpubench/report/markdown.py

  const escaped = (text) => text.replace(/[\r\n]/g, " ").replace(/[\\`*_[\]<>|~#@!]/g, "\\$&");

  const markdownRow = (row) => {
    const time = (value, code) => (value ? seconds(value.median) : code === "v" ? "another version" : index.statuses[code]);
    const factor = row.ratio ? `${factorText(row.ratio)}${known(row.ratio) ? ` (${intervalText(row.ratio)})` : ""}` : "";
    const cells = [
      `${SIGNS[row.verdict] ?? ""} ${row.verdict}`.trim(), escaped(row.label), factor,
      time(row.old, row.codes[0]), time(row.now, row.codes[1]), speedupsText(row),
      escaped([row.note, row.baseline].filter(Boolean).join("; ")),
    ];
    return `| ${cells.join(" | ")} |`;
  };

  const markdown = (title, result, facts) => {
    const rows = result.rows.filter((row) => index.differing.includes(row.verdict));
    const lines = ["<!-- gpubench compare -->", `### ${escaped(title)}`, "", `**${countsLine(result)}**`, ""];
    if (rows.length) {
      lines.push("| | case | factor | before | after | speedup | note |", "|---|---|--:|--:|--:|--:|---|");
      lines.push(...rows.slice(0, MOST_MARKDOWN_ROWS).map(markdownRow), "");
      if (rows.length > MOST_MARKDOWN_ROWS) lines.push(`and ${(rows.length - MOST_MARKDOWN_ROWS).toLocaleString("en-US")} more`, "");
    }
    for (const [where, labels] of [["before", result.onlyOld], ["after", result.onlyNew]]) {
      if (labels.length) lines.push(`- only ${where}: ${labels.length.toLocaleString("en-US")}, such as ${escaped(join(labels.slice(0, 4)))}`);
    }
    lines.push(...facts.map(({ label, values }) => `- ${escaped(label)}: ${escaped(values)}`), ...(facts.length ? [""] : []));
    return [...lines, `<sub>${rule}</sub>`, ""].join("\n");
  };

  // Choosing

  const load = (name) => {
    if (!loading.has(name)) {
      loading.set(name, new Promise((resolve, reject) => {
        const script = element("script", { src: `${FOLDER}${name}.js`, onload: resolve });
        script.onerror = () => reject(new Error(`${FOLDER}${name}.js is missing; write the report again`));
        document.head.append(script);
      }));
    }
    return loading.get(name);
  };

  const side = (letter) => {
    const setup = index.setups[fields[`${letter}-setup`].value];
    const commit = fields[`${letter}-commit`].value;
    return { setup, commit, name: `${setup.key}-${commit}` };
  };

  const sideAddress = ({ setup, commit }) => [commit, setup.machine, setup.environment].map(encodeURIComponent).join(",");

  const address = () => `a=${sideAddress(side("a"))}&b=${sideAddress(side("b"))}${fields.all.checked ? "&all=1" : ""}`;

  const titleOf = (old, now) => {
    const [before, after] = [old, now].map(({ setup }) => `${setup.machine}, ${setup.environment}`);
    if (before === after) return `${now.commit} against ${old.commit} on ${after}`;
    return `${now.commit} on ${after} against ${old.commit} on ${before}`;
  };

  const show = async () => {
    const mine = (turn += 1);
    const [old, now] = [side("a"), side("b")];
    if (address() === firstAddress) {
      output.replaceChildren(...firstOutput);
      markdownField.textContent = firstMarkdown;
      tell("");
      return;
    }
    tell("Reading the times …");
    try {
      await Promise.all([old.setup.key, now.setup.key, old.name, now.name].map(load));
    } catch (error) {
      if (mine === turn) tell(error.message);
      return;
    }
    if (mine !== turn) return;
    const sides = [old, now].map(({ setup, name }) => ({ data: snapshots.get(name), list: cases.get(setup.key) }));
    const result = compare(...sides);
    render(titleOf(old, now), result, factsThatDiffer(sides[0].data, sides[1].data));
    tell(`${titleOf(old, now)}: ${countsLine(result)}.`, true); // the page shows it
  };

  const fillCommits = (letter, wanted) => {
    const { commits } = index.setups[fields[`${letter}-setup`].value];
    const options = commits.toReversed().map(([short, date, subject]) => new Option(`${short} ${date} ${subject}`.trim(), short));
    fields[`${letter}-commit`].replaceChildren(...options);
    if (commits.some(([short]) => short === wanted)) fields[`${letter}-commit`].value = wanted;
  };

  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };

  const choose = (letter, text) => {
    const [commit, machine, environment] = (text ?? "").split(",").map(decoded);
    const setup = index.setups.findIndex((s) => s.machine === machine && s.environment === environment);
    fields[`${letter}-setup`].value = String(Math.max(setup, 0));
    fillCommits(letter, commit);
    return setup >= 0 && fields[`${letter}-commit`].value === commit;
  };

  const read = async () => {
    const asked = location.hash.slice(1);
    const parts = (text) => Object.fromEntries(text.split("&").map((part) => part.split(/=(.*)/s)));
    const wanted = asked.includes("a=") ? parts(asked) : parts(firstAddress);
    fields.all.checked = wanted.all === "1";
    const found = [choose("a", wanted.a), choose("b", wanted.b)];
    await show();
    if (found.includes(false)) tell("The address names a commit or a machine that is not in this report.");
  };

  const changed = (event) => {
    const match = /^([ab])-setup$/.exec(event.target.name ?? "");
    if (match) fillCommits(match[1], fields[`${match[1]}-commit`].value);
    history.replaceState(null, "", `#${address()}`);
    show();
  };

  const swap = () => {
    const [a, b] = [sideAddress(side("a")), sideAddress(side("b"))];
    choose("a", b);
    choose("b", a);
    history.replaceState(null, "", `#${address()}`);
    show();
  };

  const copy = async () => {
    markdownField.select();
    try {
      await navigator.clipboard.writeText(markdownField.value);
      tell("The Markdown is copied.");
    } catch {
      tell("The Markdown is selected; copy it with the keyboard.");
    }
  };

  const start = () => {
    for (const letter of ["a", "b"]) {
      fields[`${letter}-setup`].replaceChildren(...index.setups.map((setup, place) => new Option(setup.label, place)));
    }
    form.hidden = false;
    copyButton.hidden = false;
    form.addEventListener("change", changed);
    form.addEventListener("submit", (event) => event.preventDefault());
    document.getElementById("swap").addEventListener("click", swap);
    copyButton.addEventListener("click", copy);
    window.addEventListener("hashchange", read);
    read();
  };

  const numbers = (text) => {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Float32Array.from({ length: bytes.length / 4 }, (_, place) => view.getFloat32(4 * place, true));
  };

  return {
    index(content) {
      index = content;
      start();
    },
    cases: (key, content) => cases.set(key, content),
    snapshot: (name, content) => snapshots.set(name, { ...content, times: numbers(content.times) }),
  };
})();
