// A heat map of hundreds or thousands of positions: a canvas that draws the visible cells while it scrolls, and a
// minimap of the whole.

import { Scale } from "./colours.js";
import { slider } from "./controls.js";
import { bitmap, condensed, FONT, html, measure, shortened, svg } from "./dom.js";
import { MatrixPicture } from "./matrix_drawing.js";
import { Picture } from "./sheet.js";

const MINIMAP_SIDE = 150;
const LABEL_LETTERS = 14;
const SLANT = (55 * Math.PI) / 180;
/** Rows and columns of the window that a file holds. */
const MAX_EXPORTED = 100;

export class LargeMatrix extends Picture {
  #element;
  #theme;
  #cell;
  #left;
  #top;
  #shades;
  #overview;
  #ratio = Math.min(2, devicePixelRatio || 1);
  #canvas = html("canvas");
  #spacer = html("div");
  #scroller = html("div.scroller", this.#canvas, this.#spacer);
  #minimap = html("canvas.minimap", { "aria-hidden": "true" });
  #waiting = false;

  /** `element` has the large map as `selected`; `former` is what it showed before, whose window is kept. */
  constructor(element, former = null) {
    super();
    const { selection, scale, table } = element.selected;
    this.#element = element;
    this.#theme = element.theme;
    this.#cell = former?.cellSize ?? element.options.cell;
    this.selection = selection;
    this.rows = selection.height;
    this.columns = selection.width;
    this.reversed = selection.columns.direction === "rtl";
    const longest = (labels) =>
      Math.max(...labels.slice(0, 2000).map((label) => measure(shortened(label, LABEL_LETTERS), 11)));
    this.#left = Math.ceil(longest(selection.rows.labels)) + 10;
    this.#top = Math.ceil(longest(selection.columns.labels) * Math.sin(SLANT)) + 14;
    this.#shades = bitmap({ ...selection, scale, table, reversed: this.reversed });
    const small = condensed(selection.weights, selection.height, selection.width, MINIMAP_SIDE, MINIMAP_SIDE);
    const smallScale = new Scale(small.weights, small.width, scale.perRow);
    this.#overview = bitmap({ ...small, scale: smallScale, table, reversed: this.reversed });
    this.node = this.#build(former?.scrolled);
  }

  get cellSize() {
    return this.#cell;
  }

  /** Where the window is: [left, top] in pixels. */
  get scrolled() {
    return [this.#scroller.scrollLeft, this.#scroller.scrollTop];
  }

  /** The position under the pointer, or null. */
  at(event) {
    if (!event.composedPath().includes(this.#scroller)) return null;
    const bounds = this.#scroller.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left - this.#left, event.clientY - bounds.top - this.#top];
    const window = this.#window();
    const row = Math.floor(window.row + y / this.#cell);
    const shown = Math.floor(window.column + x / this.#cell);
    if (row >= this.rows || shown >= this.columns || (x < 0 && y < 0)) return null;
    return { row: y < 0 ? -1 : row, column: x < 0 ? null : this.#shown(shown) };
  }

  /** The current position of the element has changed. */
  mark() {
    this.#drawSoon();
  }

  /** Scroll until a position is visible. */
  reveal(position) {
    const { row, column, rows, columns } = this.#window();
    if (position.row >= 0 && (position.row < row || position.row + 1 > row + rows))
      this.#scroller.scrollTop = (position.row - rows / 2) * this.#cell;
    if (position.column === null) return;
    const shown = this.#shown(position.column);
    if (shown < column || shown + 1 > column + columns) this.#scroller.scrollLeft = (shown - columns / 2) * this.#cell;
  }

  /** The visible window as SVG with real text: {width, height, node}. */
  visiblePart() {
    const { row, column, rows, columns } = this.#window();
    const cut = (start, count, length) => [
      Math.round(start),
      Math.min(length, Math.round(start) + Math.min(MAX_EXPORTED, Math.ceil(count))),
    ];
    const [firstRow, lastRow] = cut(row, rows, this.rows);
    let [first, last] = cut(column, columns, this.columns);
    if (this.reversed) [first, last] = [this.columns - last, this.columns - first];
    const { selection } = this;
    const part = { ...selection, height: lastRow - firstRow, width: last - first };
    part.rows = { ...selection.rows, labels: selection.rows.labels.slice(firstRow, lastRow) };
    part.columns = { ...selection.columns, labels: selection.columns.labels.slice(first, last) };
    part.weights = new Float32Array(part.height * part.width);
    for (let t = 0; t < part.height; t++) {
      const start = (firstRow + t) * this.columns + first;
      part.weights.set(selection.weights.subarray(start, start + part.width), t * part.width);
    }
    const { scale, table } = this.#element.selected;
    // The colours of the part are those of the whole.
    const shared = { signed: scale.signed, share: (t, weight) => scale.share(firstRow + t, weight) };
    const picture = new MatrixPicture(part, { width: 900, theme: this.#theme, scale: shared, table });
    return { width: picture.width, height: picture.height, node: svg("g", picture.draw()) };
  }

  #build(scrolled) {
    this.#scroller.addEventListener("scroll", () => this.#drawSoon(), { passive: true });
    for (const type of ["pointerdown", "pointermove"])
      this.#minimap.addEventListener(type, (event) => this.#follow(event));
    new ResizeObserver(() => {
      this.#resize();
      if (scrolled) this.#scroller.scrollTo(...scrolled);
      scrolled = null;
    }).observe(this.#scroller);
    const zoom = slider("Cell size", { min: 1, max: 28, step: 1 }, this.#cell, (size) => this.#zoom(size));
    const note = html("span", `${this.rows} × ${this.columns} weights. Drag in the small map to move.`);
    return html("div.large", this.#scroller, html("div.aside", this.#minimap, zoom, note));
  }

  /** The visible part, in cells; columns are counted from the left. */
  #window() {
    return {
      row: this.#scroller.scrollTop / this.#cell,
      column: this.#scroller.scrollLeft / this.#cell,
      rows: (this.#scroller.clientHeight - this.#top) / this.#cell,
      columns: (this.#scroller.clientWidth - this.#left) / this.#cell,
    };
  }

  /** From a column to its position from the left, and back. */
  #shown(column) {
    return this.reversed ? this.columns - 1 - column : column;
  }

  #zoom(size) {
    const { row, column } = this.#window();
    this.#cell = size;
    this.#resize();
    this.#scroller.scrollTo(column * size, row * size);
  }

  #resize() {
    this.#spacer.style.width = `${this.#left + this.columns * this.#cell}px`;
    this.#spacer.style.height = `${this.#top + this.rows * this.#cell}px`;
    this.#draw();
  }

  #follow(event) {
    if (event.type === "pointermove" && !event.buttons) return;
    const bounds = this.#minimap.getBoundingClientRect();
    const { rows, columns } = this.#window();
    const [down, across] = [(event.clientY - bounds.top) / bounds.height, (event.clientX - bounds.left) / bounds.width];
    this.#scroller.scrollTo(
      (across * this.columns - columns / 2) * this.#cell,
      (down * this.rows - rows / 2) * this.#cell,
    );
  }

  #drawSoon() {
    if (this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => {
      this.#waiting = false;
      this.#draw();
    });
  }

  #draw() {
    const [wide, high] = [this.#scroller.clientWidth, this.#scroller.clientHeight];
    if (!wide || !high) return;
    const pen = this.#pen(this.#canvas, wide, high);
    // The canvas takes no room of its own: the spacer alone decides how far the box scrolls.
    this.#canvas.style.marginBottom = `${-high}px`;
    pen.fillStyle = this.#theme.paper;
    pen.fillRect(0, 0, wide, high);
    const window = this.#window();
    window.rows = Math.min(window.rows, this.rows - window.row);
    window.columns = Math.min(window.columns, this.columns - window.column);
    pen.imageSmoothingEnabled = false;
    const [toWide, toHigh] = [window.columns * this.#cell, window.rows * this.#cell];
    pen.drawImage(
      this.#shades,
      window.column,
      window.row,
      window.columns,
      window.rows,
      this.#left,
      this.#top,
      toWide,
      toHigh,
    );
    this.#drawLabels(pen, window);
    this.#drawMark(pen, window, toWide, toHigh);
    this.#drawMinimap(window);
  }

  /** A drawing context in CSS pixels, for a canvas of this size. */
  #pen(canvas, wide, high) {
    const [width, height] = [Math.round(wide * this.#ratio), Math.round(high * this.#ratio)];
    if (canvas.width !== width || canvas.height !== height) {
      [canvas.width, canvas.height] = [width, height];
      [canvas.style.width, canvas.style.height] = [`${wide}px`, `${high}px`];
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    return pen;
  }

  #drawLabels(pen, { row, column, rows, columns }) {
    const every = Math.max(1, Math.ceil(12 / this.#cell));
    const first = (start) => Math.ceil((start - 0.5) / every) * every;
    pen.fillStyle = this.#theme.ink;
    pen.font = `11px ${FONT}`;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (let t = first(row); t + 0.5 < row + rows; t += every) {
      const y = this.#top + (t - row + 0.5) * this.#cell;
      pen.fillText(shortened(this.selection.rows.labels[t], LABEL_LETTERS), this.#left - 6, y);
    }
    pen.textAlign = "left";
    for (let i = first(column); i + 0.5 < column + columns; i += every) {
      pen.save();
      pen.translate(this.#left + (i - column + 0.5) * this.#cell, this.#top - 6);
      pen.rotate(-SLANT);
      pen.fillText(shortened(this.selection.columns.labels[this.#shown(i)], LABEL_LETTERS), 0, 0);
      pen.restore();
    }
  }

  #drawMark(pen, { row, column }, wide, high) {
    if (!this.#element.current) return;
    const { row: markedRow, column: markedColumn } = this.#element.current;
    pen.save();
    pen.beginPath();
    pen.rect(this.#left - 2, this.#top - 2, wide + 4, high + 4);
    pen.clip();
    pen.strokeStyle = this.#theme.mark;
    pen.lineWidth = 2;
    const thick = Math.max(2, this.#cell);
    if (markedRow >= 0) pen.strokeRect(this.#left, this.#top + (markedRow - row) * this.#cell - 1, wide, thick + 1);
    if (markedColumn !== null) {
      pen.globalAlpha = 0.5;
      pen.strokeRect(this.#left + (this.#shown(markedColumn) - column) * this.#cell - 1, this.#top, thick + 1, high);
    }
    pen.restore();
  }

  #drawMinimap({ row, column, rows, columns }) {
    const unit = MINIMAP_SIDE / Math.max(this.rows, this.columns);
    const [wide, high] = [this.columns, this.rows].map((length) => Math.max(12, Math.round(length * unit)));
    const pen = this.#pen(this.#minimap, wide, high);
    pen.drawImage(this.#overview, 0, 0, wide, high);
    pen.strokeStyle = this.#theme.mark;
    pen.lineWidth = 2;
    const size = [(columns / this.columns) * wide, (rows / this.rows) * high].map((side) => Math.max(4, side));
    pen.strokeRect((column / this.columns) * wide, (row / this.rows) * high, ...size);
  }
}
