// A caption over its image (Xu et al. 2015): one word at a time, or all words as small images.

import { svg } from "./dom.js";
import { attentionField, overlaid, plain } from "./overlay.js";
import { Picture } from "./picture.js";
import { fixed } from "./scales.js";
import { measure, text, wrapped } from "./text.js";
import { shortened } from "./tokens.js";

/**
 * What both pictures share. `caption` has selection, grid, base (the prepared image), numbers (one to show beside each
 * word), and where they are known gates, choices and boxes.
 */
class CaptionPicture extends Picture {
  constructor(caption, { theme, overlay, smooth }) {
    super();
    Object.assign(this, { caption, theme, overlay, smooth });
    this.rows = caption.selection.height;
  }

  /** The image as a word attends to it, as a data URI. */
  overlaidFor(row) {
    const { base, grid, selection } = this.caption;
    const weights = selection.weights.subarray(row * selection.width, (row + 1) * selection.width);
    return overlaid(base, attentionField(weights, grid, base.width, base.height, this.smooth), this.overlay);
  }

  gateBar(row, { x, y, width }) {
    if (!this.caption.gates) return null;
    const share = Math.max(0, Math.min(1, this.caption.gates[row]));
    const bar = { x, y, height: 4, rx: 2 };
    return [
      svg("rect", { ...bar, width, fill: this.theme.line }),
      svg("rect", { ...bar, width: width * share, fill: this.theme.accent }),
    ];
  }
}

/** The image with the overlay of the current word; beside or below it the words, to choose from. */
export class WordPicture extends CaptionPicture {
  static SIZE = 15;
  static LINE = 46;

  /** `pinned` gives the word that is pinned, to which cells under the pointer belong. */
  constructor(caption, { width, pinned, ...style }) {
    super(caption, style);
    const { base, selection } = caption;
    const beside = width >= 620;
    this.width = width;
    this.pinned = pinned;
    this.imageWidth = Math.min(base.width, beside ? Math.round(width * 0.55) : width);
    this.imageHeight = Math.round((this.imageWidth * base.height) / base.width);
    [this.left, this.top] = beside ? [this.imageWidth + 20, 2] : [0, this.imageHeight + 12];
    this.labels = selection.rows.labels.map((label) => shortened(label, 30));
    this.reversed = selection.rows.direction === "rtl";
    const layout = { size: WordPicture.SIZE, gap: 8, padding: 7, rtl: this.reversed };
    this.placed = wrapped(
      this.labels.map((label) => `${label} 0.00`),
      width - this.left,
      layout,
    );
    const lines = (this.placed.at(-1)?.line ?? 0) + 1;
    this.height = Math.max(this.imageHeight, this.top + lines * WordPicture.LINE + 4);
  }

  draw() {
    return svg(
      "g",
      {},
      this.#image(plain(this.caption.base)),
      this.placed.map((item) => this.#chip(item)),
    );
  }

  mark({ row, column }) {
    const cell = column ?? this.caption.choices?.[row] ?? null;
    return svg(
      "g",
      {},
      this.#image(this.overlaidFor(row)),
      this.#chip(this.placed[row], true),
      this.#goldBoxes(row),
      cell === null ? null : this.#cellFrame(cell),
    );
  }

  at(x, y) {
    const [rows, columns] = this.caption.grid;
    if (x < this.imageWidth && y < this.imageHeight) {
      const word = this.pinned();
      const across = Math.floor((x / this.imageWidth) * columns);
      return word && { row: word.row, column: Math.floor((y / this.imageHeight) * rows) * columns + across };
    }
    const along = x - this.left;
    const isAt = (item) =>
      along >= item.x && along <= item.x + item.width && y >= this.#y(item) && y <= this.#y(item) + 38;
    const found = this.placed.find(isAt);
    return found ? { row: found.index, column: null } : null;
  }

  box({ row }) {
    const item = this.placed[row];
    return { x: this.left + item.x, y: this.#y(item), width: item.width, height: WordPicture.LINE };
  }

  #y(item) {
    return this.top + item.line * WordPicture.LINE;
  }

  #image(href) {
    return svg("image", { href, width: this.imageWidth, height: this.imageHeight, preserveAspectRatio: "none" });
  }

  /** A word with its number, and its gate below. */
  #chip(item, isCurrent = false) {
    const { theme } = this;
    const number = fixed(this.caption.numbers[item.index], 2);
    const [wordX, numberX] = this.reversed ? [item.width - 7, 7] : [7, item.width - 7 - measure(number, 11)];
    const colour = isCurrent ? theme.current : theme.ink;
    const frame = { width: item.width, height: 30, rx: 6, "stroke-width": isCurrent ? 2 : 1 };
    const style = { anchor: this.reversed ? "right" : "left", size: WordPicture.SIZE, fill: colour };
    return svg(
      "g",
      { transform: `translate(${Math.round(this.left + item.x)} ${this.#y(item)})` },
      svg("rect", { ...frame, fill: theme.paper, stroke: isCurrent ? theme.current : theme.line }),
      text(wordX, 15, this.labels[item.index], { ...style, weight: isCurrent ? "700" : undefined }),
      text(numberX, 16, number, { size: 11, fill: theme.quiet }),
      this.gateBar(item.index, { x: 4, y: 33, width: item.width - 8 }),
    );
  }

  #goldBoxes(row) {
    const places = this.caption.selection.rows.members[row];
    return this.caption.boxes
      .filter((box) => places.includes(box.position))
      .map((box) => {
        const [x, y] = [box.left * this.imageWidth, box.top * this.imageHeight];
        const size = {
          width: (box.right - box.left) * this.imageWidth,
          height: (box.bottom - box.top) * this.imageHeight,
        };
        return framed({ x, y, ...size }, "#ffffff", "#0072b2");
      });
  }

  #cellFrame(cell) {
    const [rows, columns] = this.caption.grid;
    const [width, height] = [this.imageWidth / columns, this.imageHeight / rows];
    const [x, y] = [(cell % columns) * width, Math.floor(cell / columns) * height];
    return framed({ x, y, width, height }, "#000000", "#ffffff");
  }
}

/** A tile for each word: the image as this word attends to it, the word, and its number. */
export class TilesPicture extends CaptionPicture {
  static TILE = 150;
  static GAP = 8;

  constructor(caption, { width, ...style }) {
    super(caption, style);
    const { TILE, GAP } = TilesPicture;
    const { base } = caption;
    this.perLine = Math.max(2, Math.min(this.rows, Math.floor(width / TILE)));
    this.tile = Math.floor(width / this.perLine) - GAP;
    this.imageHeight = Math.round((this.tile * base.height) / base.width);
    this.pitch = this.imageHeight + (caption.gates ? 44 : 34);
    this.width = this.perLine * (this.tile + GAP) - GAP;
    this.height = Math.ceil(this.rows / this.perLine) * this.pitch;
  }

  draw(top, bottom) {
    const rows = Array.from({ length: this.rows }, (_, row) => row);
    const visible = rows.filter((row) => this.#y(row) < bottom && this.#y(row) + this.pitch > top);
    return svg(
      "g",
      {},
      visible.map((row) => this.#tile(row)),
    );
  }

  mark({ row }) {
    const frame = { x: this.#x(row) + 1, y: this.#y(row) + 1, width: this.tile - 2, height: this.imageHeight - 2 };
    return svg("rect", { ...frame, fill: "none", stroke: this.theme.mark, "stroke-width": 3 });
  }

  at(x, y) {
    const column = Math.floor(x / (this.tile + TilesPicture.GAP));
    const row = Math.floor(y / this.pitch) * this.perLine + column;
    return x >= 0 && y >= 0 && column < this.perLine && row < this.rows ? { row, column: null } : null;
  }

  box({ row }) {
    return { x: this.#x(row), y: this.#y(row), width: this.tile, height: this.pitch };
  }

  #x(row) {
    return (row % this.perLine) * (this.tile + TilesPicture.GAP);
  }

  #y(row) {
    return Math.floor(row / this.perLine) * this.pitch;
  }

  #tile(row) {
    const size = { width: this.tile, height: this.imageHeight, preserveAspectRatio: "none" };
    const label = shortened(this.caption.selection.rows.labels[row], Math.max(6, Math.floor(this.tile / 11)));
    const number = { anchor: "right", size: 11, fill: this.theme.quiet };
    return svg(
      "g",
      { transform: `translate(${this.#x(row)} ${this.#y(row)})` },
      svg("image", { ...size, href: this.overlaidFor(row) }),
      text(2, this.imageHeight + 13, label, { fill: this.theme.ink, weight: "600" }),
      text(this.tile - 2, this.imageHeight + 13, fixed(this.caption.numbers[row], 2), number),
      this.gateBar(row, { x: 0, y: this.imageHeight + 25, width: this.tile }),
    );
  }
}

/** A frame that can be seen on every background. */
function framed(box, outer, inner) {
  return [
    svg("rect", { ...box, fill: "none", stroke: outer, "stroke-width": 4 }),
    svg("rect", { ...box, fill: "none", stroke: inner, "stroke-width": 2 }),
  ];
}
