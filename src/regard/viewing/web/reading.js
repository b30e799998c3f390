// <attention-reading>: a sentence word by word, with what each word attends to among the others.

import { colourAt, css, fixed, inkOn } from "./colours.js";
import { mapChoices, tableOptions } from "./controls.js";
import { measure, shortened, svg, text, wrapped } from "./dom.js";
import { AttentionElement } from "./element.js";
import { SelectionElement } from "./matrix.js";
import { legendBar } from "./numbers.js";
import { Picture } from "./sheet.js";
import { seriesOf } from "./trace.js";

export class AttentionReading extends SelectionElement {
  static label = "Reading";
  static defaults = { ...AttentionElement.defaults, layout: "word" };
  get hint() {
    return (
      "Point at a word, or step with the arrow keys: words that it attends to are shaded. " +
      "Bars show how surprising each word was."
    );
  }

  static suits(trace) {
    return super.suits(trace) || Boolean(trace.values("surprisal"));
  }

  /** A reader without attention has a trace without maps: its words are shown with their surprisal alone. */
  get trace() {
    return super.trace;
  }

  set trace(value) {
    super.trace = value;
    const { trace } = this;
    const axis = trace?.series.find((each) => each.name === "surprisal")?.axis;
    if (!trace || trace.maps.some((map) => map.rows === map.columns) || !axis) return;
    const count = trace.axis(axis).labels.length;
    const weights = Array.from({ length: count }, () => new Array(count).fill(0));
    super.trace = {
      ...trace.json,
      maps: [...(trace.json.maps ?? []), { name: "no attention", rows: axis, columns: axis, weights }],
    };
  }

  static accepts(map) {
    return map.height > 0 && map.rows === map.columns;
  }

  /** The word with the sharpest attention, not counting rows that have little choice. */
  initialPosition() {
    const { selection } = this.selected;
    let best = { row: selection.height - 1, weight: 0 };
    for (let row = 3; row < selection.height; row++) {
      for (let column = 0; column < selection.width; column++) {
        const weight = selection.weights[row * selection.width + column];
        if (column !== row && weight > best.weight) best = { row, weight };
      }
    }
    return { row: best.row, column: null };
  }

  picture(width) {
    const { selection, scale, table } = this.selected;
    const surprisal = seriesOf(this.trace, "surprisal", selection.rows);
    const drawing = { width, theme: this.theme, scale, table, surprisal };
    if (this.options.layout === "word") return new ScrubPicture(selection, drawing);
    return new ReadingLinesPicture(selection, { ...drawing, seesAll: seesAll(selection) });
  }

  legend(width) {
    const { scale, table } = this.selected;
    const bars = this.options.layout === "word" && this.trace.values("surprisal");
    const name = bars ? "weight; bar below a word: how surprising it was" : "weight";
    return legendBar({ scale, table, theme: this.theme, width, name });
  }

  controls() {
    const layouts = [
      ["word", "word by word"],
      ["lines", "a line for each word"],
    ];
    const layout = this.choice("Layout", "layout", layouts);
    return { main: [...mapChoices(this, this.accepts), layout], more: tableOptions(this) };
  }
}

function seesAll({ weights, height, width }) {
  for (let row = 0; row < height; row++)
    for (let column = row + 1; column < width; column++) if (weights[row * width + column]) return true;
  return false;
}

/** Weights below this share of the largest are not shaded. */
const MIN_SHARE = 0.04;

/** One text through which the current word moves: arcs lead to what it attends to, bars below show the surprisal. */
class ScrubPicture extends Picture {
  static SIZE = 16;
  static LINE = 70;
  /** The middle of the first line: above it is room for the arcs. */
  static TOP = 50;

  constructor(selection, { width, theme, scale, table, surprisal }) {
    super();
    Object.assign(this, { selection, theme, scale, table, surprisal, width });
    const { SIZE, LINE, TOP } = ScrubPicture;
    this.words = selection.rows.labels.map((word) => shortened(word, 40));
    this.reversed = selection.rows.direction === "rtl";
    this.placed = wrapped(this.words, width, { size: SIZE, gap: 5, padding: 5, rtl: this.reversed });
    this.mostSurprising = Math.max(1e-9, ...(surprisal ?? []));
    this.rows = this.words.length;
    this.height = ((this.placed.at(-1)?.line ?? 0) + 1) * LINE + TOP - 26;
  }

  draw(top, bottom) {
    const { LINE } = ScrubPicture;
    const visible = this.placed.filter((item) => this.#y(item) > top - LINE && this.#y(item) < bottom + LINE);
    return svg("g", visible.map((item) => [this.#word(item, { fill: this.theme.ink }), this.#bar(item)]));
  }

  mark({ row }) {
    const here = this.placed[row];
    const { theme } = this;
    const frame = { x: here.x, y: this.#y(here) - 12, width: here.width, height: 24, rx: 4 };
    const bits = this.surprisal && `${fixed(this.surprisal[row], 1)} bits`;
    return svg(
      "g",
      this.#attended(row).map((link) => this.#drawAttended(link, here)),
      svg("rect", { ...frame, fill: theme.paper, stroke: theme.current }),
      this.#word(here, { fill: theme.current, weight: "700" }),
      bits && text(middle(here), this.#y(here) + 38, bits, { anchor: "middle", size: 10, fill: theme.quiet }),
    );
  }

  at(x, y) {
    const isAt = (item) =>
      x >= item.x - 2 && x <= item.x + item.width + 3 && Math.abs(y - this.#y(item)) < ScrubPicture.LINE / 2;
    const found = this.placed.find(isAt);
    return found ? { row: found.index, column: null } : null;
  }

  box({ row }) {
    const item = this.placed[row];
    return { x: item.x, y: this.#y(item) - 35, width: item.width, height: ScrubPicture.LINE };
  }

  #y(item) {
    return ScrubPicture.TOP + item.line * ScrubPicture.LINE;
  }

  #word(item, style) {
    return text(middle(item), this.#y(item), this.words[item.index], {
      anchor: "middle",
      size: ScrubPicture.SIZE,
      ...style,
    });
  }

  #bar(item) {
    if (!this.surprisal) return null;
    const height = Math.max(1, (18 * this.surprisal[item.index]) / this.mostSurprising);
    return svg("rect", { x: item.x + 4, y: this.#y(item) + 13, width: item.width - 8, height, fill: this.theme.line });
  }

  /** The words that a row attends to, the weakest first. */
  #attended(row) {
    const { weights, width } = this.selection;
    const links = this.placed.map((item, column) => {
      const weight = weights[row * width + column];
      return {
        item,
        weight,
        strength: Math.min(1, Math.abs(weight) / this.scale.top(row)),
        share: this.scale.share(row, weight),
      };
    });
    return links
      .filter(({ item, strength }) => strength >= MIN_SHARE && item.index !== row)
      .sort((one, other) => one.strength - other.strength);
  }

  #drawAttended({ item, weight, strength, share }, here) {
    const colour = colourAt(this.table, share);
    const y = this.#y(item);
    const curve = arc([middle(here), this.#y(here) - 13], [middle(item), y - 26]);
    return [
      svg("rect", { x: item.x, y: y - 12, width: item.width, height: 24, rx: 4, fill: css(colour) }),
      this.#word(item, { fill: inkOn(colour) }),
      text(middle(item), y - 20, fixed(weight, 2), { anchor: "middle", size: 10, fill: this.theme.quiet }),
      svg("path", {
        d: curve,
        fill: "none",
        stroke: this.theme.current,
        "stroke-width": 0.8 + 2.4 * strength,
        "stroke-opacity": 0.25 + 0.6 * strength,
      }),
    ];
  }
}

/** A line for each word: the words up to it, or all where later words are attended to, shaded by their weight. */
class ReadingLinesPicture extends Picture {
  static ROW = 26;

  constructor(selection, { theme, scale, table, surprisal, seesAll }) {
    super();
    Object.assign(this, { selection, theme, scale, table, surprisal, seesAll });
    this.words = selection.rows.labels.map((word) => shortened(word, 28));
    this.reversed = selection.rows.direction === "rtl";
    this.rows = this.words.length;
    this.widths = this.words.map((word) => measure(word, 13) + 8);
    this.margin = surprisal ? 44 : 6;
    this.starts = [0];
    for (const width of this.widths) this.starts.push(this.starts.at(-1) + width + 2);
    this.width = Math.ceil(this.margin + this.starts.at(-1) + 4);
    this.height = this.rows * ReadingLinesPicture.ROW;
  }

  draw(top, bottom) {
    const { ROW } = ReadingLinesPicture;
    const [first, last] = [Math.max(0, Math.floor(top / ROW)), Math.min(this.rows, Math.ceil(bottom / ROW))];
    return svg("g", Array.from({ length: last - first }, (_, index) => this.#line(first + index)));
  }

  mark({ row }) {
    const { ROW } = ReadingLinesPicture;
    const frame = { x: 1, y: row * ROW + 1, width: this.width - 2, height: ROW - 2, rx: 4 };
    return svg("rect", { ...frame, fill: "none", stroke: this.theme.mark, "stroke-width": 2 });
  }

  at(_x, y) {
    return y >= 0 && y < this.height ? { row: Math.floor(y / ReadingLinesPicture.ROW), column: null } : null;
  }

  box({ row }) {
    return { x: 0, y: row * ReadingLinesPicture.ROW, width: 10, height: ReadingLinesPicture.ROW };
  }

  #x(index) {
    if (this.reversed) return this.width - this.margin - this.starts[index] - this.widths[index];
    return this.margin + this.starts[index];
  }

  #line(row) {
    const y = (row + 0.5) * ReadingLinesPicture.ROW;
    const words = this.words.slice(0, this.seesAll ? this.rows : row + 1);
    return svg("g", this.#surprisal(row, y), words.map((_, index) => this.#word(row, index, y)));
  }

  #surprisal(row, y) {
    if (!this.surprisal) return null;
    const [x, anchor] = this.reversed ? [this.width - 36, "left"] : [36, "right"];
    return text(x, y, fixed(this.surprisal[row], 1), { anchor, size: 11, fill: this.theme.quiet });
  }

  #word(row, index, y) {
    const [x, width] = [this.#x(index), this.widths[index]];
    const word = (style) => text(x + width / 2, y, this.words[index], { anchor: "middle", ...style });
    if (index === row) return word({ weight: "700", fill: this.theme.current });
    const weight = this.selection.weights[row * this.selection.width + index];
    if (Math.abs(weight) / this.scale.top(row) < MIN_SHARE) return word({ fill: this.theme.ink });
    const colour = colourAt(this.table, this.scale.share(row, weight));
    return [svg("rect", { x, y: y - 11, width, height: 22, fill: css(colour) }), word({ fill: inkOn(colour) })];
  }
}

function middle(item) {
  return item.x + item.width / 2;
}

/** A curve from the current word to an attended one: a bow above a line of text, or a curve between two lines. */
function arc(from, to) {
  const rise = Math.min(26, 8 + Math.abs(to[0] - from[0]) / 14);
  const bend = Math.round(Math.min(from[1], to[1]) - (Math.abs(from[1] - to[1]) < 20 ? rise : 4));
  const [startX, startY, endX, endY] = [...from, ...to].map(Math.round);
  return `M${startX} ${startY}C${startX} ${bend} ${endX} ${bend} ${endX} ${endY}`;
}
