// A heat map (Bahdanau et al. 2015, figure 3): outputs down the side, inputs along the top, a cell for each weight.

import { colourAt, fixed, inkOn } from "./colours.js";
import { cells, measure, shortened, svg, text } from "./dom.js";
import { Picture } from "./sheet.js";

const MAX_LETTERS = 24;
/** Cells up to which each shows its number. */
const MAX_NUMBERS = 400;
const MIN_NUMBERED_CELL = 32;
const SMALLEST_NUMBER = 0.005;
const SLANT = 55;

/** The heat map of a selection. It fits into a width where its cells stay large enough; otherwise it is wider. */
export class MatrixPicture extends Picture {
  constructor(selection, { width, theme, scale, table, maxCell = 52, links = [] }) {
    super();
    Object.assign(this, { selection, theme, scale, table, links });
    this.rows = selection.height;
    this.columns = selection.width;
    this.reversed = selection.columns.direction === "rtl";
    this.rowLabels = selection.rows.labels.map((label) => shortened(label, MAX_LETTERS));
    this.columnLabels = selection.columns.labels.map((label) => shortened(label, MAX_LETTERS));
    this.#layOut(width, maxCell);
  }

  draw() {
    const { left, top, cellWidth, cellHeight, scale, table, reversed, selection } = this;
    const drawn = cells({ ...selection, scale, table, x: left, y: top, cellWidth, cellHeight, reversed });
    return svg("g", this.#drawLabels(), drawn, this.#drawNumbers(), this.#drawLinks());
  }

  mark({ row, column }) {
    const { left, top, cellWidth, cellHeight, theme } = this;
    const [wide, high] = [this.columns * cellWidth + 1, this.rows * cellHeight + 1];
    const group = svg("g", { fill: "none", stroke: theme.mark, "stroke-width": 2 });
    const y = top + row * cellHeight - 1;
    if (row >= 0) group.append(svg("rect", { x: left - 1, y, width: wide, height: cellHeight + 1 }));
    if (column === null || column >= this.columns) return group;
    const x = this.#x(column) - 1;
    group.append(svg("rect", { x, y: top - 1, width: cellWidth + 1, height: high, opacity: 0.45 }));
    if (row >= 0) group.append(svg("rect", { x, y, width: cellWidth + 1, height: cellHeight + 1 }));
    return group;
  }

  at(x, y) {
    const row = Math.floor((y - this.top) / this.cellHeight);
    const shown = Math.floor((x - this.left) / this.cellWidth);
    if (row >= this.rows || shown >= this.columns || (row < 0 && shown < 0)) return null;
    // Above the cells are the labels of the columns, beside them those of the rows.
    return { row: Math.max(-1, row), column: shown < 0 ? null : this.#shown(shown) };
  }

  box({ row, column }) {
    const [x, y] = [column === null ? 0 : this.#x(column), row < 0 ? 0 : this.top + row * this.cellHeight];
    return { x, y, width: this.cellWidth, height: this.cellHeight };
  }

  #layOut(width, maxCell) {
    // Many positions, or a phone: small cells and labels rather than much scrolling.
    const small = Math.max(this.rows, this.columns) > 45 || width < 24 * this.columns;
    this.labelSize = small ? 11 : 13;
    const lengthOf = (label) => measure(label, this.labelSize);
    this.left = Math.max(20, ...this.rowLabels.map(lengthOf)) + 10;
    const widest = Math.max(20, ...this.columnLabels.map(lengthOf));
    const angle = (SLANT * Math.PI) / 180;
    const fitting = (beyond) => Math.floor((width - this.left - beyond) / Math.max(1, this.columns));
    this.cellWidth = Math.min(maxCell, fitting(2));
    this.slanted = widest + 6 > this.cellWidth;
    // A slanted label reaches beyond its column.
    const last = this.reversed ? this.columnLabels[0] : this.columnLabels.at(-1);
    const beyond = this.slanted ? lengthOf(last ?? "") * Math.cos(angle) + 8 : 2;
    if (this.slanted) this.cellWidth = Math.min(maxCell, Math.max(small ? 13 : 18, fitting(beyond)));
    this.cellHeight = Math.max(small ? 13 : 22, Math.min(28, this.cellWidth));
    this.top = this.slanted ? widest * Math.sin(angle) + 16 : 26;
    this.width = Math.ceil(this.left + this.columns * this.cellWidth + beyond);
    this.height = Math.ceil(this.top + this.rows * this.cellHeight + 2);
  }

  /** From a column to its position from the left, and back. */
  #shown(column) {
    return this.reversed ? this.columns - 1 - column : column;
  }

  #x(column) {
    return this.left + this.#shown(column) * this.cellWidth;
  }

  #drawLabels() {
    const style = { size: this.labelSize, fill: this.theme.ink };
    const rows = this.rowLabels.map((label, row) =>
      text(this.left - 6, this.top + (row + 0.5) * this.cellHeight, label, { ...style, anchor: "right" }),
    );
    const columns = this.columnLabels.map((label, column) => {
      const x = this.#x(column) + this.cellWidth / 2;
      return this.slanted
        ? text(x, this.top - 8, label, { ...style, rotate: -SLANT })
        : text(x, this.top - 12, label, { ...style, anchor: "middle" });
    });
    return [rows, columns];
  }

  #drawNumbers() {
    if (this.rows * this.columns > MAX_NUMBERS || this.cellWidth < MIN_NUMBERED_CELL) return [];
    const numbers = [];
    this.selection.weights.forEach((weight, index) => {
      if (Math.abs(weight) < SMALLEST_NUMBER) return;
      const [row, column] = [Math.floor(index / this.columns), index % this.columns];
      const fill = inkOn(colourAt(this.table, this.scale.share(row, weight)));
      const [x, y] = [this.#x(column) + this.cellWidth / 2, this.top + (row + 0.5) * this.cellHeight];
      numbers.push(text(x, y, fixed(weight, 2), { anchor: "middle", size: 11, fill }));
    });
    return numbers;
  }

  /** Outlines of the cells that should be dark: solid for sure links, dashed for possible ones. */
  #drawLinks() {
    return this.links.map(({ row, column, sure }) =>
      svg("rect", {
        class: sure ? "sure" : "possible",
        x: this.#x(column) + 1.5,
        y: this.top + row * this.cellHeight + 1.5,
        width: this.cellWidth - 3,
        height: this.cellHeight - 3,
        fill: "none",
        stroke: this.theme.current,
        "stroke-width": 2,
        "stroke-dasharray": sure ? undefined : "3 3",
      }),
    );
  }
}
