// What gets a result fastest: the arithmetic of gpubench/edge/advise/estimates.py and advice.py, of
// curves that come with each kernel's script (gpubench/edge/advise/page.py). The names are those of the
// Python; gpubench/edge/advise/tests/test_advise_in_browser.py holds the two together.
"use strict";

const gpubenchAdvice = (() => {
  const { digits, independentQuotient, known, seconds: secondsText, secondsInterval } = gpubenchText;
  const { decoded, load, make: element, parts, plural, remember, scrolling } = gpubenchLists;

  const form = document.getElementById("ask");
  const rules = JSON.parse(form.dataset.rules);
  const output = document.getElementById("advice");
  const told = document.getElementById("told");
  const fields = form.elements;
  const [MEASURED, PREDICTED, EXTRAPOLATED] = [0, 1, 2]; // indices into rules.kinds
  const kernels = new Map();
  let turn = 0;

  // Estimates

  // The cell of a grid that a place lies in or next to, or why there is none.
  const find = ({ at, axes }, place) => {
    let corners = [[[], 1]];
    const beyond = [];
    let reach = 0;
    for (const [k, value] of place.entries()) {
      const axis = axes[k];
      const nearest = Math.min(...axis.map((measured) => Math.abs(Math.log(value / measured))));
      if (nearest > Math.log(rules.max_factor) * (1 + 1e-9)) return "far";
      if (nearest && axis.length === 1) return "single";
      const inner = Math.min(Math.max(value, axis[0]), axis.at(-1));
      beyond.push(Math.log(value / inner));
      const index = axis.findIndex((measured) => measured >= inner);
      let sides = [[axis[index], 1]];
      if (axis[index] !== inner) {
        const gap = Math.log(axis[index] / axis[index - 1]);
        const t = Math.log(inner / axis[index - 1]) / gap;
        reach += gap * t * (1 - t);
        sides = [[axis[index - 1], 1 - t], [axis[index], t]];
      }
      corners = corners.flatMap(([start, weight]) => sides.map(([side, share]) => [[...start, side], weight * share]));
    }
    const indices = corners.map(([corner]) => at.findIndex((one) => one.every((value, k) => value === corner[k])));
    return indices.includes(-1) ? "corner" : { corners: indices.map((index, k) => [index, corners[k][1]]), reach, beyond };
  };

  const mix = ({ corners, beyond }, values, slopes = []) => {
    const inside = corners.reduce((sum, [index, weight]) => sum + values[index] * weight, 0);
    return slopes.reduce((sum, [below, above], k) => sum + beyond[k] * (beyond[k] > 0 ? above : below), inside);
  };

  const isWithin = (one, other) => one.every((value, k) => value <= other[k]);

  // A time with its interval, or why there is none.
  const estimate = (curve, place) => {
    const spot = find(curve, place);
    if (typeof spot === "string") return spot;
    const out = spot.beyond.reduce((sum, each) => sum + Math.abs(each), 0);
    const half = Math.hypot(mix(spot, curve.half), spot.reach + rules.bend_beyond * out);
    let log = mix(spot, curve.log, curve.slopes);
    let [low, high] = [log - half, log + half];
    const [smallest, largest] = [spot.corners[0][0], spot.corners.at(-1)[0]];
    if (spot.beyond.every((each) => each >= 0)) {
      log = Math.max(log, curve.log[smallest]);
      low = Math.max(low, curve.log[smallest] - curve.half[smallest]);
    }
    if (spot.beyond.every((each) => each <= 0)) {
      log = Math.min(log, curve.log[largest]);
      high = Math.min(high, curve.log[largest] + curve.half[largest]);
    }
    if (curve.bound && !curve.cached.some((at) => isWithin(place, at))) {
      const bound = mix(spot, curve.bound, curve.bound_slopes);
      [log, low, high] = [log, low, high].map((each) => Math.max(each, bound));
    }
    const kind = out ? EXTRAPOLATED : spot.reach ? PREDICTED : MEASURED;
    return { seconds: Math.exp(log), low: Math.exp(low), high: Math.exp(high), kind };
  };

  const heldBytes = (curve, place) => {
    const spot = curve.held ? find(curve, place) : "far";
    return typeof spot === "string" ? 0 : Math.exp(mix(spot, curve.held, curve.held_slopes));
  };

  const variantAt = (curve, place) => {
    const distance = (at) => at.reduce((sum, value, k) => sum + Math.abs(Math.log(value / place[k])), 0);
    const distances = curve.at.map(distance);
    return curve.variant[distances.indexOf(Math.min(...distances))];
  };

  // Advice

  const partsOf = (process) => ({ fresh: rules.once, cached: rules.once.slice(0, 1), warm: [] })[process];

  const fits = (way, device, one) => {
    const kind = device.split(":")[0];
    const cut = one.lastIndexOf(":");
    const number = one.slice(cut + 1);
    if (way.workers && one.slice(0, Math.max(cut, 0)) === kind && /^[0-9]+$/.test(number)) return way.workers <= Number(number);
    return one === device || one === kind;
  };

  const isHad = (way, have) =>
    !have.length || way.device.split(" and ").every((device) => have.some((one) => fits(way, device, one)));

  // The time to the result, or why it is not known.
  const sumUp = (way, ask, counted) => {
    const place = Object.values(ask.sizes);
    const { kernel, end_to_end: called, transfer } = way.times;
    const curve = kernel ?? rules.curves.map((time) => way.times[time]).find(Boolean);
    const paid = [];
    const pay = (name, part, times = 1) =>
      paid.push({ name, seconds: part.seconds * times, low: part.low * times, high: part.high * times, kind: part.kind });
    for (const part of counted) if (way.once[part]) pay(part, { ...way.once[part], kind: MEASURED });
    const copies = ask.from_host ? (called ?? transfer) : undefined;
    if (ask.from_host && !copies && way.copies) return rules.copies;
    let calls = ask.calls;
    if (copies) {
      const part = estimate(copies, place);
      if (typeof part === "string") return rules.gap_words[part];
      pay(copies === called ? "first call with copies" : "copies", part);
      if (copies === called) calls -= 1;
    }
    if (calls) {
      if (!kernel) return "its kernel was not measured";
      const part = estimate(kernel, place);
      if (typeof part === "string") return rules.gap_words[part];
      pay(`${calls} call${calls === 1 ? "" : "s"}`, part, calls);
    }
    if (way.memory && heldBytes(curve, place) > way.memory) return rules.memory;
    const seconds = paid.reduce((sum, part) => sum + part.seconds, 0);
    const low = Math.max(seconds - Math.hypot(...paid.map((part) => part.seconds - part.low)), 0);
    const high = seconds + Math.hypot(...paid.map((part) => part.high - part.seconds));
    if (high > rules.max_factor * low) return rules.wide;
    const kind = rules.kinds[Math.max(...paid.map((part) => part.kind))];
    return { label: way.label, device: way.device, variant: variantAt(curve, place), parts: paid, seconds, low, high, kind };
  };

  const isApart = (one, other) => {
    const ratio = independentQuotient(one, other, "seconds");
    return known(ratio) && (ratio.low > 1 || ratio.high < 1);
  };

  const bySeconds = (one, other) => one.seconds - other.seconds;

  const isTotal = (one) => typeof one !== "string";

  // Where which way is clearly the fastest; nothing where it is the same everywhere.
  const findStretches = (totals, first, last) => {
    const steps = Math.max(Math.ceil(rules.steps * Math.log10(last / first)), 1);
    const found = [];
    for (let step = 0; step <= steps; step += 1) {
      const place = Math.floor(first * (last / first) ** (step / steps) + 0.5);
      const [best, ...others] = totals(place).filter(isTotal).sort(bySeconds);
      if (!best || others.some((other) => !isApart(best, other))) continue;
      if (found.at(-1)?.label === best.label) found.at(-1).last = place;
      else found.push({ label: best.label, first: place, last: place });
    }
    return found.length > 1 ? found : [];
  };

  // ask: { sizes, calls, from_host, process, have }; one advice for each combination of parameters.
  const advise = (data, ask) => {
    const had = data.ways.filter((way) => isHad(way, ask.have));
    return [...new Set(had.map((way) => way.parameters))].map((parameters) => {
      const ways = had.filter((way) => way.parameters === parameters);
      const lacking = (part) => ways.filter((way) => (part !== "compile" || way.compiles) && !way.once[part]);
      const left = partsOf(ask.process).map((part) => [part, lacking(part).map(({ label }) => label)]);
      const counted = left.filter(([, labels]) => !labels.length).map(([part]) => part);
      const all = (one) => ways.map((way) => sumUp(way, one, counted));
      const tried = all(ask);
      const [name, ...names] = Object.keys(ask.sizes);
      const values = ways.flatMap((way) => Object.values(way.times).flatMap((curve) => curve.at.map((at) => at[0])));
      const overSize = (value) => all({ ...ask, sizes: { [name]: value } });
      return {
        parameters,
        totals: tried.filter(isTotal).sort(bySeconds),
        unranked: ways.map(({ label }, k) => ({ label, reason: tried[k] })).filter(({ reason }) => !isTotal(reason)),
        left_out: Object.fromEntries(left.filter(([, labels]) => labels.length)),
        over_size: name && !names.length ? findStretches(overSize, Math.min(...values), Math.max(...values)) : [],
        over_calls: findStretches((calls) => all({ ...ask, calls }), 1, rules.max_calls),
      };
    });
  };

  // The page

  const whole = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 3 });

  const exact = (value) => value.toLocaleString("en-US");

  const stretchText = (one, name, where) =>
    `${name} ${one.first === one.last ? `= ${exact(one.first)}` : `from ${exact(one.first)} to ${exact(one.last)}`}: ${one.label} is clearly the fastest, ${where}`;

  const tableRow = (total, best, price) => {
    const note = [rules.kind_words[total.kind]];
    if (total !== best && !isApart(best, total)) note.push("no clear difference");
    const made = total.parts.map(({ name, seconds }) => `${name} ${secondsText(seconds)}`).join(" + ");
    const cost = price === null ? [] : [element("td", { className: "number" }, digits((total.seconds * price(total.device)) / 3600))];
    return element(
      "tr", {},
      element("th", { scope: "row" }, total.label, element("small", {}, total.variant)),
      element("td", { className: "number" }, secondsText(total.seconds), element("small", {}, secondsInterval(total.low, total.high))),
      ...cost,
      element("td", { className: "prose" }, made),
      element("td", { className: "prose" }, note.filter(Boolean).join("; ")),
    );
  };

  const shownAdvice = (one, ask, price) => {
    const caption = `Time to the result, fastest first${one.parameters ? `, ${one.parameters}` : ""}.`;
    const heads = [["Way"], ["Time", "number"], ...(price ? [["Price", "number"]] : []), ["Made of"], ["Note"]];
    const body = element("tbody", {}, ...one.totals.map((total) => tableRow(total, one.totals[0], price)));
    const [name] = Object.keys(ask.sizes);
    const sentences = [
      ...one.over_size.map((each) => stretchText(each, name, `at ${plural(ask.calls, "call")}`)),
      ...one.over_calls.map((each) => stretchText(each, "calls", "at this size")),
      ...Object.entries(one.left_out).map(([part, labels]) => `${part} is added to no way: it was not measured of ${labels.join(", ")}`),
      ...one.unranked.map(({ label, reason }) => `not ranked: ${label}: ${reason}`),
    ];
    return [
      ...(one.parameters ? [element("h3", {}, element("code", {}, one.parameters))] : []),
      one.totals.length ? scrolling(caption, heads, body) : element("p", {}, "No way is ranked at this size."),
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
      const input = element("input", { name: `size-${name}`, type: "number", min: "1", step: "1", value });
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

  // Commands stand between backticks, as a terminal shows them.
  const codes = (sentence) => sentence.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));

  const show = () => {
    const data = kernels.get(chosen().value);
    const sizes = Object.fromEntries(inputs().map(({ name, value }) => [name.slice(5), Number(value)]));
    const calls = Math.floor(Number(fields.calls.value));
    const wrong = !(calls >= 1) || Object.values(sizes).some((value) => !(value > 0 && Number.isInteger(value)));
    const ask = {
      sizes,
      calls,
      from_host: fields.from.value === "host",
      process: fields.process.value,
      have: fields.have.value.split(",").map((one) => one.trim()).filter(Boolean),
    };
    const price = pricesIn(fields.prices.value);
    const advices = wrong || data.refused ? [] : advise(data, ask);
    const devices = [...new Set(data.ways.flatMap(({ device }) => device.split(" and ")))].filter(Boolean);
    const nowhere = devices.length ? `None of these devices was measured; measured: ${devices.join(", ")}.` : "No time of this kernel can be used.";
    const none = wrong ? "Sizes and calls are whole numbers above 0." : data.refused ? "" : nowhere;
    output.replaceChildren(
      element("p", { className: "muted" }, ...codes(data.verified)),
      ...(advices.length ? advices.flatMap((one) => shownAdvice(one, ask, price)) : none ? [element("p", {}, none)] : []),
      ...(data.disturbed ? [element("p", { className: "muted" }, ...codes(data.disturbed))] : []),
    );
    const best = advices[0]?.totals[0];
    const words = best ? `${best.label} in ${secondsText(best.seconds)}.` : none || "no ranking.";
    told.textContent = `${chosen().dataset.label}: ${words}`;
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
  return { advise, estimate, kernel: (data) => kernels.set(document.currentScript.getAttribute("src"), data), kernels };
})();
