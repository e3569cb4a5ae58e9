// Long lists: search, filters, sorting, and rows that are drawn when they are looked at.
//
// A list is an element with data-list, its name. Its rows have data-row, JSON: lists of words are
// what they are filtered by, numbers are what they are sorted by (`listed` of the view models). Rows
// stand in groups, <details>. All rows stand in the page, for readers without this script; with it
// those beyond the first of each open group are taken out until they are asked for. What was chosen
// stands in the address, beside what other scripts keep there. With data-plain a list has no tools.
"use strict";

// eslint-disable-next-line no-unused-vars -- used by the other scripts
const gpubenchLists = (() => {
  const FIRST = 40; // rows shown at first, as FIRST in gpubench/report/lists.py
  const MORE = 200; // that "Show more" adds
  const FOLDS = 30; // groups shown at first, and that "Show more" adds
  const FEWEST = 8; // rows from which a list has tools: fewer are seen at a glance
  const MOST_OPTIONS = 100; // of a filter; one with more values takes a part of the word

  const make = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  const plural = (count, noun) => `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;

  // Adds a script that stands beside the page, once.
  const loading = new Map();
  const load = (address) => {
    if (!loading.has(address)) {
      loading.set(address, new Promise((resolve, reject) => {
        const script = make("script", { src: address, onload: resolve });
        script.onerror = () => reject(new Error(`${address} is missing; write the report again`));
        document.head.append(script);
      }));
    }
    return loading.get(address);
  };

  // Data that scripts hold packed (gpubench/report/data_scripts.py): JSON, and within it numbers.

  const packed = new Map();
  const put = (address, text) => packed.set(address, text);

  const inflated = (text) => {
    const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")));
  };

  const readings = new Map();
  const read = (address) => {
    if (!readings.has(address)) readings.set(address, load(address).then(() => inflated(packed.get(address)).json()));
    return readings.get(address);
  };

  // The first bytes of all numbers stand together, then the second ones, and so on.
  const floats = async (text) => {
    const planes = new Uint8Array(await inflated(text).arrayBuffer());
    const count = planes.length / 4;
    const view = new DataView(new ArrayBuffer(planes.length));
    planes.forEach((byte, place) => view.setUint8(4 * (place % count) + Math.floor(place / count), byte));
    return Float32Array.from({ length: count }, (_, place) => view.getFloat32(4 * place, true));
  };

  // Setups that have the kernel of this page, its own first: the navigation has a link to each.
  const sources = () => {
    const { kernel, slug } = document.getElementById("explore").dataset;
    const links = [...document.querySelectorAll(`nav.setups a[href^="${CSS.escape(kernel)}"]`)];
    const setups = links.map((link) => ({
      setup: link.textContent.trim(),
      slug: link.getAttribute("href").slice(kernel.length, -".html".length),
      isHere: link.hasAttribute("aria-current"),
    }));
    setups.sort((a, b) => b.isHere - a.isHere);
    return { kernel, setups: setups.length ? setups : [{ setup: "", slug, isHere: true }] };
  };
  // Addresses of the scripts with a setup's commits and a kernel's values (gpubench/report/series.py).
  const seriesOf = (kernel, { slug }) => [`compare-data/commits${slug}.js`, `compare-data/series-${kernel}${slug}.js`];

  // A table under its caption, which scrolls by itself, as `region` of parts.html has it.
  const scrolling = (caption, heads, body, properties = {}) => {
    const cells = heads.map(([text, className = ""]) => make("th", { scope: "col", className }, text));
    const title = make("caption", {}, make("span", {}, caption));
    const table = make("table", properties, title, make("thead", {}, make("tr", {}, ...cells)), body);
    const region = make("div", { className: "scroll", tabIndex: 0 }, table);
    region.setAttribute("role", "region");
    region.setAttribute("aria-label", caption);
    stack(region);
    return region;
  };

  // The address after "#": parts "name=value" joined by "&". Each script has names of its own.

  const parts = (address = location.hash.slice(1)) => {
    const pairs = address.split("&").map((part) => part.split(/=(.*)/s));
    return new Map(pairs.filter((pair) => pair.length > 1).map(([name, value]) => [name, value]));
  };

  // Keeps the parts of others; an empty value takes its name away.
  const remember = (values) => {
    const all = parts();
    for (const [name, value] of Object.entries(values)) {
      if (value) all.set(name, value);
      else all.delete(name);
    }
    const address = [...all].map((pair) => pair.join("=")).join("&");
    history.replaceState(null, "", address ? `#${address}` : location.href.split("#")[0]);
  };

  // A part of the address; one that somebody has cut in the midst of a character stays as it is.
  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };

  const words = (text) => text.toLowerCase().replaceAll("␣", " ");

  // Rows of the page, grouped by the element that holds them. Their text is read when it is needed.
  const rowsIn = (root) =>
    [...root.querySelectorAll("[data-row]:not([data-row] *)")].map((element) => ({
      element,
      data: JSON.parse(element.dataset.row),
      holder: element.parentElement,
      get text() {
        return words(element.textContent);
      },
    }));

  // On a phone a row's cells stand below each other, each after its head (gpubench.css). Maps, where
  // a cell's place tells something, stay as they are. What is small in a head is no part of its name.
  const stack = (root) => {
    for (const table of root.querySelectorAll("table:not(.recent, .launches, .lines, .stacks)")) {
      const heads = [...table.querySelectorAll(":scope > thead th")].map((head) =>
        [...head.childNodes].filter((part) => part.nodeName !== "SMALL").map((part) => part.textContent).join(""));
      for (const row of table.querySelectorAll(":scope > tbody > tr")) {
        [...row.children].forEach((cell, place) => {
          if (cell.tagName === "TD" && heads[place] && cell.textContent.trim() && !cell.querySelector("svg")) cell.dataset.head = heads[place];
        });
      }
      table.classList.add("stacks");
    }
  };
  stack(document);

  const lists = new Map();

  // `rows`: {element, data, holder, text}; they may make their element when it is asked for.
  const list = (root, rows = rowsIn(root)) => {
    const name = root.dataset.list;
    const noun = root.dataset.noun;
    const groups = [...new Set(rows.map((row) => row.holder))].map((holder) => ({
      holder,
      fold: root.contains(holder.closest("details")) ? holder.closest("details") : null,
      limit: FIRST,
      rows: [],
      more: make("button", { type: "button", className: "more", hidden: true }),
    }));
    const groupOf = new Map(groups.map((group) => [group.holder, group]));
    const fields = {};
    const status = make("p", { className: "muted count" });
    status.setAttribute("role", "status");
    const moreGroups = make("button", { type: "button", className: "more", hidden: true });
    let folds = FOLDS;

    const value = (key) => fields[key]?.value ?? "";
    const isNarrowed = () => Object.keys(fields).some((key) => key !== "sort" && value(key));

    const wanted = () => {
      const asked = words(value("search")).split(/\s+/).filter(Boolean);
      const filters = Object.keys(fields).filter((key) => key !== "search" && key !== "sort" && value(key));
      const fits = (said, key) =>
        fields[key].tagName === "SELECT" ? said.includes(value(key)) : said.some((word) => words(word).includes(words(value(key))));
      const kept = rows.filter(({ data }) => filters.every((key) => fits(data[key] ?? [], key)));
      if (!asked.length) return kept;
      return kept.filter((row) => {
        row.words ??= row.text;
        return asked.every((word) => row.words.includes(word));
      });
    };

    const sorted = (kept) => {
      const [, key, order] = /^(.*)-(down|up)$/.exec(value("sort")) ?? [];
      if (!key) return kept;
      const sign = order === "up" ? 1 : -1;
      const has = kept.filter(({ data }) => typeof data[key] === "number");
      const lacks = kept.filter(({ data }) => typeof data[key] !== "number");
      return [...has.sort((a, b) => sign * (a.data[key] - b.data[key])), ...lacks];
    };

    const draw = (group) => {
      const isOpen = !group.fold || group.fold.open;
      const shown = isOpen ? group.rows.slice(0, group.limit) : [];
      group.holder.replaceChildren(...shown.map((row) => row.element));
      const left = group.rows.length - shown.length;
      group.more.hidden = !isOpen || !left;
      group.more.textContent = `Show ${Math.min(left, MORE).toLocaleString("en-US")} more of ${plural(group.rows.length, noun)}`;
    };

    // Of the groups with a row that is wanted the first ones.
    const drawFolds = () => {
      const wantedFolds = groups.filter(({ fold, rows: its }) => fold && its.length).map(({ fold }) => fold);
      for (const { fold } of groups) if (fold) fold.hidden = true;
      for (const fold of wantedFolds.slice(0, folds)) fold.hidden = false;
      const left = wantedFolds.length - folds;
      moreGroups.hidden = left <= 0;
      moreGroups.textContent = `Show ${Math.min(left, FOLDS)} more of ${plural(wantedFolds.length, root.dataset.groups ?? "group")}`;
    };

    // Groups with a row that is wanted; open as far as the first rows go, once something was chosen.
    const show = (anew) => {
      const kept = sorted(wanted());
      const isFlat = Boolean(value("sort"));
      for (const group of groups) {
        group.rows = [];
        group.limit = FIRST;
      }
      for (const row of kept) (isFlat ? groups[0] : groupOf.get(row.holder)).rows.push(row);
      root.classList.toggle("flat", isFlat);
      let before = 0;
      folds = FOLDS;
      drawFolds();
      for (const group of groups) {
        if (group.fold) {
          if (anew) group.fold.open = isFlat || !before || before + group.rows.length <= FIRST;
        } else {
          group.holder.closest(".scroll")?.toggleAttribute("hidden", !group.rows.length);
        }
        before += group.rows.length;
        draw(group);
      }
      const all = plural(rows.length, noun);
      status.textContent = isNarrowed() ? `${kept.length.toLocaleString("en-US")} of ${all}` : all;
    };

    const field = (key, label, control) => {
      fields[key] = control;
      control.name = `${name}-${key}`;
      return make("label", {}, make("span", {}, label), control);
    };

    const choice = (key, label, options) =>
      field(key, label, make("select", {}, ...options.map(([text, chosen]) => new Option(text, chosen))));

    const filter = (key) => {
      const counts = new Map();
      for (const { data } of rows) for (const word of new Set(data[key] ?? [])) counts.set(word, (counts.get(word) ?? 0) + 1);
      const isShared = counts.size === 1 && [...counts.values()][0] === rows.length;
      if (!counts.size || isShared) return [];
      const title = key[0].toUpperCase() + key.slice(1);
      if (counts.size > MOST_OPTIONS) return [field(key, title, make("input", { type: "search", autocomplete: "off", spellcheck: false }))];
      const options = [...counts].map(([word, count]) => [`${word} (${count.toLocaleString("en-US")})`, word]);
      return [choice(key, title, [["all", ""], ...options])];
    };

    const read = () => {
      const asked = parts();
      for (const [key, control] of Object.entries(fields)) control.value = decoded(asked.get(`${name}.${key}`) ?? "");
      for (const control of Object.values(fields)) if (control.selectedIndex === -1) control.value = "";
    };

    const changed = () => {
      const chosen = Object.keys(fields).map((key) => [`${name}.${key}`, encodeURIComponent(value(key))]);
      remember(Object.fromEntries(chosen));
      show(true);
    };

    const tools = () => {
      const keys = [...new Set(rows.flatMap(({ data }) => Object.keys(data)))];
      const filters = keys.filter((key) => rows.some(({ data }) => Array.isArray(data[key])));
      const orders = keys.filter((key) => rows.filter(({ data }) => typeof data[key] === "number").length > 1);
      const form = make(
        "form", { className: "tools" },
        field("search", "Search", make("input", { type: "search", autocomplete: "off", spellcheck: false })),
        ...filters.flatMap(filter),
      );
      if (orders.length) {
        const options = orders.flatMap((key) => [[`largest ${key}`, `${key}-down`], [`smallest ${key}`, `${key}-up`]]);
        form.append(choice("sort", "Sort by", [["as listed", ""], ...options]));
      }
      form.append(status);
      form.setAttribute("role", "search");
      form.setAttribute("aria-label", `Find among the ${noun}s`);
      form.addEventListener("input", changed);
      form.addEventListener("submit", (event) => event.preventDefault());
      root.prepend(form);
    };

    // A row that an address names stands in view, whatever hid it.
    const reveal = (id) => {
      const row = id && rows.find(({ element }) => element.id === id);
      if (!row) return;
      const group = groupOf.get(row.holder);
      if (!group.rows.includes(row)) {
        for (const control of Object.values(fields)) control.value = "";
        show(true);
      }
      if (group.fold) group.fold.open = true;
      folds = Math.max(folds, groups.indexOf(group) + 1);
      drawFolds();
      group.limit = Math.max(group.limit, group.rows.indexOf(row) + 1);
      draw(group);
      if ("open" in row.element) row.element.open = true;
      row.element.scrollIntoView();
    };

    for (const group of groups) {
      (group.holder.closest("table")?.parentElement ?? group.holder).after(group.more);
      group.more.addEventListener("click", () => {
        const next = group.limit;
        group.limit += MORE;
        draw(group);
        group.rows[next].element.querySelector("a, summary")?.focus();
      });
      group.fold?.addEventListener("toggle", () => draw(group));
    }
    if (rows.length >= FEWEST && root.dataset.plain === undefined) tools();
    root.append(moreGroups);
    moreGroups.addEventListener("click", () => {
      folds += FOLDS;
      drawFolds();
    });
    const everything = () => {
      folds = Infinity;
      drawFolds();
      for (const group of groups) {
        if (group.fold) group.fold.open = true;
        group.limit = Infinity;
        draw(group);
      }
    };
    // Takes the list's name from another of the same name, and shows what the address says.
    const use = () => {
      lists.set(name, made);
      read();
      show(Object.values(fields).some((control) => control.value));
    };
    const made = { everything, read, reveal, show, use };
    use();
  };

  const start = () => {
    document.querySelectorAll("[data-list]").forEach((root) => list(root));
    const reveal = () => lists.forEach((each) => each.reveal(decoded(location.hash.slice(1))));
    window.addEventListener("hashchange", () => {
      if (location.hash && !location.hash.includes("=")) return reveal();
      lists.forEach((each) => {
        each.read();
        each.show(true);
      });
    });
    window.addEventListener("beforeprint", () => lists.forEach((each) => each.everything()));
    reveal();
  };

  start();
  return { decoded, floats, list, load, make, named: (name) => lists.get(name), parts, plural, put, read, remember, scrolling, seriesOf, sources };
})();
