// From weights to colours: themes, colour maps that colour-blind readers can read, legible ink, scales and numbers.

export const THEMES = {
  light: {
    name: "light",
    paper: "#ffffff",
    ink: "#1b1f24",
    quiet: "#59626d",
    line: "#d4d9df",
    accent: "#0b57a4",
    current: "#b3261e",
    mark: "#c25100",
  },
  dark: {
    name: "dark",
    paper: "#16191f",
    ink: "#e8ebef",
    quiet: "#a7b0bb",
    line: "#3a414b",
    accent: "#8ec5ff",
    current: "#ff9d94",
    mark: "#ffb35c",
  },
};

/** The theme of the page around an element: dark where its text is bright, as in a dark notebook. */
export function themeAround(element) {
  const parts = getComputedStyle(element)
    .color.match(/[\d.]+/g)
    ?.map(Number) ?? [0, 0, 0];
  return luminance(parts.slice(0, 3)) > 0.4 ? THEMES.dark : THEMES.light;
}

/** Call `changed` whenever the theme of the page may have changed; returns a function that ends this. */
export function watchTheme(changed) {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", changed);
  // Notebooks switch their theme by attributes of <html> or <body>.
  const observer = new MutationObserver(changed);
  for (const node of [document.documentElement, document.body]) if (node) observer.observe(node, { attributes: true });
  return () => {
    scheme.removeEventListener("change", changed);
    observer.disconnect();
  };
}

// Evenly spaced stops. Those of one hue begin at the paper, which is dark in a dark theme.
const STOPS = {
  blue: {
    light: "f7fbff d6e6f4 abd0e6 6aaed6 3787c0 105ba4 08306b",
    dark: "16191f 12304f 13508a 2577bf 5aa2e0 9accf5 e3f3ff",
  },
  grey: {
    light: "ffffff e9e9e9 c6c6c6 959595 686868 333333 000000",
    dark: "16191f 2c3036 4a4f57 767c85 a2a8b0 d0d4da ffffff",
  },
  cividis: "00224e 1a386f 434e6c 61656f 7d7c78 9b9476 bcae6c dec958 fee838",
  viridis: "440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725",
  magma: "000004 1d1147 51127c 832681 b73779 e75263 fc8961 fec488 fcfdbf",
  signed: {
    light: "2d004b 5f3a91 9990bf cfcfe5 f7f7f6 fed59f ee9b39 bd6109 7f3b08",
    dark: "dcd2ff a794e6 6f5bb0 3c3566 16191f 57390f 9c6318 e0993f ffdba3",
  },
};

/** The colour maps to choose from; signed numbers have their own. */
export const PALETTES = [
  ["blue", "blue"],
  ["grey", "grey"],
  ["cividis", "cividis (blue to yellow)"],
  ["viridis", "viridis (purple to yellow)"],
  ["magma", "magma (black to yellow)"],
];

const STEPS = 256;
const tables = new Map();

/** 256 colours of a map as bytes, three for each. */
export function colourTable(name, theme) {
  const key = `${name} ${theme}`;
  if (!tables.has(key)) {
    const stops = STOPS[name] ?? STOPS.blue;
    tables.set(key, interpolated((typeof stops === "string" ? stops : stops[theme]).split(" ").map(bytes)));
  }
  return tables.get(key);
}

/** The colour at a share from 0 to 1, as [red, green, blue]. */
export function colourAt(table, share) {
  const index = 3 * Math.round(share * (STEPS - 1));
  return [table[index], table[index + 1], table[index + 2]];
}

export function css([red, green, blue]) {
  return `rgb(${red},${green},${blue})`;
}

/** Black or white, whichever is easier to read on a colour: their contrast is always 4.5 or more. */
export function inkOn(colour) {
  // Black and white have the same contrast with a luminance of 0.179.
  return luminance(colour) > 0.179 ? "#000000" : "#ffffff";
}

/** Relative luminance from 0 to 1, as WCAG 2 defines it. */
export function luminance(colour) {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function bytes(hex) {
  return [0, 2, 4].map((index) => Number.parseInt(hex.slice(index, index + 2), 16));
}

function interpolated(stops) {
  const table = new Uint8ClampedArray(3 * STEPS);
  for (let step = 0; step < STEPS; step++) {
    const index = (step / (STEPS - 1)) * (stops.length - 1);
    const below = Math.min(Math.floor(index), stops.length - 2);
    for (let part = 0; part < 3; part++) {
      const low = stops[below][part];
      table[3 * step + part] = low + (index - below) * (stops[below + 1][part] - low);
    }
  }
  return table;
}

/** The weight drawn strongest: 1, or the largest if all are small or some are above 1. */
export function largestWeight(weights, start = 0, end = weights.length) {
  let highest = 0;
  for (let index = start; index < end; index++) highest = Math.max(highest, Math.abs(weights[index]));
  return highest > 1 || (highest > 0 && highest < 0.5) ? highest : 1;
}

/** Whether a map has negative numbers that matter, as the difference of two maps or the content of a memory has. */
export function isSigned(weights) {
  let low = 0;
  let high = 0;
  for (const weight of weights) {
    if (weight < low) low = weight;
    else if (weight > high) high = weight;
  }
  return low < -0.01 * Math.max(high, -low);
}

/** The scale of a table of weights: one for the whole table, or one for each row up to its own largest weight. */
export class Scale {
  constructor(weights, width, perRow = false) {
    this.signed = isSigned(weights);
    this.perRow = perRow;
    this.largest = largestWeight(weights);
    this.#weights = weights;
    this.#width = width;
    if (perRow) this.#tops = new Float32Array(width ? weights.length / width : 0).fill(-1);
  }

  #weights;
  #width;
  #tops;

  /** The weight of a row that is drawn strongest. */
  top(row) {
    if (!this.perRow) return this.largest;
    if (this.#tops[row] < 0) {
      let highest = 0;
      for (let index = row * this.#width; index < (row + 1) * this.#width; index++) {
        highest = Math.max(highest, Math.abs(this.#weights[index]));
      }
      this.#tops[row] = highest || 1;
    }
    return this.#tops[row];
  }

  /** Where a weight stands between 0 and 1 of the colours: 0.5 is zero on a signed scale. */
  share(row, weight) {
    const share = weight / this.top(row);
    return Math.min(1, Math.max(0, this.signed ? (share + 1) / 2 : share));
  }
}

/** A weight with three decimals, as it is shown beside a picture. */
export function formatWeight(weight) {
  return fixed(weight, 3);
}

/** A number with a few decimals and a true minus sign. */
export function fixed(number, decimals) {
  const text = number.toFixed(decimals);
  return /^-0\.?0*$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

/** A number as the trace keeps it: six significant digits, without trailing zeros. */
export function exact(number) {
  return Number(number.toPrecision(6));
}
