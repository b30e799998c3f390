// <attention-heads>: every layer and head of a model side by side.

import { colourTable, exact, fixed, isSigned, largestWeight, Scale } from "./colours.js";
import { choice, tableOptions } from "./controls.js";
import { bitmap, html, measure, svg, text } from "./dom.js";
import { AttentionElement } from "./element.js";
import { MatrixPicture } from "./matrix_drawing.js";
import { legendBar } from "./numbers.js";
import { Picture } from "./sheet.js";
import { families, rowOf, select, selectionTrace } from "./trace.js";

export class AttentionHeads extends AttentionElement {
  static label = "Heads";
  #cached = null;

  get hint() {
    return (
      "Each small map is a head, each row of them a layer. " +
      "Point at one to enlarge it, click to keep it, step with the arrow keys."
    );
  }

  static suits(trace) {
    return comparable(trace).length > 0;
  }

  initialPosition() {
    return { row: 0, column: 0 };
  }

  /** The maps that are compared: those of the label that the options give, or with the same name, or the first. */
  get family() {
    const all = comparable(this.trace);
    const asked = this.options.map;
    return all.find((each) => each.label === asked) ?? all.find((each) => each.name === asked) ?? all[0];
  }

  /** A list of layers, each a list of heads, {map, selection} or null where a layer has no such head. */
  get heads() {
    const { family, trace } = this;
    const { words, hideSpecial } = this.options;
    const key = JSON.stringify([family.label, words, hideSpecial]);
    if (this.#cached?.key !== key || this.#cached.trace !== trace) {
      const numbers = (all) => (all.length ? all : [undefined]);
      const headOf = (layer, head) => {
        const map = family.maps.find((each) => each.layer === layer && each.head === head);
        return map ? { map, selection: select(trace, { words, hideSpecial }, (each) => each === map) } : null;
      };
      const heads = numbers(family.layers).map((layer) => numbers(family.heads).map((head) => headOf(layer, head)));
      this.#cached = { key, trace, heads };
    }
    return this.#cached.heads;
  }

  /** The options that select the head at a position, for other elements. */
  optionsOf({ row, column }) {
    const head = this.#headAt({ row, column });
    return head ? { map: this.family.label, layer: head.map.layer, head: head.map.head, name: undefined } : {};
  }

  picture(width) {
    const { family, theme } = this;
    const { perRow, largest } = this.#scale();
    const names = (numbers, what) => (numbers.length ? numbers.map((number) => `${what} ${number}`) : [what]);
    const [layerNames, headNames] = [names(family.layers, "layer"), names(family.heads, "head")];
    return new HeadsPicture(this.heads, { width, theme, perRow, largest, table: this.#table(), layerNames, headNames });
  }

  controls() {
    const all = comparable(this.trace);
    const names = all.map((family) => [family.label, family.name]);
    const pick = (map) => this.setOptions({ map });
    const main = all.length > 1 ? [choice("Map", names, this.family.label, pick)] : [];
    return { main, more: tableOptions(this) };
  }

  detail(position) {
    const head = this.#headAt(position);
    if (!head) return [];
    const { peak, entropy } = sharpness(head.selection);
    const number = (value, decimals) => html("data", { value: String(exact(value)) }, fixed(value, decimals));
    const { width } = head.selection;
    const most = fixed(Math.log2(width), 2);
    const note = `A row that looks at one input has 0 bits; one that looks at all ${width} alike has ${most}.`;
    return [
      html(
        "p",
        html("b", head.map.name),
        ": on average, the largest weight of a row is ",
        number(peak, 3),
        " and its entropy ",
        number(entropy, 2),
        " bits",
      ),
      html("p.quiet", note),
    ];
  }

  table() {
    const heads = this.heads.flat().filter(Boolean);
    const rows = heads.map(({ map, selection }) => {
      const { peak, entropy } = sharpness(selection);
      return [map.name, map.layer ?? "", map.head ?? "", exact(peak), exact(entropy)];
    });
    const columns = ["map", "layer", "head", "mean of the largest weight", "mean entropy in bits"];
    return { caption: `${this.family.name}: how sharp each head is`, columns, rows };
  }

  legend(width) {
    return legendBar({ scale: this.#scale(), table: this.#table(), theme: this.theme, width });
  }

  /** The current head, or, where there is none, all heads. */
  exported() {
    const head = this.current && this.#headAt(this.current);
    if (head) return selectionTrace(this.trace, { ...head.selection, name: head.map.name });
    const names = this.family.maps.map((map) => map.name);
    return { ...this.trace.json, maps: this.trace.json.maps.filter((map) => names.includes(map.name)) };
  }

  #headAt({ row, column }) {
    return this.heads[row]?.[column ?? 0] ?? null;
  }

  /** One scale for all heads, so that they can be compared. */
  #scale() {
    const all = this.heads
      .flat()
      .filter(Boolean)
      .map(({ selection }) => selection.weights);
    const largest = Math.max(...all.map((weights) => largestWeight(weights)));
    return { perRow: this.options.scale === "row", signed: all.some((weights) => isSigned(weights)), largest };
  }

  #table() {
    return colourTable(this.#scale().signed ? "signed" : this.options.palette, this.theme.name);
  }
}

function comparable(trace) {
  const drawable = families(trace, (map) => map.height > 0 && map.width > 0);
  return drawable.filter((family) => family.numbered && family.maps.length > 1);
}

/** Means over the rows: of the largest weight, and of the entropy of the weights as a distribution. */
function sharpness({ weights, height, width }) {
  let peak = 0;
  let entropy = 0;
  for (let row = 0; row < height; row++) {
    const own = rowOf({ weights, width }, row);
    const total = own.reduce((sum, weight) => sum + Math.abs(weight), 0) || 1;
    peak += own.reduce((highest, weight) => Math.max(highest, weight), 0);
    for (const weight of own) if (weight) entropy -= (Math.abs(weight) / total) * Math.log2(Math.abs(weight) / total);
  }
  return { peak: peak / Math.max(1, height), entropy: entropy / Math.max(1, height) };
}

const GAP = 6;
const TOP = 24;
const LEFT = 64;
const TITLE = 28;
const MIN_SIDE = 26;
const MAX_SIDE = 96;

/** `heads` is a list of layers, each a list of {map, selection} or null; `largest` is the end of their common scale. */
class HeadsPicture extends Picture {
  constructor(heads, { width, theme, table, perRow, largest, layerNames, headNames }) {
    super();
    Object.assign(this, { heads, theme, table, perRow, largest, layerNames, headNames, available: width });
    this.rows = heads.length;
    this.columns = headNames.length;
    this.side = Math.max(MIN_SIDE, Math.min(MAX_SIDE, Math.floor((width - LEFT) / this.columns) - GAP));
    this.gridHeight = TOP + this.rows * (this.side + GAP);
    this.thumbnails = new Map();
    // All maps have the same axes, and so the same size when they are enlarged.
    const enlarged = this.#enlarged(heads.flat().find(Boolean));
    this.width = Math.max(this.#x(this.columns), enlarged.width);
    this.height = this.gridHeight + TITLE + enlarged.height;
  }

  draw() {
    const style = { size: 11, fill: this.theme.quiet };
    const isShort = this.headNames.some((name) => measure(name, 11) > this.side);
    const group = svg("g", isShort ? text(LEFT - 8, 12, "head", { ...style, anchor: "right" }) : null);
    this.headNames.forEach((name, column) => {
      const label = isShort ? name.split(" ").at(-1) : name;
      group.append(text(this.#x(column) + this.side / 2, 12, label, { ...style, anchor: "middle" }));
    });
    this.heads.forEach((heads, row) => {
      const y = this.#y(row) + this.side / 2;
      group.append(text(LEFT - 8, y, this.layerNames[row], { ...style, anchor: "right" }));
      heads.forEach((head, column) => head && group.append(...this.#small(head, row, column)));
    });
    return group;
  }

  mark({ row, column }) {
    const head = this.heads[row]?.[column ?? 0];
    if (!head) return null;
    const size = { x: this.#x(column ?? 0) - 2, y: this.#y(row) - 2, width: this.side + 4, height: this.side + 4 };
    const frame = svg("rect", { ...size, fill: "none", stroke: this.theme.mark, "stroke-width": 3 });
    const title = text(0, this.gridHeight + 14, head.map.name, { weight: "600", fill: this.theme.ink });
    const below = { transform: `translate(0 ${this.gridHeight + TITLE})` };
    return svg("g", frame, title, svg("g", below, this.#enlarged(head).draw()));
  }

  at(x, y) {
    const row = Math.floor((y - TOP) / (this.side + GAP));
    const column = Math.floor((x - LEFT) / (this.side + GAP));
    return row >= 0 && column >= 0 && this.heads[row]?.[column] ? { row, column } : null;
  }

  box({ row, column }) {
    return { x: this.#x(column ?? 0), y: this.#y(row), width: this.side, height: this.side };
  }

  settled(position) {
    return { row: position.row, column: position.column ?? 0 };
  }

  #x(column) {
    return LEFT + column * (this.side + GAP);
  }

  #y(row) {
    return TOP + row * (this.side + GAP);
  }

  /** One scale of colours for all heads, so that they can be compared, or one for each row of each map. */
  #scale({ weights, width }) {
    const scale = new Scale(weights, width, this.perRow);
    scale.largest = this.largest;
    return scale;
  }

  #small(head, row, column) {
    if (!this.thumbnails.has(head)) {
      const { selection } = head;
      const reversed = selection.columns.direction === "rtl";
      const image = bitmap({ ...selection, scale: this.#scale(selection), table: this.table, reversed });
      this.thumbnails.set(head, image.toDataURL());
    }
    const size = { x: this.#x(column), y: this.#y(row), width: this.side, height: this.side };
    const style = { preserveAspectRatio: "none", "image-rendering": "pixelated" };
    const image = svg("image", { ...size, ...style, href: this.thumbnails.get(head) });
    return [image, svg("rect", { ...size, fill: "none", stroke: this.theme.line })];
  }

  #enlarged({ selection }) {
    const { available: width, theme, table } = this;
    return new MatrixPicture(selection, { width, theme, scale: this.#scale(selection), table, maxCell: 44 });
  }
}
