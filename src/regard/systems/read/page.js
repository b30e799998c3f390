// The page Read: a text word by word, with what each word looks back to, its label, or how surprising it was.

import { fill, html } from "/web/dom.js";
import { TextPage } from "/pages/page.js";
import { button, emptyBox, number, section, track, view } from "/pages/parts.js";

const PLAY_MILLISECONDS = 700;
const TOP = 5;
/** The label of a word that has none. */
const NONE = "-";

export default class ReadPage extends TextPage {
  static heading = "Read word by word";
  static lead =
    "Which words each word looks back to. A language model also shows how surprising each word is, and what it " +
    "expected instead.";
  static label = "Text to read";
  static hint = "Type a sentence, or take an example, to see it read word by word.";
  static fresh = { word: -1 };
  static parts = { text: ["word"] };

  get defaults() {
    return { text: this.examples[0].text, word: -1, layout: "word" };
  }

  build() {
    this.signal.addEventListener("abort", () => this.stop());
    return super.build();
  }

  run() {
    this.stop();
    return super.run();
  }

  async show() {
    const { text } = this.state;
    const answer = await this.ask(this.result, "", { input: text, trace: true });
    if (!answer) return;
    this.reading = answer.results[0];
    this.expected = null;
    this.#draw();
    this.measure(text);
    if (!this.reading.surprisals.length) return;
    const message = "Asking what was expected …";
    const found = await this.ask(this.about, "expected", { input: text, top: TOP }, { message });
    if (!found) return;
    this.expected = found.expected;
    this.#showWord();
  }

  #draw() {
    const { words, unknown, perplexity, trace, label, tags } = this.reading;
    this.about = html("div.about-word", { role: "status" });
    // Only what a language model expected takes much place.
    this.about.classList.toggle("short", !this.reading.surprisals.length);
    const changed = ({ layout }) => this.set({ layout });
    this.view = view("attention-reading", trace, { layout: this.state.layout }, changed);
    const selected = ({ detail }) => detail && this.#go(detail.row, { fromView: true });
    this.view.addEventListener("attention-position", selected);
    this.slider = html("input", {
      type: "range",
      min: 1,
      max: words.length,
      "aria-label": "Word",
      oninput: (event) => this.#go(Number(event.target.value) - 1),
    });
    this.play = button("Play", () => (this.timer ? this.stop() : this.#start()));
    this.progress = html("span.quiet");
    const step = (label, by) => button(label, () => this.#go(this.state.word + by));
    const scrub = html("div.row.scrub", this.play, step("Back", -1), step("Next", 1), this.slider, this.progress);
    const unsure = "as unsure as between so many words on average";
    const whole = [
      perplexity === null ? null : `Perplexity ${perplexity.toFixed(1)}: ${unsure}.`,
      label ? `Label: ${label}.` : null,
      tags.length ? labelled(words, tags) : null,
      unknown.length ? `Not in the vocabulary, and read as unknown words: ${[...new Set(unknown)].join(", ")}.` : null,
    ].filter(Boolean);
    const shown = trace ? this.view : emptyBox("This reader has no attention to show.");
    fill(this.result, section("", scrub, shown, this.about, html("p.quiet", whole.join(" "))));
    const first = tags.findIndex((tag) => tag !== NONE);
    const start = first >= 0 ? first : (this.view.pinned?.row ?? words.length - 1);
    this.#go(this.state.word >= 0 ? this.state.word : start, { isFirst: true });
  }

  /** Make a word the current one, in all parts of the page. */
  #go(position, { fromView = false, isFirst = false } = {}) {
    const { words } = this.reading;
    const word = Math.max(0, Math.min(words.length - 1, position));
    if (isFirst) this.state.word = word;
    else this.set({ word });
    this.slider.value = String(word + 1);
    this.slider.setAttribute("aria-valuetext", words[word]);
    this.progress.textContent = `word ${word + 1} of ${words.length}`;
    if (!fromView) this.view.pinned = { row: word, column: null };
    this.#showWord();
  }

  #showWord() {
    const { words, surprisals, unknown, tags } = this.reading;
    const { word: position } = this.state;
    const [word, bits, expected] = [words[position], surprisals[position], this.expected?.[position]];
    const isUnknown = unknown.includes(word);
    const surprise = bits !== undefined && [
      html("b", word),
      " came with a surprise of ",
      number(bits, `${bits.toFixed(1)} bits`),
      `: the model gave it one chance in ${chances(bits)}.`,
      isUnknown ? " It is not in the vocabulary, and was read as an unknown word." : "",
    ];
    const tag = (tags[position] ?? NONE) !== NONE && [html("b", word), " is labelled ", html("b", tags[position]), "."];
    const about = surprise || tag;
    fill(this.about, about ? html("p", about) : null, expected ? expectations(expected, word, position) : null);
  }

  #start() {
    if (this.state.word >= this.reading.words.length - 1) this.#go(0);
    this.play.textContent = "Pause";
    this.timer = setInterval(() => {
      this.#go(this.state.word + 1);
      if (this.state.word >= this.reading.words.length - 1) this.stop();
    }, PLAY_MILLISECONDS);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    if (this.play) this.play.textContent = "Play";
  }
}

/** The words of a tagger that have a label, with it. */
function labelled(words, tags) {
  const found = words.map((word, index) => `${word} → ${tags[index]}`).filter((_, index) => tags[index] !== NONE);
  return found.length ? `Labels: ${found.join(", ")}.` : "No word has a label.";
}

/** One in how many times a surprise of so many bits comes. */
function chances(bits) {
  const odds = 2 ** bits;
  return odds < 1000 ? odds.toFixed(odds < 10 ? 1 : 0) : Math.round(odds).toLocaleString("en");
}

/** The likeliest words for a position, with the word that came marked. */
function expectations(expected, actual, position) {
  const largest = Math.max(...expected.map((each) => each.probability));
  const rows = expected.map(({ word, probability }) => {
    const shown = word === "</s>" ? "end of the sentence" : word;
    const share = number(probability, `${(100 * probability).toFixed(1)} %`);
    const isActual = word === actual || word === actual.toLowerCase();
    return html("li", { className: isActual ? "came" : "" }, html("span", shown), track(probability / largest), share);
  });
  const heading = position ? "Expected in its place" : "Expected as the first word";
  return html("div", html("h3", heading), html("ol.expected", rows));
}
