// Numbers as text for people, as gpubench/report/text.py has it, and what is known of a ratio.
"use strict";

const gpubenchText = (() => {
  const UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const DASH = "\u2013";
  const SPACE = "\u202f";
  // By the number of decimals; made once, since charts write thousands of numbers.
  const formats = [0, 1, 2, 3, 4, 5, 6].map(
    (decimals) => new Intl.NumberFormat("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }),
  );

  const digits = (value) => {
    if (!Number.isFinite(value)) return "unknown";
    if (value === 0) return "0";
    const magnitude = Number(value.toExponential(2).split("e")[1]);
    // Two digits of the exponent at least, as Python writes it.
    if (magnitude < -4 || magnitude >= 9) return value.toExponential(2).replace(/e([+-])(\d)$/, "e$10$2");
    return formats[Math.max(2 - magnitude, 0)].format(value);
  };
  const unit = (value) => UNITS.find(([factor]) => Math.abs(value) >= 0.9995 * factor) ?? UNITS.at(-1);
  const seconds = (value) => {
    if (!Number.isFinite(value)) return "unknown";
    const [factor, name] = unit(value);
    return `${digits(value / factor)}${SPACE}${name}`;
  };
  const secondsInterval = (low, high) => {
    if (!Number.isFinite(low) || !Number.isFinite(high)) return "no interval";
    const [factor, name] = unit(high);
    return `${digits(low / factor)}${DASH}${digits(high / factor)}${SPACE}${name}`;
  };
  const bytes = (value) => {
    const prefixes = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
    const [scale, name] = prefixes.find(([least]) => Math.abs(value) >= least) ?? [1, "B"];
    return `${scale > 1 ? digits(value / scale) : value.toFixed(0)}${SPACE}${name}`;
  };
  // A value with its unit, as `quantity` of text.py.
  const quantity = (value, of) => {
    if (of === "seconds") return seconds(value);
    if (of === "bytes") return bytes(value);
    return of ? `${digits(value)}${SPACE}${of}` : digits(value);
  };
  const date = (moment) => new Date(moment * 1000).toISOString().slice(0, 10);
  const ratioText = (value) => `${digits(value)}×`;
  const known = (ratio) => ratio.low > 0 && Number.isFinite(ratio.high);

  // Of two values with intervals, neither of which depends on the other, as independent_quotient in
  // gpubench/results/ratio.py; both have their value under this name.
  const independentQuotient = (one, other, name) => {
    const value = one[name] / other[name];
    if (!known(one) || !known(other)) return { value, low: 0, high: Infinity };
    const below = Math.hypot(Math.log(one[name] / one.low), Math.log(other.high / other[name]));
    const above = Math.hypot(Math.log(one.high / one[name]), Math.log(other[name] / other.low));
    return { value, low: value * Math.exp(-below), high: value * Math.exp(above) };
  };

  return { DASH, date, digits, independentQuotient, known, quantity, ratioText, seconds, secondsInterval };
})();
