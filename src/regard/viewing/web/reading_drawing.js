// A sentence as it is read (Cheng et al. 2016, figure 1): the current word in red, the words it attends to shaded.

import { colourAt, css, inkOn } from "./colours.js";
import { svg } from "./dom.js";
import { Picture } from "./picture.js";
import { fixed } from "./scales.js";
import { measure, text, wrapped } from "./text.js";
import { shortened } from "./tokens.js";

/** Weights below this share of the largest are not shaded. */
const MIN_SHARE = 0.04;

/** One text through which the current word moves: arcs lead to what it attends to, bars below show the surprisal. */
export class ScrubPicture extends Picture {
  static SIZE = 16;
  static LINE = 70;

  constructor(selection, { width, theme, scale, table, surprisal }) {
    super();
    Object.assign(this, { selection, theme, scale, table, surprisal, width });
    const { SIZE, LINE } = ScrubPicture;
    this.words = selection.rows.labels.map((word) => shortened(word, 40));
    this.reversed = selection.rows.direction === "rtl";
    this.placed = wrapped(this.words, width, { size: SIZE, gap: 5, padding: 5, rtl: this.reversed });
    this.mostSurprising = Math.max(1e-9, ...(surprisal ?? []));
    this.rows = this.words.length;
    this.height = ((this.placed.at(-1)?.line ?? 0) + 1) * LINE + 14;
  }

  draw(top, bottom) {
    const { LINE } = ScrubPicture;
    const visible = this.placed.filter((item) => this.#y(item) > top - LINE && this.#y(item) < bottom + LINE);
    return svg(
      "g",
      {},
      visible.map((item) => [this.#word(item, { fill: this.theme.ink }), this.#bar(item)]),
    );
  }

  mark({ row }) {
    const here = this.placed[row];
    const { theme } = this;
    const frame = { x: here.x, y: this.#y(here) - 12, width: here.width, height: 24, rx: 4 };
    const bits = this.surprisal && `${fixed(this.surprisal[row], 1)} bits`;
    return svg(
      "g",
      {},
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
    return 40 + item.line * ScrubPicture.LINE;
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
export class ReadingLinesPicture extends Picture {
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
    return svg(
      "g",
      {},
      Array.from({ length: last - first }, (_, place) => this.#line(first + place)),
    );
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

  #x(place) {
    if (this.reversed) return this.width - this.margin - this.starts[place] - this.widths[place];
    return this.margin + this.starts[place];
  }

  #line(row) {
    const y = (row + 0.5) * ReadingLinesPicture.ROW;
    const words = this.words.slice(0, this.seesAll ? this.rows : row + 1);
    return svg(
      "g",
      {},
      this.#surprisal(row, y),
      words.map((_, place) => this.#word(row, place, y)),
    );
  }

  #surprisal(row, y) {
    if (!this.surprisal) return null;
    const [x, anchor] = this.reversed ? [this.width - 36, "left"] : [36, "right"];
    return text(x, y, fixed(this.surprisal[row], 1), { anchor, size: 11, fill: this.theme.quiet });
  }

  #word(row, place, y) {
    const [x, width] = [this.#x(place), this.widths[place]];
    const word = (style) => text(x + width / 2, y, this.words[place], { anchor: "middle", ...style });
    if (place === row) return word({ weight: "700", fill: this.theme.current });
    const weight = this.selection.weights[row * this.selection.width + place];
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
