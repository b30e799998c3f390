// <attention-document>: which sentences and words of a document carried its class.

import { colourAt, colourTable, css, exact, fixed, inkOn, PALETTES } from "./colours.js";
import { html, printable, shortened, svg, text, wrapped } from "./dom.js";
import { AttentionElement } from "./element.js";
import { legendBar, numberList } from "./numbers.js";
import { Picture } from "./sheet.js";
import { rowOf } from "./trace.js";

const MAX_CLASSES = 5;

export class AttentionDocument extends AttentionElement {
  static label = "Document";
  static defaults = { palette: "blue", raw: false };
  get hint() {
    return (
      "Bars show the weight of sentences, shades that of words. " +
      "Point at one for its numbers; arrow keys step through sentences and words."
    );
  }

  static suits(trace) {
    return Boolean(trace.map("sentences") && trace.map("words") && trace.values("sentence"));
  }

  /** Words, their sentences, and how strongly each is shaded: by weight x square root of the sentence's weight. */
  get content() {
    const { trace, options } = this;
    const [sentences, words] = [trace.map("sentences"), trace.map("words")];
    const owners = trace.values("sentence");
    const sentenceWeights = [...rowOf(sentences, 0)];
    const weights = rowOf(words, 0);
    const shades = Array.from(
      weights,
      (weight, index) => weight * (options.raw ? 1 : Math.sqrt(Math.max(0, sentenceWeights[owners[index]]))),
    );
    const highest = Math.max(1e-12, ...shades);
    const labels = trace.axis(words.columns).labels;
    return {
      words: labels,
      owners,
      sentenceWeights,
      weights,
      direction: trace.axis(words.columns).direction,
      sentences: trace.axis(sentences.columns).labels,
      shades: shades.map((shade) => Math.max(0, shade / highest)),
      highest,
    };
  }

  picture(width) {
    return new DocumentPicture(this.content, { width, theme: this.theme, table: this.#table() });
  }

  controls() {
    const more = [
      this.choice("Colours", "palette", PALETTES),
      this.flag("Shade words by their weight within the sentence alone", "raw"),
    ];
    return { main: [this.#answer()], more };
  }

  /** The class with its probability, the next ones, and how many sentences were not read. */
  #answer() {
    const label = this.trace.axis(this.trace.map("sentences").rows).labels[0] ?? "";
    const { probability, probabilities, sentences_left_out: leftOut } = this.trace.extras;
    const others = Object.entries(probabilities ?? {}).filter(([name]) => name !== label);
    const next = others.slice(0, MAX_CLASSES - 1).map(([name, share]) => `, ${printable(name)} ${fixed(share, 3)}`);
    const shown = typeof probability === "number" ? ` ${fixed(probability, 3)}` : "";
    const unread = leftOut ? ` (${leftOut} sentences not read)` : "";
    const quiet = html("span.quiet", next.join("") + unread);
    return html("span", html("b", printable(label)), shown, quiet);
  }

  detail({ row, column }) {
    const { words, owners, weights, sentenceWeights } = this.content;
    const own = words
      .map((word, index) => [word, weights[index], index])
      .filter(([, , index]) => owners[index] === row);
    own.sort((one, other) => other[1] - one[1]);
    const shown = own.slice(0, 8);
    const pointed = column === null ? null : own.find(([, , index]) => index === column);
    if (pointed && !shown.includes(pointed)) shown.push(pointed);
    const heading = [
      html("b", `Sentence ${row + 1}`),
      ` of ${sentenceWeights.length}, weight `,
      html("data", { value: String(exact(sentenceWeights[row])) }, fixed(sentenceWeights[row], 3)),
      "; its words:",
    ];
    return numberList(
      heading,
      shown.map(([word, weight]) => [word, weight]),
      pointed ? shown.indexOf(pointed) : -1,
    );
  }

  table() {
    const { words, owners, weights, sentenceWeights } = this.content;
    const rows = words.map((word, index) => [
      word,
      owners[index] + 1,
      exact(sentenceWeights[owners[index]]),
      exact(weights[index]),
    ]);
    return {
      caption: "Words with their sentence and weights",
      columns: ["word", "sentence", "weight of the sentence", "weight of the word"],
      rows,
    };
  }

  legend(width) {
    const name = this.options.raw ? "weight of a word in its sentence" : "weight of a word × √ weight of its sentence";
    return legendBar({
      scale: { perRow: false, signed: false, largest: this.content.highest },
      table: this.#table(),
      theme: this.theme,
      width,
      name,
    });
  }

  #table() {
    return colourTable(this.options.palette, this.theme.name);
  }
}

const SIZE = 14;
const LINE = 26;
const GAP = 8;
const NUMBER = 42;
const MIN_SHADE = 0.02;

/**
 * `content` has words, owners (the sentence of each word), sentenceWeights, shades (from 0 to 1) and direction. Rows
 * are sentences, columns are words.
 */
class DocumentPicture extends Picture {
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
    return svg("g", sentences.map((each) => this.#bar(each)), words.map((item) => this.#word(item)));
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
  settled(position, before) {
    if (position.column === null || position.column === before?.column) return { row: position.row, column: null };
    return { row: this.content.owners[position.column], column: position.column };
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
