// Shows the stored times of any two snapshots side by side. They are in scripts beside the page, added when
// they are chosen. Two times are divided here, end by end: that is a ratio and no verdict, which
// `gpubench compare` gives. Words come with index.js, which gpubench/report/compare.py writes.
"use strict";

const gpubench = (() => {
  const NEWEST = 200; // commits to choose from at first
  const FOLDER = "compare-data/";
  const COLUMNS = 4; // median and ends of its interval, speedup
  const { DASH, digits, known, ratioText, seconds, secondsInterval } = gpubenchText;
  const { decoded, floats, list, load, make: element, named, parts, plural, read: readData, remember, scrolling } = gpubenchLists;

  const form = document.getElementById("sides");
  const fields = form.elements;
  const output = document.getElementById("comparison");
  const told = document.getElementById("told");
  const markdownField = document.getElementById("markdown");
  const copyButton = document.getElementById("copy");
  const firstAddress = form.dataset.initial;
  const firstOutput = [...output.childNodes];
  const firstList = named("cases");
  const firstMarkdown = markdownField.textContent;

  const cases = new Map();
  let index = null;
  let turn = 0;
  let result = null; // the comparison that is shown, after the first

  const factorOf = (ratio) => Math.max(ratio.value, 1 / ratio.value);
  const factorText = (ratio) =>
    `${ratioText(factorOf(ratio))} ${ratio.value >= 1 ? "faster" : "slower"}`;
  const intervalText = (ratio) => {
    if (!known(ratio)) return "no interval";
    const [low, high] = ratio.value >= 1 ? [ratio.low, ratio.high] : [1 / ratio.high, 1 / ratio.low];
    return `${digits(low)}${DASH}${digits(high)}×`;
  };
  const fill = (words, values) => words.replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const join = (parts) => (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`);

  // The comparison

  const quotient = (old, now) => ({
    value: old.median / now.median,
    low: Math.max(old.low, 0) / now.high,
    high: now.low > 0 ? old.high / now.low : Infinity,
  });

  const caseAt = ({ data, list }, place) => {
    const numbers = Array.from({ length: COLUMNS }, (_, column) => data.numbers[data.status.length * column + place]);
    const [median, low, high, speedup] = numbers;
    return {
      status: data.status[place],
      reason: data.reasons[place] ?? "",
      time: Number.isNaN(median) ? null : { median, low, high },
      speedup: Number.isNaN(speedup) ? null : speedup,
    };
  };

  const difference = (label, old, now) => {
    const [before, after] = [caseAt(old, old.place), caseAt(now, now.place)];
    const row = { label, before, after, ratio: null, note: "", word: "", factor: 1 };
    if (before.status === "v" || after.status === "v") return { ...row, word: "not comparable", note: index.replaced };
    if (!before.time || !after.time) {
      const [word, note] = index.untimed[before.status + after.status];
      return { ...row, word, note: fill(note, { old: before.reason, new: after.reason }) };
    }
    const ratio = quotient(before.time, after.time);
    return { ...row, ratio, factor: factorOf(ratio), note: before.reason || after.reason };
  };

  // What failed or has a time again first, then the largest ratio, then what has no ratio.
  const order = ({ word }) => (word === "" ? 0 : index.told.includes(word) ? -1 : 1);

  const isTold = (row) => (row.ratio ? row.factor >= index.same : index.told.includes(row.word));

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
    const setups = setupsThatDiffer(old.setup, now.setup, factsThatDiffer(old.data, now.data));
    result.sentences = [setups, ...uncommittedWords(old, now)].filter(Boolean);
    result.rows.sort((a, b) => order(a) - order(b) || b.factor - a.factor);
    return result;
  };

  const countsLine = ({ rows, onlyOld, onlyNew }) => {
    const timed = rows.filter((row) => row.ratio);
    const parts = [[timed.length, "with a time on both sides"], [timed.filter(isTold).length, index.beyond]];
    for (const word of index.verdicts) parts.push([rows.filter((row) => row.word === word).length, word]);
    parts.push([onlyOld.length, "only before"], [onlyNew.length, "only after"]);
    const words = parts.filter(([count]) => count).map(([count, word]) => `${whole(count)} ${word}`);
    return join(words) || "nothing to compare";
  };

  // asv's own facts count where the records of both sides do not have them.
  const factsThatDiffer = (old, now) => {
    const shared = (kind) => Object.keys(old[kind]).filter((name) => name in now[kind]);
    const names = shared("facts").map((name) => [name, "facts"]);
    names.push(...shared("params").filter((name) => !(name in old.facts && name in now.facts)).map((name) => [name, "params"]));
    return names
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, kind]) => [name, old[kind][name], now[kind][name]])
      .filter(([, [, before], [, after]]) => before !== after)
      .map(([name, [label, before], [, after]]) => ({ name, label, before, after, values: `${before} → ${after}` }));
  };

  // What differs beside the code, a sentence.
  const setupsThatDiffer = (old, now, facts) => {
    const named = ["machine", "environment"].filter((name) => old[name] !== now[name]);
    const differing = new Map(named.map((name) => [name, [old[name], now[name]]]));
    for (const { name, before, after } of facts) if (name in index.setup_labels) differing.set(name, [before, after]);
    const words = Object.entries(index.setup_labels)
      .filter(([name]) => differing.has(name))
      .map(([name, label]) => `${label} (${differing.get(name).join(", ")})`);
    return words.length ? fill(index.setups_differ, { what: join(words) }) : "";
  };

  const uncommittedWords = (old, now) => {
    const names = [old.commit, now.commit];
    const sides = names[0] === names[1] ? [`${names[0]} before`, `${names[1]} after`] : names;
    return [old, now]
      .map(({ data }, place) => [sides[place], data.uncommitted])
      .filter(([, paths]) => paths)
      .map(([side, paths]) => fill(index.uncommitted, { side, paths }));
  };

  // Counted work, as gpubench/analysis/count_changes.py compares it: exact figures, and no times

  const whole = (count) => count.toLocaleString("en-US");

  const worst = (kernels) =>
    Object.fromEntries(index.counted.resources.map(([name]) => [name, Math.max(0, ...kernels.map((kernel) => kernel[name]))]));

  // The costs that differ, as cost_pairs in gpubench/analysis/costs.py.
  const costsThatDiffer = (old, now) => {
    const pairs = index.counted.totals.map(([name, count, tolerance, slack]) => {
      const [was, is] = [old.totals[name] ?? 0, now.totals[name] ?? 0];
      return { count, was, is, most: Math.max(was * (1 + tolerance), was + slack) };
    });
    if (old.kernels && now.kernels) {
      const alike = old.kernels.length === now.kernels.length;
      const [was, is] = [old, now].map(({ kernels }) => (alike ? kernels : [worst(kernels)]));
      was.forEach((before, place) => {
        const of = was.length > 1 ? ` of kernel ${place + 1}` : "";
        for (const [name, words] of index.counted.resources) pairs.push({ count: `${words}${of}`, was: before[name], is: is[place][name], most: before[name] });
      });
    }
    return pairs.filter(({ was, is }) => was !== is);
  };

  const compilersThatDiffer = (old, now) => {
    const release = (name, value) => (name === "python" ? value.split(".").slice(0, 2).join(".") : value);
    const names = old.compilers.filter((name) => name in old.facts && name in now.facts).sort();
    return names
      .map((name) => [name, old.facts[name][1], now.facts[name][1]])
      .filter(([name, before, after]) => release(name, before) !== release(name, after))
      .map(([name, before, after]) => `${name} ${before} → ${after}`)
      .join(", ");
  };

  const compareCounts = (old, now) => {
    const rules = index.counted;
    const places = new Map(now.list.labels.map((label, place) => [label, place]));
    const compilers = compilersThatDiffer(old.data, now.data);
    const result = { rows: [], compared: 0, same: 0 };
    for (const place of [...old.data.counts.keys()].sort((a, b) => a - b)) {
      const label = old.list.labels[place];
      const other = places.get(label);
      const status = now.data.status[other] ?? "-";
      if (status === "-" || status === "v") continue;
      const [before, after] = [old.data.counts.get(place), now.data.counts.get(other)];
      const add = (verdict, note, pair = null) => result.rows.push({ label, verdict, note, pair });
      if (!after) {
        if (before.missing === null && status === rules.verified) add("lost", rules.lost);
      } else if (before.missing !== null) add("not judged", fill(rules.no_counts_before, { reason: before.missing }));
      else if (after.missing !== null) add(after.missing.startsWith(rules.order_dependent) ? "not judged" : "lost", after.missing);
      else if (before.model !== after.model) add("not judged", fill(rules.other_model, { old: before.model, new: after.model }));
      else if (before.target !== after.target) {
        add("not judged", fill(rules.other_target, { old: before.target, new: after.target }));
      } else {
        const pairs = costsThatDiffer(before, after);
        if (pairs.length && compilers) {
          for (const pair of pairs) add("not judged", fill(rules.other_compiler, { facts: compilers }), pair);
          continue;
        }
        result.compared += 1;
        result.same += pairs.length ? 0 : 1;
        for (const pair of pairs) add(pair.is < pair.was ? "improved" : pair.is <= pair.most ? "allowed" : "grew", "", pair);
      }
    }
    result.rows.sort((a, b) => rules.verdicts.indexOf(a.verdict) - rules.verdicts.indexOf(b.verdict));
    return result;
  };

  const countedLine = ({ rows, compared, same }) => {
    const counts = index.counted.verdicts.map((verdict) => [rows.filter((row) => row.verdict === verdict).length, verdict]);
    const words = counts.filter(([count]) => count).map(([count, verdict]) => `${whole(count)} ${verdict}`);
    const equal = compared ? `equal counts in ${whole(same)} of ${plural(compared, "case")}` : "";
    return [join(words), equal].filter(Boolean).join("; ");
  };

  // Verdict, case, count, before, after, change and note of a difference.
  const countCells = ({ label, verdict, note, pair }) => {
    const head = [`${index.counted.looks[verdict]?.sign ?? ""} ${verdict}`.trim(), label];
    if (!pair) return [...head, "", "", "", "", note];
    const { count, was, is } = pair;
    const change = `${is > was ? "+" : ""}${whole(is - was)} (${was ? ratioText(is / was) : "from 0"})`;
    return [...head, count, whole(was), whole(is), change, note];
  };

  const countsShown = (title, counted) => {
    if (!counted.rows.length && !counted.compared) return [];
    const children = [element("h4", {}, index.counted.title), element("p", {}, element("strong", {}, countedLine(counted)))];
    if (!counted.rows.length) return children;
    const body = element("tbody");
    for (const row of counted.rows.slice(0, index.counted.most)) {
      const [verdict, label, count, before, after, change, note] = countCells(row);
      const { sign, css_class: css } = index.counted.looks[row.verdict] ?? { sign: "", css_class: "" };
      const what = element("span", { className: `change ${css}` }, count ? `${sign} ${count}`.trim() : verdict);
      const numbers = [before, after, change].map((cell) => element("td", { className: "number" }, cell));
      body.append(element("tr", {}, element("th", { scope: "row" }, label), element("td", { className: "what" }, what), ...numbers, element("td", { className: "prose" }, note)));
    }
    const heads = [["Case"], ["Count"], ["Before", "number"], ["After", "number"], ["Difference", "number"], ["Note"]];
    children.push(scrolling(`Counted work that differs, ${title}.`, heads, body, { className: "differences work" }));
    const more = counted.rows.length - index.counted.most;
    if (more > 0) children.push(element("p", { className: "muted" }, `and ${plural(more, "more count")}.`));
    return children;
  };

  // The page

  const tell = (words, unseen = false) => {
    told.textContent = words;
    told.className = unseen || !words ? "unseen" : "muted";
  };

  const sideText = ({ time, status }) => (time ? seconds(time.median) : index.statuses[status] ?? index.other_version);

  const sideCell = (side) => {
    const cell = element("td", { className: "number" }, sideText(side));
    if (side.time) cell.append(element("small", {}, secondsInterval(side.time.low, side.time.high)));
    return cell;
  };

  const caseCell = ({ label }) => {
    const name = label.split(" ");
    return element("th", { scope: "row" }, name.slice(0, 2).join(" "), element("small", {}, name.slice(2).join(" ")));
  };

  const changeCell = (row) => {
    if (!row.ratio) return element("td", { className: "what" }, row.word);
    const cell = element("td", { className: "what" }, factorText(row.ratio));
    cell.append(element("small", {}, intervalText(row.ratio)));
    return cell;
  };

  // Cells of columns that have more than their words, by the names in gpubench/report/comparison_columns.py.
  const CELLS = {
    case: caseCell,
    change: changeCell,
    before: ({ before }) => sideCell(before),
    after: ({ after }) => sideCell(after),
  };

  const tableRow = (row) => {
    const cells = index.columns.map(([name, , isNumber]) =>
      CELLS[name] ? CELLS[name](row) : element("td", { className: isNumber ? "number" : "prose" }, WORDS[name](row)));
    return element("tr", {}, ...cells);
  };

  const speedupsText = ({ before, after }) =>
    before.speedup && after.speedup ? `${ratioText(before.speedup)} → ${ratioText(after.speedup)}` : "";

  // What a row is filtered and sorted by, as difference_listed in gpubench/report/comparison_view.py.
  const listed = (row) => {
    const [kernel, implementation] = row.label.split(" ");
    const data = { suite: [kernel.split(".")[0]], implementation: [implementation], only: [row.word || (isTold(row) ? index.beyond : index.within)] };
    if (row.ratio) data.change = row.factor;
    if (row.after.speedup) data.speedup = row.after.speedup;
    return data;
  };

  const table = (rows, caption) => {
    const body = element("tbody");
    const heads = index.columns.map(([, head, isNumber]) => (isNumber ? [head, "number"] : [head]));
    const root = element("div", { className: "list" }, scrolling(caption, heads, body, { className: "differences" }));
    Object.assign(root.dataset, { list: "cases", noun: "case" });
    list(root, rows.map((row) => ({
      data: listed(row),
      get element() {
        return (this.made ??= tableRow(row));
      },
      holder: body,
      text: row.label.toLowerCase(),
    })));
    return root;
  };

  const lone = (where, labels) =>
    element("p", { className: "muted" }, `Only ${where}: ${plural(labels.length, "case")}, such as ${labels.slice(0, 4).join("; ")}.`);

  const render = (title, result, facts, counted) => {
    const rows = fields.all.checked ? result.rows : result.rows.filter(isTold);
    const children = [element("h3", {}, title), element("p", {}, element("strong", {}, countsLine(result)))];
    children.push(...result.sentences.map((sentence) => element("p", {}, sentence)));
    children.push(element("p", {}, index.no_verdict, " ", element("code", { className: "command" }, command())));
    const differs = facts.map(({ label, values }) => `${label} ${values}`).join("; ");
    if (differs) children.push(element("p", {}, `What they ran on differs: ${differs}.`));
    const caption = `${fields.all.checked ? "Every case" : "Cases whose times differ"}, ${title}.`;
    children.push(rows.length ? table(rows, caption) : element("p", {}, index.nothing));

    if (result.onlyOld.length) children.push(lone("before", result.onlyOld));
    if (result.onlyNew.length) children.push(lone("after", result.onlyNew));
    output.replaceChildren(...children, ...countsShown(title, counted));
    markdownField.textContent = `${command()} --markdown`;
  };

  // The words of columns that have nothing else.
  const WORDS = {
    speedup: speedupsText,
    note: ({ note }) => note,
  };

  // Choosing

  const side = (letter) => {
    const setup = index.setups[fields[`${letter}-setup`].value];
    const commit = fields[`${letter}-commit`].value;
    const place = setup.commits.findIndex(([short]) => short === commit);
    return { setup, commit, script: `${setup.key}-${Math.floor(place / setup.in_script)}` };
  };

  const sideAddress = ({ setup, commit }) => [commit, setup.machine, setup.environment].map(encodeURIComponent).join(",");

  const address = () => `a=${sideAddress(side("a"))}&b=${sideAddress(side("b"))}${fields.all.checked ? "&all=1" : ""}`;

  const command = () => `gpubench compare ${side("a").commit} ${side("b").commit}`;

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
      firstList?.use();
      markdownField.textContent = firstMarkdown;
      tell("");
      return;
    }
    tell("Reading the times …");
    try {
      await Promise.all([old, now].map(async (one) => {
        await load(`${FOLDER}${one.setup.key}.js`);
        one.data = await snapshot(one);
      }));
    } catch (error) {
      if (mine === turn) tell(error.message);
      return;
    }
    if (mine !== turn) return;
    const sides = [old, now].map(({ setup, commit, data }) => ({ setup, commit, data, list: cases.get(setup.key) }));
    result = compare(...sides);
    render(titleOf(old, now), result, factsThatDiffer(sides[0].data, sides[1].data), compareCounts(...sides));
    tell(`${titleOf(old, now)}: ${countsLine(result)}.`, true); // the page shows it
  };

  // What cases did on the device in software is work by numbers that are of one script alone.
  const snapshot = async ({ script, commit }) => {
    const { commits, work } = await readData(`${FOLDER}${script}.js`);
    const content = commits[commit];
    const counts = new Map(Object.entries(content.counts).map(([place, number]) => [Number(place), work[number]]));
    return { ...content, counts, numbers: await floats(content.numbers) };
  };

  const newestFirst = (letter) => index.setups[fields[`${letter}-setup`].value].commits.toReversed();

  const fillCommits = (letter, wanted) => {
    const commits = newestFirst(letter);
    const place = commits.findIndex(([short]) => short === wanted);
    const shown = commits.slice(0, place < NEWEST ? NEWEST : commits.length);
    const options = shown.map(([short, date, subject]) => new Option(`${short} ${date} ${subject}`.trim(), short));
    const older = commits.length - shown.length;
    if (older) options.push(new Option(`${plural(older, "older commit")} …`, ""));
    fields[`${letter}-commit`].replaceChildren(...options);
    if (commits.some(([short]) => short === wanted)) fields[`${letter}-commit`].value = wanted;
  };

  const choose = (letter, text) => {
    const [commit, machine, environment] = (text ?? "").split(",").map(decoded);
    const setup = index.setups.findIndex((s) => s.machine === machine && s.environment === environment);
    fields[`${letter}-setup`].value = String(Math.max(setup, 0));
    fillCommits(letter, commit);
    return setup >= 0 && fields[`${letter}-commit`].value === commit;
  };

  const read = async () => {
    const asked = parts();
    const wanted = asked.has("a") ? asked : parts(firstAddress);
    fields.all.checked = wanted.get("all") === "1";
    const found = [choose("a", wanted.get("a")), choose("b", wanted.get("b"))];
    await show();
    if (found.includes(false)) tell("The address names a commit or a machine that is not in this report.");
  };

  const rememberSides = () =>
    remember({ a: sideAddress(side("a")), b: sideAddress(side("b")), all: fields.all.checked ? "1" : "" });

  const changed = (event) => {
    const [, letter, what] = /^([ab])-(setup|commit)$/.exec(event.target.name ?? "") ?? [];
    if (what === "setup") fillCommits(letter, fields[`${letter}-commit`].value);
    if (what === "commit" && !event.target.value) fillCommits(letter, newestFirst(letter)[NEWEST][0]);
    rememberSides();
    show();
  };

  const swap = () => {
    const [a, b] = [sideAddress(side("a")), sideAddress(side("b"))];
    choose("a", b);
    choose("b", a);
    rememberSides();
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

  return {
    get result() {
      return result;
    },
    index(content) {
      index = content;
      start();
    },
    cases: (key, content) => cases.set(key, content),
  };
})();
