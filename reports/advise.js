// What gets a result fastest: the arithmetic of gpubench/analysis/estimates.py and advice.py, of
// points and bends that come with each kernel's script (gpubench/report/advise.py). The names are
// those of the Python; tests/advise/test_advise_in_browser.py holds the two together.
"use strict";

const gpubenchAdvice = (() => {
  const { DASH, digits, independentQuotient, known, seconds: secondsText, secondsInterval } = gpubenchText;
  const { decoded, load, make: element, parts, plural, remember, scrolling } = gpubenchLists;

  const form = document.getElementById("ask");
  const rules = JSON.parse(form.dataset.rules);
  const output = document.getElementById("advice");
  const told = document.getElementById("told");
  const fields = form.elements;
  const [PREDICTED, WIDE, EXTRAPOLATED] = [1, 2, 3]; // indices into rules.kinds
  const kernels = new Map();
  let turn = 0;

  // Estimates

  const infinite = (value) => value ?? Infinity; // JSON has no infinity

  // Points are { at, guess }; along the first axis between guesses along the others.
  const interpolated = (points, place) => {
    if (!place.length) return points.length ? points[0].guess : null;
    const groups = new Map();
    for (const { at, guess } of points) {
      if (!groups.has(at[0])) groups.set(at[0], []);
      groups.get(at[0]).push({ at: at.slice(1), guess });
    }
    const [value, ...others] = place;
    const there = groups.has(value) ? interpolated(groups.get(value), others) : null;
    if (there) return there;
    const known = [...groups.keys()]
      .sort((a, b) => a - b)
      .filter((key) => key !== value)
      .map((key) => [key, interpolated(groups.get(key), others)])
      .filter(([, guess]) => guess);
    if (known.length < 2) return null;
    const below = known.filter(([key]) => key <= value).length;
    const after = Math.min(Math.max(below, 1), known.length - 1);
    const [[a, one], [b, other]] = [known[after - 1], known[after]];
    const gap = Math.log(b / a);
    const t = Math.log(value / a) / gap;
    const inside = t >= 0 && t <= 1;
    const near = gap <= Math.log(rules.most_apart) * (1 + 1e-9);
    const reach = inside ? gap * t * (1 - t) : gap * Math.max(-t, t - 1);
    let sag = 0;
    if (inside && after > 1 && after < known.length - 1) {
      const four = known.slice(after - 2, after + 2).map(([x, guess]) => [Math.log(x), guess.log]);
      const slopes = [0, 1, 2].map((k) => (four[k + 1][1] - four[k][1]) / (four[k + 1][0] - four[k][0]));
      const bends = [0, 1].map((k) => (slopes[k + 1] - slopes[k]) / (four[k + 2][0] - four[k][0]));
      if (bends[0] * bends[1] > 0) sag = Math.abs(bends[1]) < Math.abs(bends[0]) ? bends[1] : bends[0];
    }
    return {
      log: (1 - t) * one.log + t * other.log - sag * gap * reach,
      half: Math.abs(1 - t) * one.half + Math.abs(t) * other.half,
      reach: Math.abs(1 - t) * one.reach + Math.abs(t) * other.reach + reach,
      kind: Math.max(inside ? (near ? PREDICTED : WIDE) : EXTRAPOLATED, one.kind, other.kind),
    };
  };

  const pointsOf = (curve) =>
    (curve.points ??= curve.at.map((at, k) => ({ at, guess: { log: curve.log[k], half: curve.half[k], reach: 0, kind: 0 } })));

  const estimate = (curve, place) => {
    const guess = interpolated(pointsOf(curve), place);
    if (!guess) return null;
    const [slope, factor] = guess.kind === EXTRAPOLATED ? curve.beyond : curve.inside;
    const half = factor * Math.hypot(guess.half, guess.reach ? infinite(slope) * guess.reach : 0);
    const widest = Math.exp(Math.min(half, rules.largest));
    const value = Math.exp(Math.max(Math.min(guess.log, rules.largest), -rules.largest));
    const known = half < Infinity;
    return { seconds: value, low: known ? value / widest : 0, high: known ? value * widest : Infinity, kind: guess.kind };
  };

  const variantAt = (curve, place) => {
    const distance = (at) => at.reduce((sum, value, k) => sum + Math.abs(Math.log(value / place[k])), 0);
    const distances = curve.at.map(distance);
    return curve.variant[distances.indexOf(Math.min(...distances))];
  };

  // Advice

  const counted = (way) => way.axes.at(-1) === rules.workers;

  const countsOf = (way, have) => {
    const values = Object.values(way.times).flatMap((curve) => curve.at.map((at) => at.at(-1)));
    const counts = counted(way) ? [...new Set(values)].sort((a, b) => a - b) : [];
    const measured = counts.length ? counts : [null];
    if (!have.length) return measured;
    const devices = way.device.split(" and ");
    if (devices.length > 1) {
      const isThere = (device) => have.includes(device) || have.includes(device.split(":")[0]);
      return devices.every(isThere) ? measured : [];
    }
    const kept = new Set();
    const kind = way.device.split(":")[0];
    for (const one of have) {
      const cut = one.lastIndexOf(":");
      const [name, number] = cut < 0 ? ["", one] : [one.slice(0, cut), one.slice(cut + 1)];
      if (one === way.device || one === kind) measured.forEach((count) => kept.add(count));
      else if (counts.length && name === way.device && /^[0-9]+$/.test(number) && Number(number)) {
        counts.filter((count) => count <= Number(number)).forEach((count) => kept.add(count));
        kept.add(Number(number));
      }
    }
    return [...kept];
  };

  const labelOf = (way, count) => {
    const workers = count ? ` with ${count} worker${count === 1 ? "" : "s"}` : "";
    return `${way.implementation}${way.device ? ` on ${way.device}` : ""}${workers}`;
  };

  // The time to the result; null where there is no estimate.
  const totalOf = (way, count, ask) => {
    const place = way.axes.filter((axis) => axis !== rules.workers).map((axis) => ask.sizes[axis]);
    if (count !== null) place.push(count);
    const at = (time) => (way.times[time] ? estimate(way.times[time], place) : null);
    const kernel = at("kernel");
    const [copied, copies] = ["end_to_end", "transfer"].map((time) => (ask.from_host ? at(time) : null));
    const paid = [];
    const pay = (name, part, times = 1) =>
      paid.push({ name, seconds: part.seconds * times, low: part.low * times, high: infinite(part.high) * times, kind: part.kind });
    const once = (time) => pay(time, { ...way.once[time], kind: 0 });
    if (ask.process !== "warm" && way.once.start) once("start");
    if (ask.process === "fresh" && way.once.compile) once("compile");
    let calls = ask.calls;
    if (copied) {
      pay("first call with copies", copied);
      calls -= 1;
    } else if (copies) pay("copies", copies);
    else if (ask.from_host && way.copies) return null;
    if (calls && !kernel) return null;
    if (calls) pay(`${calls} call${calls === 1 ? "" : "s"}`, kernel, calls);
    const missing = [];
    if (ask.process === "fresh" && way.compiles && !way.once.compile && !way.once.start) missing.push("compile");
    if (ask.process !== "warm" && !way.once.start) missing.push("start");
    const seconds = paid.reduce((sum, part) => sum + part.seconds, 0);
    const below = Math.hypot(...paid.map((part) => part.seconds - part.low));
    const above = Math.hypot(...paid.map((part) => part.high - part.seconds));
    const known = above < Infinity;
    return {
      label: labelOf(way, count),
      device: way.device,
      variant: variantAt(way.times.kernel ?? way.times.end_to_end, place),
      parts: paid,
      seconds,
      low: known ? Math.max(seconds - below, 0) : 0,
      high: seconds + above,
      kind: rules.kinds[Math.max(...paid.map((part) => part.kind))],
      missing,
      divides: way.divides,
    };
  };

  const ratioOf = (one, other) => independentQuotient(one, other, "seconds");

  const apart = (one, other) => {
    const ratio = ratioOf(one, other);
    return known(ratio) && (ratio.low > 1 || ratio.high < 1);
  };

  const fastest = (totals) => {
    const times = totals.map((total) => total?.seconds ?? Infinity);
    return times.indexOf(Math.min(...times));
  };

  // Where the fastest changes between two places.
  const crossings = (totals, first, last) => {
    const steps = Math.max(Math.ceil(rules.steps * Math.log10(last / first)), 1);
    const places = Array.from({ length: steps + 1 }, (_, step) => first * (last / first) ** (step / steps));
    const every = places.map(totals);
    const ratio = (each, [one, other]) => (each[one] && each[other] ? ratioOf(each[one], each[other]) : null);
    const begins = (pair, end, step) => {
      let [low, high] = [places[step], places[step + 1]];
      for (let k = 0; k < rules.halvings; k += 1) {
        const middle = Math.sqrt(low * high);
        if ((ratio(totals(middle), pair) ?? { value: 1, low: 0, high: Infinity })[end] > 1) high = middle;
        else low = middle;
      }
      return high;
    };
    const best = every.map(fastest);
    const found = [];
    for (let step = 0; step < steps; step += 1) {
      const pair = [best[step], best[step + 1]];
      if (pair[0] === pair[1] || !ratio(every[step], pair) || !ratio(every[step + 1], pair)) continue;
      const ratios = every.map((each) => ratio(each, pair));
      const before = ratios.findLastIndex((r, place) => place <= step && r && r.high < 1);
      const after = ratios.findIndex((r, place) => place > step && r && r.low > 1);
      const [one, other] = pair.map((index) => every[step][index].label);
      found.push({
        value: begins(pair, "value", step),
        low: before < 0 ? null : begins(pair, "high", before),
        high: after < 0 ? null : begins(pair, "low", after - 1),
        before: one,
        after: other,
      });
    }
    return found;
  };

  const together = (totals) => {
    const once = ({ parts }) =>
      parts.filter(({ name }) => name === "start" || name === "compile").reduce((sum, part) => sum + part.seconds, 0);
    const first = new Map();
    for (const total of totals.filter(({ divides }) => !divides)) {
      const kind = total.device.split(":")[0];
      const own = ["cuda", "cl"].includes(kind) || total.device.includes("://") ? total.device : "host";
      if (!first.has(own)) first.set(own, total);
    }
    const labels = [];
    let [rate, paid, seconds] = [0, 0, Infinity];
    for (const total of [...first.values()].sort((a, b) => once(a) - once(b))) {
      const divided = total.seconds - once(total);
      if (once(total) >= seconds || divided <= 0) continue;
      labels.push(total.label);
      rate += 1 / divided;
      paid += once(total) / divided;
      seconds = (1 + paid) / rate;
    }
    return labels.length > 1 ? { labels, seconds } : null;
  };

  // ask: { sizes, calls, from_host, process, have }; one advice for each combination of parameters.
  const advise = (data, ask) => {
    const advices = [];
    for (const parameters of new Set(data.ways.map((way) => way.parameters))) {
      const group = data.ways.filter((way) => way.parameters === parameters);
      const choices = group.flatMap((way) => countsOf(way, ask.have).map((count) => [way, count]));
      const tried = choices.map(([way, count]) => totalOf(way, count, ask));
      const totals = tried.filter(Boolean).sort((a, b) => a.seconds - b.seconds);
      if (!totals.length) continue;
      const all = (one) => choices.map(([way, count]) => totalOf(way, count, one));
      const names = Object.keys(ask.sizes);
      const values = choices.flatMap(([way]) => Object.values(way.times).flatMap((curve) => curve.at.map((at) => at[0])));
      const known = (total) => (total && total.kind !== "extrapolated" ? total : null);
      const overSize = (value) => all({ ...ask, sizes: { [names[0]]: value } }).map(known);
      advices.push({
        parameters,
        totals,
        left_out: choices.filter((_, k) => !tried[k]).map(([way, count]) => labelOf(way, count)),
        over_size: names.length === 1 ? crossings(overSize, Math.min(...values), Math.max(...values)) : [],
        over_calls: crossings((calls) => all({ ...ask, calls: Math.floor(calls) }), 1, rules.most_calls),
        together: together(totals),
      });
    }
    return advices;
  };

  // The page

  const whole = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 3 });

  const interval = (total) => (total.high < Infinity ? secondsInterval(total.low, total.high) : "no interval");

  const crossingText = (crossing, name) => {
    const rounded = (value) =>
      value === null ? "?" : whole(name === "calls" ? Math.ceil(value * (1 - 1e-9)) : value);
    const { low, high } = crossing;
    const span = low === null && high === null ? "" : ` (${rounded(low)}${DASH}${rounded(high)})`;
    return `from ${name} = ${rounded(crossing.value)}${span} on ${crossing.after}, before it ${crossing.before}`;
  };

  const tableRow = (total, best, price) => {
    const note = [rules.kind_words[total.kind]];
    if (total !== best && !apart(best, total)) note.push("no clear difference");
    if (total.missing.length) note.push(`without ${total.missing.join(" and ")}, not measured`);
    const made = total.parts.map(({ name, seconds }) => `${name} ${secondsText(seconds)}`).join(" + ");
    const cost = price === null ? [] : [element("td", { className: "number" }, digits((total.seconds * price(total.device)) / 3600))];
    return element(
      "tr", {},
      element("th", { scope: "row" }, total.label, element("small", {}, total.variant)),
      element("td", { className: "number" }, secondsText(total.seconds), element("small", {}, interval(total))),
      ...cost,
      element("td", { className: "prose" }, made),
      element("td", { className: "prose" }, note.filter(Boolean).join("; ")),
    );
  };

  // What dividing the work took, where it was measured.
  const dividing = (totals) => {
    const divided = totals.find(({ divides }) => divides);
    const alone = totals.find(({ divides }) => !divides);
    if (!divided || !alone) return [];
    const words = `dividing the work was measured: ${divided.label} takes ${secondsText(divided.seconds)}`;
    if (divided.missing.length) return [`${words} without ${divided.missing.join(" and ")}`];
    const verdict = !apart(divided, alone) ? "no clear difference" : divided.seconds < alone.seconds ? "it gains" : "it loses";
    return [`${words}, ${digits(divided.seconds / alone.seconds)}x the time of ${alone.label} alone: ${verdict}`];
  };

  const shownAdvice = (one, ask, price) => {
    const caption = `Time to the result, fastest first${one.parameters ? `, ${one.parameters}` : ""}.`;
    const heads = [["Way"], ["Time", "number"], ...(price ? [["Price", "number"]] : []), ["Made of"], ["Note"]];
    const body = element("tbody", {}, ...one.totals.map((total) => tableRow(total, one.totals[0], price)));
    const [name] = Object.keys(ask.sizes);
    const sentences = [
      ...one.over_size.map((crossing) => `${crossingText(crossing, name)}, at ${plural(ask.calls, "call")}`),
      ...one.over_calls.map((crossing) => `${crossingText(crossing, "calls")}, at this size`),
    ];
    if (one.together) {
      const unknown = one.totals.some(({ divides }) => divides) ? "" : "; dividing the work was not measured";
      sentences.push(`${one.together.labels.join(" and ")} at once: ${secondsText(one.together.seconds)} at best, a bound from their speeds${unknown}`);
    }
    sentences.push(...dividing(one.totals));
    if (one.left_out.length) sentences.push(`no estimate here: ${one.left_out.join(", ")}`);
    return [
      ...(one.parameters ? [element("h3", {}, element("code", {}, one.parameters))] : []),
      scrolling(caption, heads, body),
      element("ul", { className: "sentences" }, ...sentences.map((sentence) => element("li", {}, sentence))),
    ];
  };

  const chosen = () => fields.kernel.selectedOptions[0];

  const inputs = () => [...document.querySelectorAll("#sizes input")];

  // What is asked for at first: between the sizes; of several, which may be no grid, a measured place.
  const fillSizes = (data, asked) => {
    const places = Object.values(data.ways[0]?.times ?? {})[0]?.at ?? [];
    const middle = places[Math.floor(places.length / 2)];
    document.getElementById("sizes").replaceChildren(...data.axes.map(({ name, low, high }, axis) => {
      const first = data.axes.length > 1 && middle ? middle[axis] : Math.round(Math.sqrt(low * high));
      const value = asked.get(`size-${name}`) ?? String(first);
      const input = element("input", { name: `size-${name}`, type: "number", min: "1", step: "any", value });
      return element("label", {}, `${name}, measured from ${whole(low)} to ${whole(high)} `, input);
    }));
  };

  // "cpu=0.10, cuda:0=2.5" as a function of a device; null without any price.
  const pricesIn = (text) => {
    const pairs = text.split(",").map((pair) => pair.split("=").map((part) => part.trim()));
    const prices = new Map(pairs.filter(([name, value]) => name && Number(value) >= 0).map(([name, value]) => [name, Number(value)]));
    const one = (device) => prices.get(device) ?? prices.get(device.split(":")[0]) ?? NaN;
    return prices.size ? (devices) => devices.split(" and ").reduce((sum, device) => sum + one(device), 0) : null;
  };

  const show = () => {
    const data = kernels.get(chosen().value);
    const sizes = Object.fromEntries(inputs().map(({ name, value }) => [name.slice(5), Number(value)]));
    const calls = Math.floor(Number(fields.calls.value));
    const wrong = !(calls >= 1) || Object.values(sizes).some((value) => !(value > 0 && value < Infinity));
    const ask = {
      sizes,
      calls,
      from_host: fields.from.value === "host",
      process: fields.process.value,
      have: fields.have.value.split(",").map((one) => one.trim()).filter(Boolean),
    };
    const price = pricesIn(fields.prices.value);
    const advices = wrong || data.refused ? [] : advise(data, ask);
    const nowhere = ask.have.length ? "None of these devices was measured there." : "No estimate there: sizes that are no grid have to be as they were measured.";
    const none = wrong ? "Sizes and calls are numbers above 0." : data.refused ? "" : nowhere;
    output.replaceChildren(
      ...(advices.length ? advices.flatMap((one) => shownAdvice(one, ask, price)) : [element("p", {}, none)]),
      element("p", { className: "muted" }, data.verified),
    );
    const best = advices[0]?.totals[0];
    told.textContent = best ? `${chosen().dataset.label}: ${best.label} in ${secondsText(best.seconds)}.` : none;
  };

  const choose = async (asked) => {
    const mine = (turn += 1);
    try {
      await load(chosen().value);
    } catch (error) {
      if (mine === turn) output.replaceChildren(element("p", {}, error.message));
      return;
    }
    if (mine !== turn) return;
    fillSizes(kernels.get(chosen().value), asked);
    show();
  };

  const NAMES = ["calls", "from", "process", "have", "prices"];

  const changed = (event) => {
    const values = Object.fromEntries(NAMES.map((name) => [name, encodeURIComponent(fields[name].value)]));
    const sizes = event.target.name === "kernel" ? [] : inputs().map(({ name, value }) => [name, value]);
    const before = [...parts().keys()].filter((name) => name.startsWith("size-")).map((name) => [name, ""]);
    remember({ ...Object.fromEntries(before), kernel: encodeURIComponent(chosen().dataset.label), ...values, ...Object.fromEntries(sizes) });
    if (event.target.name === "kernel") choose(new Map());
    else if (kernels.has(chosen().value)) show(); // else it is being loaded, and shown then
  };

  const read = () => {
    const asked = parts();
    const options = [...fields.kernel.options];
    fields.kernel.selectedIndex = Math.max(options.findIndex(({ dataset }) => dataset.label === decoded(asked.get("kernel") ?? "")), 0);
    for (const name of NAMES) if (asked.has(name)) fields[name].value = decoded(asked.get(name));
    choose(asked);
  };

  const start = () => {
    form.hidden = false;
    form.addEventListener("change", changed);
    form.addEventListener("submit", (event) => event.preventDefault());
    window.addEventListener("hashchange", read);
    read();
  };

  window.addEventListener("DOMContentLoaded", start);
  return { advise, kernel: (data) => kernels.set(document.currentScript.getAttribute("src"), data), kernels };
})();
