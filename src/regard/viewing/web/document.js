// <attention-document>: which sentences and words of a document carried its class.

import { colourTable, PALETTES } from "./colours.js";
import { choice, flag } from "./controls.js";
import { DocumentPicture } from "./document_drawing.js";
import { html } from "./dom.js";
import { AttentionElement } from "./element.js";
import { legendBar, numberList } from "./numbers.js";
import { exact, fixed } from "./scales.js";
import { direction, printable } from "./tokens.js";

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
    const sentenceWeights = [...sentences.weights.subarray(0, sentences.width)];
    const weights = words.weights.subarray(0, words.width);
    const shades = Array.from(
      weights,
      (weight, place) => weight * (options.raw ? 1 : Math.sqrt(Math.max(0, sentenceWeights[owners[place]]))),
    );
    const highest = Math.max(1e-12, ...shades);
    const labels = trace.axis(words.columns).labels;
    return {
      words: labels,
      owners,
      sentenceWeights,
      weights,
      direction: direction(labels),
      sentences: trace.axis(sentences.columns).labels,
      shades: shades.map((shade) => Math.max(0, shade / highest)),
      highest,
    };
  }

  picture(width) {
    return new DocumentPicture(this.content, { width, theme: this.theme, table: this.#table() });
  }

  controls() {
    const set = (name) => (value) => this.setOptions({ [name]: value });
    const more = [
      choice("Colours", PALETTES, this.options.palette, set("palette")),
      flag("Shade words by their weight within the sentence alone", this.options.raw, set("raw")),
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
    const quiet = html("span", { className: "quiet" }, next.join("") + unread);
    return html("span", {}, html("b", {}, printable(label)), shown, quiet);
  }

  detail({ row, column }) {
    const { words, owners, weights, sentenceWeights } = this.content;
    const own = words
      .map((word, place) => [word, weights[place], place])
      .filter(([, , place]) => owners[place] === row);
    own.sort((one, other) => other[1] - one[1]);
    const shown = own.slice(0, 8);
    const pointed = column === null ? null : own.find(([, , place]) => place === column);
    if (pointed && !shown.includes(pointed)) shown.push(pointed);
    const heading = [
      html("b", {}, `Sentence ${row + 1}`),
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
    const rows = words.map((word, place) => [
      word,
      owners[place] + 1,
      exact(sentenceWeights[owners[place]]),
      exact(weights[place]),
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
