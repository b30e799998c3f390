// <attention-image>: the words of a caption over the image that they describe.

import { choice, flag, mapChoices } from "./controls.js";
import { html } from "./dom.js";
import { TilesPicture, WordPicture } from "./image_drawing.js";
import { SelectionElement } from "./matrix.js";
import { legendText, numberList, rowSeries } from "./numbers.js";
import { blank, decoded, OVERLAYS, prepared } from "./overlay.js";
import { seriesOf, strongest } from "./selection.js";
import { formatWeight } from "./scales.js";
import { printable } from "./tokens.js";

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
  initialPlace() {
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
    const set = (name) => (value) => this.setOptions({ [name]: value });
    const layouts = [
      ["word", "one word"],
      ["all", "all words"],
    ];
    const main = [...mapChoices(this, this.accepts), choice("Show", layouts, this.options.layout, set("layout"))];
    const more = [
      choice("Overlay", OVERLAYS, this.options.overlay, set("overlay")),
      flag("Cell by cell, as the weights are", this.options.cells, set("cells")),
    ];
    return { main, more };
  }

  detail({ row, column }) {
    const { selection } = this.selected;
    const name = html("b", {}, html("bdi", {}, printable(selection.rows.labels[row])));
    const pairs = strongest(selection, row, 6).map(([cell, weight]) => [placeOf(cell, selection), weight]);
    const heading = [name, " looks at", ...rowSeries(this.trace, selection, row)];
    if (column !== null) {
      heading.push(
        html("span", { className: "quiet" }, `; ${placeOf(column, selection)} under the pointer: `),
        formatWeight(selection.weights[row * selection.width + column]),
      );
    }
    const gate = this.trace.values("gate")
      ? html("p", { className: "quiet" }, "Blue bar: the gate, how much the image counts for this word.")
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
function placeOf(cell, { columns }) {
  const across = columns.axis.grid[1];
  return `row ${Math.floor(cell / across) + 1}, column ${(cell % across) + 1}`;
}

function peaksOf({ weights, height, width }) {
  return Array.from({ length: height }, (_, row) =>
    weights.subarray(row * width, (row + 1) * width).reduce((top, weight) => Math.max(top, weight), 0),
  );
}
