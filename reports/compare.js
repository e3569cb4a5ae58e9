// Compares any two snapshots. Their times are in scripts beside the page, added when they are chosen.
// Two times are divided here, end by end; thresholds, verdicts and notes come with index.js, which
// gpubench/report/compare.py writes from gpubench/analysis/comparison.py.
"use strict";

const gpubench = (() => {
  const NEWEST = 200; // commits to choose from at first
  const FOLDER = "compare-data/";
  const [PAIRS, TIMES, SPEEDUPS] = ["pairs", "times", "speedups"]; // what a ratio is made of
  const COLUMNS = 6; // median and ends of its interval, speedup and ends of its interval
  const { DASH, digits, independentQuotient, known, ratioText, seconds, secondsInterval } = gpubenchText;
  const { decoded, floats, list, load, make: element, named, parts, plural, read: readData, remember, scrolling } = gpubenchLists;

  const form = document.getElementById("sides");
  const fields = form.elements;
  const output = document.getElementById("comparison");
  const told = document.getElementById("told");
  const markdownField = document.getElementById("markdown");
  const copyButton = document.getElementById("copy");
  const rule = document.getElementById("rule").textContent;
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
  const join = (parts) => (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`);

  // The comparison

  const quotient = (old, now) => ({
    value: old.median / now.median,
    low: Math.max(old.low, 0) / now.high,
    high: now.low > 0 ? old.high / now.low : Infinity,
  });

  // The chance that two runs of unchanged code differ by so much, as chance_of in gpubench/analysis/scatter.py.
  const chanceOf = (log, limits) => {
    let [low, chanceLow] = [0, 1];
    for (const [place, chance] of index.levels.entries()) {
      const limit = limits[place];
      if (log < limit) {
        const part = Math.max((log - low) / (limit - low), 0);
        return Math.exp((1 - part) * Math.log(chanceLow) + part * Math.log(chance));
      }
      [low, chanceLow] = [limit, chance];
    }
    return chanceLow;
  };

  // As chance_unchanged in gpubench/analysis/comparison.py.
  const chanceUnchanged = ({ ratio, limits, kind }, shared) => {
    if (ratio.low <= 1 && 1 <= ratio.high) return 1;
    const doubt = kind === TIMES ? index.normal_95 * shared.error : 0;
    return chanceOf(Math.abs(Math.log(ratio.value)) - doubt, limits);
  };

  const median = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
  };

  // What one-thread cases of two runs share, as shared_difference in gpubench/analysis/scatter.py.
  const sharedDifference = (rows) => {
    const found = { log: 0, error: 0 };
    if (rows.length >= index.min_cases_for_shared) {
      const logs = rows.map(({ ratio }) => Math.log(ratio.value));
      const squares = rows.map(({ limits }) => (limits[0] / index.normal_90) ** 2);
      const sum = (values) => values.reduce((total, value) => total + value, 0);
      const climb = (start) => {
        let location = start;
        for (let step = 0; step < index.shared_steps; step += 1) {
          const weights = squares.map((square, place) => 1 / (square + (logs[place] - location) ** 2));
          location = sum(weights.map((weight, place) => weight * logs[place])) / sum(weights);
        }
        return location;
      };
      const [near, common] = [climb(0), climb(median(logs))];
      const nearer = logs.filter((log) => Math.abs(log - common) < Math.abs(log - near)).length;
      found.log = nearer >= index.min_share_of_shared * logs.length ? common : near;
      found.error = Math.sqrt(2 / sum(squares.map((square) => 1 / square)));
    }
    found.seen = Math.abs(found.log) > index.normal_95 * found.error;
    found.much = Math.abs(found.log) > index.max_shared;
    found.taken = found.seen && !found.much ? found.log : 0;
    return found;
  };

  const sharedWords = (shared) => {
    if (!shared.seen) return "";
    const error = (100 * Math.expm1(index.normal_95 * shared.error)).toFixed(1);
    return index.shared[shared.much ? "much" : "taken"]
      .replace("{factor}", factorText({ value: Math.exp(shared.log) })).replace("{error}", error);
  };

  // Benjamini and Hochberg, as find_changes in gpubench/analysis/scatter.py.
  const findChanges = (rows, rate) => {
    const ordered = [...rows].sort((a, b) => a.chance - b.chance);
    const last = ordered.findLastIndex((row, place) => row.chance <= (rate * (place + 1)) / ordered.length);
    return new Set(ordered.slice(0, last + 1).filter((row) => row.chance <= index.max_chance));
  };

  const verdictOf = (ratio, isChanged) => {
    if (!known(ratio)) return "unclear";
    if (isChanged) return ratio.value > 1 ? "faster" : "slower";
    return ratio.low >= 1 / index.same && ratio.high <= index.same ? "same" : "unclear";
  };

  const caseAt = ({ data, list }, place) => {
    const numbers = Array.from({ length: COLUMNS }, (_, column) => data.numbers[data.status.length * column + place]);
    const [median, low, high, speedup, speedupLow, speedupHigh] = numbers;
    const hasEnds = !Number.isNaN(speedupLow);
    const ends = hasEnds ? { low: speedupLow, high: speedupHigh } : { low: 0, high: Infinity };
    const ofSpeedup = Number.isNaN(speedup) ? null : { median: speedup, ...ends };
    const ofPairs = data.pairs[place] === "p";
    return {
      status: data.status[place],
      reason: data.reasons[place] ?? "",
      time: Number.isNaN(median) ? null : { median, low, high },
      speedup: Number.isNaN(speedup) ? null : speedup,
      ofSpeedup,
      ofPairs,
      paired: ofPairs && hasEnds ? ofSpeedup : null,
      onGpu: list.onGpu.has(place),
      oneThread: list.oneThread.has(place),
      limits: list.limits.subarray(index.levels.length * place, index.levels.length * (place + 1)),
      ratioLimits: list.ratioLimits.subarray(index.levels.length * place, index.levels.length * (place + 1)),
      baseline: data.baselines[place] ?? list.baselines[place],
    };
  };

  const sameBaseline = (old, now, before, after) =>
    before.baseline >= 0 && after.baseline >= 0 && old.list.labels[before.baseline] === now.list.labels[after.baseline];

  // How the baseline's time changed, where both sides have the same one.
  const baselineRatio = (old, now, before, after) => {
    if (!sameBaseline(old, now, before, after)) return null;
    const [one, other] = [caseAt(old, before.baseline).time, caseAt(now, after.baseline).time];
    return one && other ? quotient(one, other) : null;
  };

  // Why two times of setups that differ have no verdict, as why_not_judged in gpubench/analysis/comparison.py.
  const whyNotJudged = (old, now, before, after, setups) => {
    if (!before.ofSpeedup || !after.ofSpeedup || before.baseline < 0) return index.no_speedup;
    if (!sameBaseline(old, now, before, after)) return index.other_baseline;
    const baselines = [caseAt(old, before.baseline), caseAt(now, after.baseline)];
    const [onGpu, baselineOnGpu] = [[before, after], baselines].map((sides) => sides.some((one) => one.onGpu));
    if (onGpu !== baselineOnGpu && setups.hardware(onGpu || baselineOnGpu)) return index.other_device;
    return setups.threads && !onGpu && !(before.ofPairs && after.ofPairs) ? index.other_threads : "";
  };

  const joinedLimits = (one, other) => [...one].map((limit, place) => Math.hypot(limit, other[place]) / Math.SQRT2);

  const difference = (label, old, now, steady, setups) => {
    const [before, after] = [caseAt(old, old.place), caseAt(now, now.place)];
    const row = { label, before, after, ratio: null, note: "", moved: null, kind: TIMES, sure: false, against: null };
    if (before.status === "v" || after.status === "v") {
      return { ...row, verdict: "not comparable", note: index.replaced };
    }
    row.moved = baselineRatio(old, now, before, after);
    row.against = row.moved ? old.list.labels[before.baseline] : null;
    if (!before.time || !after.time) {
      const [verdict, note] = index.untimed[before.status + after.status];
      const reasons = { "{old}": before.reason, "{new}": after.reason };
      return { ...row, verdict, note: note.replace(/\{(old|new)\}/g, (name) => reasons[name]) };
    }
    const noteOf = (ratio) => (known(ratio) ? "" : before.reason || after.reason || index.no_interval);
    const ofRatios = joinedLimits(before.ratioLimits, after.ratioLimits);
    if (setups.times(before.onGpu || after.onGpu)) {
      const unjudged = { ...row, moved: null, kind: SPEEDUPS };
      const note = whyNotJudged(old, now, before, after, setups);
      if (note) return { ...unjudged, verdict: "not judged", note };
      const ratio = independentQuotient(after.ofSpeedup, before.ofSpeedup, "median");
      return { ...unjudged, ratio, note: noteOf(ratio), limits: ofRatios };
    }
    // Two speedups of pairs tell how the own time changed, where nothing else did.
    const differs = (ratio) => !(ratio.low <= 1 && 1 <= ratio.high) && factorOf(ratio) >= index.baseline_moved;
    const moved = !row.moved || !known(row.moved) || differs(row.moved);
    const inTurn = steady && before.paired && after.paired && !moved;
    const ratio = inTurn ? independentQuotient(after.paired, before.paired, "median") : quotient(before.time, after.time);
    const limits = inTurn ? ofRatios : joinedLimits(before.limits, after.limits);
    return { ...row, ratio, note: noteOf(ratio), kind: inTurn ? PAIRS : TIMES, limits };
  };

  const compare = (old, now) => {
    const result = { rows: [], onlyOld: [], onlyNew: [] };
    const places = new Map(now.list.labels.map((label, place) => [label, place]));
    const facts = factsThatDiffer(old.data, now.data);
    const setups = setupsThatDiffer(old.setup, now.setup, facts);
    const steady = facts.length === 0;
    const present = (side, place) => place !== undefined && side.data.status[place] !== "-";
    const gone = (side, place) => side.data.status[place] === "v";
    old.list.labels.forEach((label, place) => {
      const other = places.get(label);
      const [here, there] = [present(old, place), present(now, other)];
      if (here && there && !(gone(old, place) && gone(now, other))) {
        result.rows.push(difference(label, { ...old, place }, { ...now, place: other }, steady, setups));
      } else if (here && !there && !gone(old, place)) result.onlyOld.push(label);
      else if (there && !here && !gone(now, other)) result.onlyNew.push(label);
      places.delete(label);
    });
    for (const [label, place] of places) if (present(now, place) && !gone(now, place)) result.onlyNew.push(label);
    const judged = result.rows.filter((row) => row.ratio && row.verdict === undefined && known(row.ratio));
    // The same to the last digit is one measurement, which both sides have: nothing was compared.
    const tested = judged.filter((row) => row.ratio.value !== 1);
    const shared = sharedDifference(tested.filter((row) => row.kind === TIMES && row.after.oneThread));
    const part = Math.exp(-shared.taken);
    for (const row of judged) {
      if (row.kind === TIMES) row.ratio = Object.fromEntries(Object.entries(row.ratio).map(([end, value]) => [end, value * part]));
      row.chance = chanceUnchanged(row, shared);
    }
    const changed = findChanges(tested, index.changed_rate);
    const sure = findChanges(tested, index.sure_rate);
    for (const row of result.rows) {
      row.verdict ??= verdictOf(row.ratio, changed.has(row));
      row.sure = index.changed.includes(row.verdict) && sure.has(row);
      row.factor = row.ratio ? factorOf(row.ratio) : 1;
      if (row.kind === PAIRS && !row.note && index.differing.includes(row.verdict)) row.note = index.in_turn;
    }
    const verdicts = new Map(result.rows.map((row) => [row.label, row.verdict]));
    for (const row of result.rows) {
      const moved = row.moved && index.changed.includes(verdicts.get(row.against));
      row.baseline = moved ? `its baseline became ${factorText(row.moved)}` : "";
    }
    result.sentences = [setups.words, ...uncommittedWords(old, now), sharedWords(shared)].filter(Boolean);
    result.scatter = now.setup.scatter;
    result.rows.sort((a, b) => index.verdicts.indexOf(a.verdict) - index.verdicts.indexOf(b.verdict) || b.factor - a.factor);
    return result;
  };

  const countsLine = ({ rows, onlyOld, onlyNew }) => {
    const parts = index.verdicts.map((verdict) => [rows.filter((row) => row.verdict === verdict).length, verdict]);
    parts.push([onlyOld.length, "only before"], [onlyNew.length, "only after"]);
    const words = parts.filter(([count]) => count).map(([count, word]) => `${count.toLocaleString("en-US")} ${word}`);
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

  // What differs beside the code, as SetupDifference in gpubench/analysis/comparison.py has it.
  const setupsThatDiffer = (old, now, facts) => {
    const named = ["machine", "environment"].filter((name) => old[name] !== now[name]);
    const differing = new Map(named.map((name) => [name, [old[name], now[name]]]));
    for (const { name, before, after } of facts) if (name in index.setup_labels) differing.set(name, [before, after]);
    const gpuFacts = [...differing.keys()].filter((name) => index.gpu_facts.includes(name));
    const others = [...differing.keys()].filter((name) => !gpuFacts.includes(name));
    const words = Object.entries(index.setup_labels)
      .filter(([name]) => differing.has(name))
      .map(([name, label]) => `${label} (${differing.get(name).join(", ")})`);
    const sentence = index.setups_differ[others.length ? "all" : "gpu"];
    return {
      times: (onGpu) => others.length > 0 || (onGpu && gpuFacts.length > 0),
      hardware: (onGpu) =>
        others.some((name) => name !== "environment") || (onGpu && gpuFacts.some((name) => name !== index.driver)),
      threads: others.some((name) => index.core_facts.includes(name)),
      words: words.length ? sentence.replace("{what}", () => join(words)) : "",
    };
  };

  const uncommittedWords = (old, now) => {
    const names = [old.commit, now.commit];
    const sides = names[0] === names[1] ? [`${names[0]} before`, `${names[1]} after`] : names;
    return [old, now]
      .map(({ data }, place) => [sides[place], data.uncommitted])
      .filter(([, paths]) => paths)
      .map(([side, paths]) => index.uncommitted.replace("{side}", side).replace("{paths}", () => paths));
  };

  // Counted work, as gpubench/analysis/count_changes.py compares it: exact figures, and no times

  const filled = (words, values) => words.replace(/\{(\w+)\}/g, (_, name) => values[name]);

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
      } else if (before.missing !== null) add("not judged", filled(rules.no_counts_before, { reason: before.missing }));
      else if (after.missing !== null) add(after.missing.startsWith(rules.order_dependent) ? "not judged" : "lost", after.missing);
      else if (before.model !== after.model) add("not judged", filled(rules.other_model, { old: before.model, new: after.model }));
      else if (before.target !== after.target) {
        add("not judged", filled(rules.other_target, { old: before.target, new: after.target }));
      } else {
        const pairs = costsThatDiffer(before, after);
        if (pairs.length && compilers) {
          for (const pair of pairs) add("not judged", filled(rules.other_compiler, { facts: compilers }), pair);
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

  // As counts_markdown in gpubench/report/count_view.py.
  const countsMarkdown = (counted) => {
    if (!counted.rows.length && !counted.compared) return "";
    const lines = ["", `#### ${index.counted.title}`, "", `**${countedLine(counted)}**`, ""];
    if (counted.rows.length) {
      lines.push("| | case | count | before | after | change | note |", "|---|---|---|--:|--:|--:|---|");
      for (const row of counted.rows.slice(0, index.most_in_markdown)) {
        const [verdict, label, count, before, after, change, note] = countCells(row);
        lines.push(`| ${[verdict, escaped(label), count, before, after, change, escaped(note)].join(" | ")} |`);
      }
      lines.push("");
    }
    const more = counted.rows.length - index.most_in_markdown;
    if (more > 0) lines.push(`and ${whole(more)} more`, "");
    return lines.join("\n");
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
    const look = index.looks[row.verdict];
    const change = element("span", { className: `change ${look?.css_class ?? ""}` });
    if (look) {
      const sign = element("span", {}, look.sign);
      sign.setAttribute("aria-hidden", "true");
      change.append(sign, " ");
    }
    const differs = ["slower", "faster"].includes(row.verdict);
    change.append(row.ratio && differs ? factorText(row.ratio) : row.verdict);
    if (row.sure) change.append(index.sure);
    const what = element("td", { className: "what" }, change);
    if (row.ratio) {
      what.append(element("small", {}, `${differs ? "" : `${factorText(row.ratio)}, `}${intervalText(row.ratio)}`));
    }
    return what;
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

  const noteText = (row) => {
    const restsOn = index.changed.includes(row.verdict) ? index.rests_on[row.kind] : "";
    return [restsOn, row.note, row.baseline].filter(Boolean).join("; ");
  };

  // What a row is filtered and sorted by, as difference_listed in gpubench/report/comparison_view.py.
  const listed = (row) => {
    const [kernel, implementation] = row.label.split(" ");
    const data = { suite: [kernel.split(".")[0]], implementation: [implementation], only: [row.verdict] };
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
    const rows = fields.all.checked ? result.rows : result.rows.filter((row) => index.differing.includes(row.verdict));
    const children = [element("h3", {}, title), element("p", {}, element("strong", {}, countsLine(result)))];
    children.push(...result.sentences.map((sentence) => element("p", {}, sentence)));
    if (result.scatter) children.push(element("p", { className: "muted" }, result.scatter));
    const differs = facts.map(({ label, values }) => `${label} ${values}`).join("; ");
    if (differs) children.push(element("p", {}, `What they ran on differs: ${differs}.`));
    const caption = `${fields.all.checked ? "Every case" : "Cases that differ"}, ${title}.`;
    children.push(rows.length ? table(rows, caption) : element("p", {}, "No case is known to differ."));

    if (result.onlyOld.length) children.push(lone("before", result.onlyOld));
    if (result.onlyNew.length) children.push(lone("after", result.onlyNew));
    output.replaceChildren(...children, ...countsShown(title, counted));
    markdownField.textContent = markdown(title, result, facts) + countsMarkdown(counted);
  };

  // Markdown, as gpubench/report/comparison_view.py writes it

  const escaped = (text) => text.replace(/[\r\n]/g, " ").replace(/[\\`*_[\]<>|~#@!]/g, "\\$&");

  const verdictWords = (row) => `${index.looks[row.verdict]?.sign ?? ""} ${row.verdict}${row.sure ? index.sure : ""}`.trim();

  const factorWords = ({ ratio }) => (ratio ? `${factorText(ratio)}${known(ratio) ? ` (${intervalText(ratio)})` : ""}` : "");

  // The words of each column, as gpubench/report/comparison_columns.py has them.
  const WORDS = {
    verdict: verdictWords,
    case: ({ label }) => label,
    factor: factorWords,
    before: ({ before }) => sideText(before),
    after: ({ after }) => sideText(after),
    speedup: speedupsText,
    note: noteText,
  };

  const markdownRow = (row) => {
    const cells = index.markdown_columns.map(([name, isForeign]) => (isForeign ? escaped(WORDS[name](row)) : WORDS[name](row)));
    return `| ${cells.join(" | ")} |`;
  };

  const markdown = (title, result, facts) => {
    const rows = result.rows.filter((row) => index.differing.includes(row.verdict));
    const lines = [index.marker, `### ${escaped(title)}`, "", `**${countsLine(result)}**`, ""];
    for (const sentence of result.sentences) lines.push(escaped(sentence), "");
    if (rows.length) {
      lines.push(...index.markdown_head, ...rows.slice(0, index.most_in_markdown).map(markdownRow), "");
      if (rows.length > index.most_in_markdown) lines.push(`and ${(rows.length - index.most_in_markdown).toLocaleString("en-US")} more`, "");
    }
    for (const [where, labels] of [["before", result.onlyOld], ["after", result.onlyNew]]) {
      if (labels.length) lines.push(`- only ${where}: ${labels.length.toLocaleString("en-US")}, such as ${escaped(join(labels.slice(0, 4)))}`);
    }
    lines.push(...facts.map(({ label, values }) => `- ${escaped(label)}: ${escaped(values)}`), ...(facts.length ? [""] : []));
    return [...lines, `<sub>${[rule, escaped(result.scatter)].filter(Boolean).join(" ")}</sub>`, ""].join("\n");
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

  const numbers = (text) => {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Float32Array.from({ length: bytes.length / 4 }, (_, place) => view.getFloat32(4 * place, true));
  };

  return {
    get result() {
      return result;
    },
    index(content) {
      index = content;
      start();
    },
    cases: (key, content) => cases.set(key, {
      ...content,
      onGpu: new Set(content.on_gpu),
      oneThread: new Set(content.one_thread),
      limits: numbers(content.limits),
      ratioLimits: numbers(content.ratio_limits),
    }),
  };
})();
