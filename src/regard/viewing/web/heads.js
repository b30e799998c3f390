// <attention-heads>: every layer and head of a model side by side.

import { colourTable } from "./colours.js";
import { choice, tableOptions } from "./controls.js";
import { html } from "./dom.js";
import { AttentionElement } from "./element.js";
import { headsPicture } from "./heads_drawing.js";
import { legendBar } from "./numbers.js";
import { exact, fixed } from "./scales.js";
import { families, select, selectionTrace } from "./selection.js";

export class AttentionHeads extends AttentionElement {
  static label = "Heads";
  get hint() {
    return "Each small map is a head: a row for each layer. Point at one to enlarge it, click to keep it, step with the arrow keys.";
  }

  static suits(trace) {
    return comparable(trace).length > 0;
  }

  initialPlace() {
    return { row: 0, column: 0 };
  }

  get family() {
    const all = comparable(this.trace);
    return all[this.options.family] ?? all[0];
  }

  /** A list of layers, each a list of heads, {map, selection} or null where a layer has no such head. */
  get heads() {
    const { family, options, trace } = this;
    const numbers = (all) => (all.length ? all : [undefined]);
    const own = { words: options.words, hideSpecial: options.hideSpecial };
    return numbers(family.layers).map((layer) =>
      numbers(family.heads).map((head) => {
        const map = family.maps.find((each) => each.layer === layer && each.head === head);
        return map ? { map, selection: select(trace, own, (each) => each === map) } : null;
      }),
    );
  }

  picture(width) {
    const { family, options, theme } = this;
    const names = (numbers, what) => (numbers.length ? numbers.map((number) => `${what} ${number}`) : [what]);
    return headsPicture(this.heads, {
      width,
      theme,
      perRow: options.scale === "row",
      table: this.#table(),
      layerNames: names(family.layers, "layer"),
      headNames: names(family.heads, "head"),
    });
  }

  controls() {
    const all = comparable(this.trace);
    const names = all.map((family, place) => [place, family.name]);
    const pick = (family) => this.setOptions({ family });
    const main = all.length > 1 ? [choice("Map", names, all.indexOf(this.family), pick)] : [];
    return { main, more: tableOptions(this) };
  }

  detail({ row, column }) {
    const cell = this.heads[row]?.[column ?? 0];
    if (!cell) return [];
    const { peak, entropy } = sharpness(cell.selection);
    return [
      html(
        "p",
        {},
        html("b", {}, cell.map.name),
        ": largest weight of a row ",
        html("data", { value: String(exact(peak)) }, fixed(peak, 3)),
        " on average, entropy ",
        html("data", { value: String(exact(entropy)) }, fixed(entropy, 2)),
        " bits",
      ),
      html(
        "p",
        { className: "quiet" },
        `A row that looks at one input has 0 bits, one that looks at all ${cell.selection.width} alike has ${fixed(Math.log2(cell.selection.width), 2)}.`,
      ),
    ];
  }

  table() {
    const rows = this.heads
      .flat()
      .filter(Boolean)
      .map(({ map, selection }) => {
        const { peak, entropy } = sharpness(selection);
        return [map.name, map.layer ?? "", map.head ?? "", exact(peak), exact(entropy)];
      });
    const columns = ["map", "layer", "head", "mean of the largest weight", "mean entropy in bits"];
    return { caption: `${this.family.name}: how sharp each head is`, columns, rows };
  }

  legend(width) {
    const { perRow, largest } = { perRow: this.options.scale === "row", largest: this.#largest() };
    return legendBar({ scale: { perRow, largest, signed: false }, table: this.#table(), theme: this.theme, width });
  }

  /** The current head, or all heads of the family. */
  exported() {
    const cell = this.current && this.heads[this.current.row]?.[this.current.column ?? 0];
    if (cell) return selectionTrace(this.trace, { ...cell.selection, name: cell.map.name });
    return {
      ...this.trace.json,
      maps: this.trace.json.maps.filter((map) => this.family.maps.some((each) => each.name === map.name)),
    };
  }

  #table() {
    return colourTable(this.options.palette, this.theme.name);
  }

  #largest() {
    let largest = 0;
    for (const map of this.family.maps) for (const weight of map.weights) largest = Math.max(largest, weight);
    return largest > 1 || largest < 0.5 ? largest : 1;
  }
}

function comparable(trace) {
  return families(trace, (map) => map.height > 0 && map.width > 0).filter(
    (family) => family.numbered && family.maps.length > 1,
  );
}

/** Means over the rows: of the largest weight, and of the entropy of the weights as a distribution. */
function sharpness({ weights, height, width }) {
  let peak = 0;
  let entropy = 0;
  for (let row = 0; row < height; row++) {
    const own = weights.subarray(row * width, (row + 1) * width);
    const total = own.reduce((sum, weight) => sum + Math.abs(weight), 0) || 1;
    peak += own.reduce((highest, weight) => Math.max(highest, weight), 0);
    for (const weight of own) if (weight) entropy -= (Math.abs(weight) / total) * Math.log2(Math.abs(weight) / total);
  }
  return { peak: peak / Math.max(1, height), entropy: entropy / Math.max(1, height) };
}
