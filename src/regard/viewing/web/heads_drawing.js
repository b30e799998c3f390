// All heads of a model as small maps, a row for each layer, and the current one enlarged below them.

import { bitmap } from "./cells.js";
import { svg } from "./dom.js";
import { MatrixPicture } from "./matrix_drawing.js";
import { Picture } from "./picture.js";
import { Scale } from "./scales.js";
import { measure, text } from "./text.js";

const GAP = 6;
const TOP = 24;
const LEFT = 64;
const TITLE = 28;
const MIN_SIDE = 26;
const MAX_SIDE = 96;

/** `heads` is a list of layers, each a list of {map, selection} or null; `largest` is the end of their common scale. */
export class HeadsPicture extends Picture {
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
    const group = svg("g", {}, isShort ? text(LEFT - 8, 12, "head", { ...style, anchor: "right" }) : null);
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
    return svg("g", {}, frame, title, svg("g", below, this.#enlarged(head).draw()));
  }

  at(x, y) {
    const row = Math.floor((y - TOP) / (this.side + GAP));
    const column = Math.floor((x - LEFT) / (this.side + GAP));
    return row >= 0 && column >= 0 && this.heads[row]?.[column] ? { row, column } : null;
  }

  box({ row, column }) {
    return { x: this.#x(column ?? 0), y: this.#y(row), width: this.side, height: this.side };
  }

  settled(place) {
    return { row: place.row, column: place.column ?? 0 };
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
