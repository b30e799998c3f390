// A classified document (Yang et al. 2016, figure 5): a bar for each sentence, and its words shaded by their weight.

import { colourAt, css, inkOn } from "./colours.js";
import { svg } from "./dom.js";
import { Picture } from "./picture.js";
import { fixed } from "./scales.js";
import { text, wrapped } from "./text.js";
import { shortened } from "./tokens.js";

const SIZE = 14;
const LINE = 26;
const GAP = 8;
const NUMBER = 42;
const MIN_SHADE = 0.02;

/**
 * `content` has words, owners (the sentence of each word), sentenceWeights, shades (from 0 to 1) and direction. Rows
 * are sentences, columns are words.
 */
export class DocumentPicture extends Picture {
  constructor(content, { width, theme, table }) {
    super();
    const { words, sentenceWeights } = content;
    Object.assign(this, { content, theme, table, width });
    this.rows = sentenceWeights.length;
    this.columns = words.length;
    this.reversed = content.direction === "rtl";
    this.margin = width < 480 ? 74 : 124;
    this.left = this.reversed ? 0 : this.margin;
    this.labels = words.map((word) => shortened(word, 40));
    this.largest = Math.max(1e-9, ...sentenceWeights);
    this.#layOut(width - this.margin);
  }

  draw(top, bottom) {
    const isVisible = (y) => y + LINE >= top && y <= bottom;
    const sentences = this.sentences.filter((sentence) => isVisible(sentence.top));
    const words = this.items.filter((item) => isVisible(item.y));
    return svg(
      "g",
      {},
      sentences.map((each) => this.#bar(each)),
      words.map((item) => this.#word(item)),
    );
  }

  mark({ row, column }) {
    const { top, bottom } = this.sentences[row];
    const group = svg("g", { fill: "none", stroke: this.theme.mark });
    group.append(svg("rect", { x: 1, y: top, width: this.width - 2, height: bottom - top, rx: 4 }));
    if (column !== null) {
      const { x, y, width } = this.items[column];
      group.append(svg("rect", { x: this.left + x, y: y + 1, width, height: LINE - 2, rx: 3, "stroke-width": 2 }));
    }
    return group;
  }

  at(x, y) {
    const row = this.sentences.findIndex(({ top, bottom }) => y >= top && y < bottom);
    if (row < 0) return null;
    const along = x - this.left;
    const isAt = (item) => y >= item.y && y < item.y + LINE && along >= item.x && along <= item.x + item.width;
    return { row, column: this.items.find(isAt)?.index ?? null };
  }

  box({ row, column }) {
    if (column === null) return { x: 0, y: this.sentences[row].top, width: 10, height: LINE };
    const { x, y, width } = this.items[column];
    return { x: this.left + x, y, width, height: LINE };
  }

  /** Left and right step through the words, up and down through the sentences. */
  settled(place, before) {
    if (place.column === null || place.column === before?.column) return { row: place.row, column: null };
    return { row: this.content.owners[place.column], column: place.column };
  }

  /** Words in lines, a new line for each sentence. */
  #layOut(width) {
    this.items = [];
    this.sentences = [];
    let y = 2;
    for (let number = 0, start = 0; number < this.rows; number++) {
      let end = start;
      while (end < this.columns && this.content.owners[end] === number) end += 1;
      const style = { size: SIZE, gap: 1, padding: 3, rtl: this.reversed };
      const placed = wrapped(this.labels.slice(start, end), width, style);
      for (const item of placed) this.items.push({ ...item, index: start + item.index, y: y + item.line * LINE });
      const height = ((placed.at(-1)?.line ?? 0) + 1) * LINE;
      this.sentences.push({ number, top: y, bottom: y + height });
      y += height + GAP;
      start = end;
    }
    this.height = y;
  }

  #word({ index, x, y, width }) {
    const shade = this.content.shades[index];
    const colour = colourAt(this.table, shade);
    const isShaded = shade >= MIN_SHADE;
    const style = { anchor: "middle", size: SIZE, fill: isShaded ? inkOn(colour) : this.theme.ink };
    const label = text(this.left + x + width / 2, y + LINE / 2, this.labels[index], style);
    const box = { x: this.left + x, y: y + 2, width, height: LINE - 4, rx: 3 };
    return [isShaded ? svg("rect", { ...box, fill: css(colour) }) : null, label];
  }

  #bar({ number, top }) {
    const weight = this.content.sentenceWeights[number];
    const length = Math.max(1, ((this.margin - NUMBER - 12) * weight) / this.largest);
    const [x, anchor] = this.reversed ? [this.width, "right"] : [0, "left"];
    const start = this.reversed ? this.width - this.margin + 8 : this.margin - 12 - length;
    return [
      text(x, top + LINE / 2, fixed(weight, 3), { anchor, size: 12, fill: this.theme.quiet }),
      svg("rect", { x: start, y: top + 6, width: length, height: LINE - 12, rx: 2, fill: this.theme.current }),
    ];
  }
}
