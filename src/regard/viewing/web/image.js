// <attention-image>: the words of a caption over the image that they describe.

import { colourTable, fixed, formatWeight } from "./colours.js";
import { mapChoices } from "./controls.js";
import { html, measure, printable, shortened, svg, text, wrapped } from "./dom.js";
import { SelectionElement } from "./matrix.js";
import { legendText, numberList, rowSeries } from "./numbers.js";
import { Picture } from "./sheet.js";
import { rowOf, seriesOf, strongest } from "./trace.js";

const MAX_WIDTH = 560;
const MAX_TILE_WIDTH = 240;

export class AttentionImage extends SelectionElement {
  static label = "Image";
  static defaults = { overlay: "light", cells: false, layout: "word", words: true, scale: "map", palette: "blue" };
  get hint() {
    return "Choose a word to see where it looks; point at the image for the weight of a cell.";
  }

  #base = null;

  static accepts(map, trace) {
    return map.height > 0 && map.width > 0 && Boolean(trace.axis(map.columns).grid);
  }

  /** The word with the sharpest attention, as far as its gate lets it through. */
  initialPosition() {
    const { selection } = this.selected;
    const gates = seriesOf(this.trace, "gate", selection.rows);
    const peaks = peaksOf(selection).map((peak, row) => peak * (gates?.[row] ?? 1));
    return { row: peaks.indexOf(Math.max(...peaks)), column: null };
  }

  picture(width) {
    const { selection } = this.selected;
    const { options, theme } = this;
    const tiles = options.layout === "all";
    const caption = {
      selection,
      grid: selection.columns.axis.grid,
      numbers: this.#probabilities() ?? peaksOf(selection),
      base: this.#image(selection, tiles ? MAX_TILE_WIDTH : MAX_WIDTH),
      gates: seriesOf(this.trace, "gate", selection.rows),
      choices: this.trace.values("choice"),
      boxes: this.trace.boxes.filter((box) => box.axis === selection.rows.axis.name),
    };
    const drawing = { width, theme, overlay: options.overlay, smooth: !options.cells, pinned: () => this.pinned };
    return tiles ? new TilesPicture(caption, drawing) : new WordPicture(caption, drawing);
  }

  controls() {
    const layouts = [
      ["word", "one word"],
      ["all", "all words"],
    ];
    const main = [...mapChoices(this, this.accepts), this.choice("Show", "layout", layouts)];
    const more = [this.choice("Overlay", "overlay", OVERLAYS), this.flag("Cell by cell, as the weights are", "cells")];
    return { main, more };
  }

  detail({ row, column }) {
    const { selection } = this.selected;
    const name = html("b", html("bdi", printable(selection.rows.labels[row])));
    const pairs = strongest(selection, row, 6).map(([cell, weight]) => [cellName(cell, selection), weight]);
    const heading = [name, " looks at", ...rowSeries(this.trace, selection, row)];
    if (column !== null) {
      heading.push(
        html("span.quiet", `; ${cellName(column, selection)} under the pointer: `),
        formatWeight(selection.weights[row * selection.width + column]),
      );
    }
    const gate = this.trace.values("gate")
      ? html("p.quiet", "Blue bar: the gate, how much the image counts for this word.")
      : null;
    return [...numberList(heading, pairs), gate];
  }

  legend(width) {
    const colours =
      this.options.overlay === "light"
        ? "Bright: attended to; dark: not."
        : "The brightest colour is the strongest cell of the word.";
    const number = this.#probabilities() ? "probability under the model" : "largest weight";
    return legendText(`${colours} The number beside a word is its ${number}.`, { width, theme: this.theme });
  }

  /** The probability of each word, where the trace has it. */
  #probabilities() {
    return seriesOf(this.trace, "log_prob", this.selected.selection.rows)?.map((value) => Math.exp(Math.min(0, value)));
  }

  /** The image at the size of the drawing; blank until it is decoded. */
  #image(selection, maxWidth) {
    const image = this.trace.image ? decoded(this.trace.image, () => this.refresh()) : null;
    const [rows, columns] = selection.columns.axis.grid;
    if (!image) return blank(Math.min(maxWidth, 320), Math.round((Math.min(maxWidth, 320) * rows) / columns));
    const scale = Math.min(1.5, maxWidth / image.naturalWidth, maxWidth / image.naturalHeight);
    const size = [image.naturalWidth, image.naturalHeight].map((side) => Math.max(1, Math.round(side * scale)));
    const key = `${size} ${this.trace.image.length}`;
    if (this.#base?.key !== key || this.#base.image !== image)
      this.#base = { key, image, pixels: prepared(image, ...size) };
    return this.#base.pixels;
  }
}

/** Where a cell lies in the image, counted from 1. */
function cellName(cell, { columns }) {
  const across = columns.axis.grid[1];
  return `row ${Math.floor(cell / across) + 1}, column ${(cell % across) + 1}`;
}

function peaksOf(selection) {
  return Array.from({ length: selection.height }, (_, row) => Math.max(0, ...rowOf(selection, row)));
}

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
    const weights = rowOf(selection, row);
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
class WordPicture extends CaptionPicture {
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
    return svg("g", this.#image(plain(this.caption.base)), this.placed.map((item) => this.#chip(item)));
  }

  mark({ row, column }) {
    const cell = column ?? this.caption.choices?.[row] ?? null;
    return svg(
      "g",
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
    const positions = this.caption.selection.rows.members[row];
    return this.caption.boxes
      .filter((box) => positions.includes(box.position))
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
class TilesPicture extends CaptionPicture {
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
    return svg("g", visible.map((row) => this.#tile(row)));
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

/** The overlays to choose from. */
const OVERLAYS = [
  ["light", "light (dims the rest)"],
  ["magma", "magma"],
  ["viridis", "viridis"],
  ["cividis", "cividis"],
];

// As in viewing/image.py, so that a page and a figure are alike: the spread of a cell in a smooth overlay, in cells;
// what is left of the brightness where there is no attention; the brightness to which dark parts that are attended to
// are raised, and their size as a share of the longer side; how much colour covers at most.
const SPREAD = 0.55;
const DIMMED = 0.25;
const MIN_BRIGHTNESS = 0.45;
const PART = 1 / 12;
const COVER = 0.75;
/** How many decoded images are kept, for views of the same image and for the next trace of a page. */
const MAX_IMAGES = 24;
const images = new Map();

/** The decoded image of a data URI, or null while it is being decoded: then `ready` is called later. */
export function decoded(uri, ready) {
  const state = images.get(uri) ?? decoding(uri);
  // The last to be used is the last to be forgotten.
  images.delete(uri);
  images.set(uri, state);
  for (const [old, { waiting }] of images) {
    if (images.size <= MAX_IMAGES) break;
    if (!waiting) images.delete(old);
  }
  state.waiting?.push(ready);
  return state.image;
}

/** An image that is being decoded, and who waits for it; the image of a URI that cannot be decoded stays null. */
function decoding(uri) {
  const image = new Image();
  image.src = uri;
  const state = { image: null, waiting: [] };
  const done = () => {
    const { waiting } = state;
    state.waiting = null;
    for (const ready of waiting) ready();
  };
  image
    .decode()
    .then(
      () => (state.image = image),
      () => {},
    )
    .finally(done);
  return state;
}

/** The pixels of an image at a size, ready for many overlays: {width, height, pixels, brighter}. */
export function prepared(image, width, height) {
  const pixels = drawn(image, width, height);
  return { width, height, pixels, brighter: brightened(pixels) };
}

/** A blank, grey image for traces without one. */
export function blank(width, height) {
  const pixels = new ImageData(width, height);
  pixels.data.fill(205);
  for (let index = 3; index < pixels.data.length; index += 4) pixels.data[index] = 255;
  return { width, height, pixels, brighter: pixels.data };
}

/** How much each pixel is attended to, from 0 to 1 at the strongest cell; smooth, or even within each cell. */
function attentionField(weights, [rows, columns], width, height, smooth) {
  const down = spread(rows, height, smooth);
  const across = spread(columns, width, smooth);
  // Columns first: rows x width numbers, then all pixels.
  const half = new Float32Array(rows * width);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const weight = Math.max(0, weights[row * columns + column]);
      if (weight) for (let x = 0; x < width; x++) half[row * width + x] += weight * across[x * columns + column];
    }
  }
  const field = new Float32Array(width * height);
  let highest = 1e-12;
  for (let y = 0; y < height; y++) {
    for (let row = 0; row < rows; row++) {
      const share = down[y * rows + row];
      if (share > 1e-4) for (let x = 0; x < width; x++) field[y * width + x] += share * half[row * width + x];
    }
    for (let x = 0; x < width; x++) highest = Math.max(highest, field[y * width + x]);
  }
  for (let index = 0; index < field.length; index++) field[index] /= highest;
  return field;
}

/** The image under an attention field, as a data URI. */
export function overlaid({ width, height, pixels, brighter }, field, overlay) {
  const { data } = pixels;
  const out = new ImageData(width, height);
  const table = overlay === "light" ? null : colourTable(overlay, "dark");
  for (let index = 0; index < field.length; index++) {
    const at = 4 * index;
    const share = field[index];
    const grey = (data[at] + data[at + 1] + data[at + 2]) / 3;
    for (let part = 0; part < 3; part++) {
      out.data[at + part] = table
        ? (1 - COVER * share) * 0.75 * grey + COVER * share * table[3 * Math.round(255 * share) + part]
        : share * brighter[at + part] + (1 - share) * DIMMED * (0.7 * grey + 0.3 * data[at + part]);
    }
    out.data[at + 3] = 255;
  }
  return plain({ width, height, pixels: out });
}

/** The image as it is, as a data URI. */
export function plain({ width, height, pixels }) {
  const canvas = html("canvas", { width, height });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas.toDataURL("image/jpeg", 0.92);
}

/** The pixels with their dark parts brightened: by gamma, and what is black by a veil. */
function brightened({ data, width, height }) {
  const lighter = new Float32Array(data.length);
  const greyOf = (parts, scale) =>
    Float32Array.from({ length: width * height }, (_, index) => {
      const at = 4 * index;
      return (parts[at] + parts[at + 1] + parts[at + 2]) / (3 * scale);
    });
  const radius = Math.max(1, PART * Math.max(width, height));
  const darkness = blurred(greyOf(data, 255), width, height, radius);
  for (let at = 0; at < data.length; at++) {
    // A stronger gamma would show little but the noise of a black part.
    const dark = Math.min(MIN_BRIGHTNESS, Math.max(0.05, darkness[at >> 2]));
    lighter[at] = (data[at] / 255) ** (Math.log(MIN_BRIGHTNESS) / Math.log(dark));
  }
  const around = blurred(greyOf(lighter, 1), width, height, radius);
  return Uint8ClampedArray.from(lighter, (light, at) => {
    const veil = darkness[at >> 2] < MIN_BRIGHTNESS ? Math.max(0, MIN_BRIGHTNESS - around[at >> 2]) : 0;
    return 255 * (light * (1 - veil) + veil);
  });
}

/** Numbers blurred by a Gaussian, which three boxes come close to (Gwosdek et al. 2011), as Pillow does it. */
function blurred(values, width, height, radius) {
  const variance = radius ** 2 / 3;
  const whole = Math.floor((Math.sqrt(12 * variance + 1) - 1) / 2);
  const part = ((2 * whole + 1) * (whole * (whole + 1) - 3 * variance)) / (6 * (variance - (whole + 1) ** 2));
  let result = values;
  for (let pass = 0; pass < 3; pass++)
    result = boxBlurred(boxBlurred(result, width, height, whole, part), height, width, whole, part);
  return result;
}

/** The mean of each number and those beside it in its row, transposed; the ends of a row go on outside of it. */
function boxBlurred(values, width, height, whole, part) {
  const out = new Float32Array(values.length);
  for (let y = 0; y < height; y++) {
    const at = (x) => values[y * width + Math.max(0, Math.min(width - 1, x))];
    let sum = 0;
    for (let x = -whole - 1; x < whole; x++) sum += at(x);
    for (let x = 0; x < width; x++) {
      sum += at(x + whole) - at(x - whole - 1);
      out[x * height + y] = (sum + part * (at(x - whole - 1) + at(x + whole + 1))) / (2 * (whole + part) + 1);
    }
  }
  return out;
}

function drawn(image, width, height) {
  const pen = html("canvas", { width, height }).getContext("2d", { willReadFrequently: true });
  pen.imageSmoothingQuality = "high";
  pen.drawImage(image, 0, 0, width, height);
  return pen.getImageData(0, 0, width, height);
}

/** How much of each cell falls on each pixel along one side, pixel by pixel. */
function spread(cells, length, smooth) {
  const shares = new Float32Array(length * cells);
  for (let pixel = 0; pixel < length; pixel++) {
    const position = ((pixel + 0.5) * cells) / length;
    for (let cell = 0; cell < cells; cell++) {
      const distance = position - cell - 0.5;
      shares[pixel * cells + cell] = smooth
        ? Math.exp(-(distance ** 2) / (2 * SPREAD ** 2))
        : Number(Math.floor(position) === cell);
    }
  }
  return shares;
}
