// The page Read: a text word by word, with what each word looks back to, how surprising it was, and what was expected.

import { fill, html } from "/web/dom.js";
import { post } from "/pages/api.js";
import { ask, busy, button, emptyBox, examples, field, modelPicker, section, servedName } from "/pages/parts.js";
import * as state from "/pages/state.js";
import { clearTrust, trustStrip } from "/pages/trust.js";

export const title = "Read";

const PLAY_MILLISECONDS = 700;
const TOP = 5;
const EXAMPLES = [
  { label: "The tired animal", text: "The animal did not cross the street because it was too tired." },
  { label: "A garden path", text: "The old man the boats while the young sleep." },
  { label: "A surprise at the end", text: "She opened the door and found a small elephant." },
];

export async function show(root, context) {
  const { models } = context;
  const defaults = { model: servedName(models), text: EXAMPLES[0].text, word: -1, layout: "word" };
  const values = state.read(defaults, { text: ["word"] });
  values.model = servedName(models, values.model);
  await new ReadPage(root, context, values).run();
}

class ReadPage {
  constructor(root, context, values) {
    Object.assign(this, { context, values });
    this.input = html("textarea", { rows: 2, value: values.text, maxLength: 4000 });
    this.input.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      this.read();
    });
    this.result = html("div", { className: "page" });
    this.trust = html("div", {});
    const pick = ({ text }) => {
      this.input.value = text;
      this.read();
    };
    const choose = (model) => {
      values.model = model;
      this.read();
    };
    const form = section(
      "",
      html("h1", {}, "Read word by word"),
      modelPicker(context.models, values.model, choose),
      field("Text to read", this.input),
      html(
        "div",
        { className: "row between" },
        examples(EXAMPLES, pick),
        button("Read", () => this.read(), { primary: true, title: "Enter" }),
      ),
    );
    root.append(form, this.result, this.trust);
    context.signal.addEventListener("abort", () => this.stop());
  }

  read() {
    Object.assign(this.values, { text: this.input.value, word: -1 });
    return this.run();
  }

  async run() {
    this.stop();
    const { model, text, word } = this.values;
    state.write({ model, text, word });
    if (!text.trim()) {
      clearTrust(this.trust);
      const say = "Type a sentence, or take an example, to see it read word by word.";
      return void fill(this.result, emptyBox(html("p", {}, say)));
    }
    const body = { model, input: text, trace: true };
    const answer = await ask(this.result, this.context, "/v1/read", body, () => this.run());
    if (!answer || text !== this.values.text || model !== this.values.model) return;
    this.reading = answer.results[0];
    this.expected = null;
    this.#build();
    trustStrip(this.trust, { verb: "read", model, input: text });
    if (this.reading.surprisals.length) await this.#expect(model, text);
  }

  /** What the model expected in the place of each word, where it is a language model. */
  async #expect(model, text) {
    const { signal } = this.context;
    const asked = post("/v1/read/expected", { model, input: text, top: TOP }, { signal });
    const answer = await busy(this.about, asked, "Asking what was expected …");
    if (!answer || text !== this.values.text || model !== this.values.model) return;
    this.expected = answer.expected;
    this.#showWord();
  }

  #build() {
    const { words, perplexity, trace, label, tags } = this.reading;
    this.about = html("div", { className: "about-word", role: "status" });
    const { layout } = this.values;
    this.view = html("attention-reading", { options: { layout }, trace });
    this.view.addEventListener("attention-options", ({ detail }) => {
      this.values.layout = detail.layout;
      state.write({ layout: detail.layout });
    });
    this.view.addEventListener("attention-place", ({ detail }) => detail && this.#go(detail.row, { fromView: true }));
    this.slider = html("input", {
      type: "range",
      min: 1,
      max: words.length,
      "aria-label": "Word",
      oninput: (event) => this.#go(Number(event.target.value) - 1),
    });
    this.play = button("Play", () => (this.timer ? this.stop() : this.#start()));
    this.place = html("span", { className: "quiet" });
    const step = (label, by) => button(label, () => this.#go(this.values.word + by));
    const scrub = html(
      "div",
      { className: "row scrub" },
      this.play,
      step("Back", -1),
      step("Next", 1),
      this.slider,
      this.place,
    );
    const whole = [
      perplexity === null ? null : `Perplexity ${perplexity.toFixed(1)}: as unsure as between so many words on average.`,
      label ? `Label: ${label}.` : null,
      tags?.length ? `Tags: ${tags.join(" ")}.` : null,
    ].filter(Boolean);
    const shown = trace ? this.view : emptyBox(html("p", {}, "This reader has no attention to show."));
    fill(this.result, section("", scrub, shown, this.about, html("p", { className: "quiet" }, whole.join(" "))));
    const chosen = this.values.word >= 0 ? this.values.word : (this.view.pinned?.row ?? words.length - 1);
    this.#go(chosen, { isFirst: true });
  }

  /** Make a word the current one, in all parts of the page. */
  #go(place, { fromView = false, isFirst = false } = {}) {
    const { words } = this.reading;
    this.values.word = Math.max(0, Math.min(words.length - 1, place));
    if (!isFirst) state.write({ word: this.values.word });
    this.slider.value = String(this.values.word + 1);
    this.slider.setAttribute("aria-valuetext", words[this.values.word]);
    this.place.textContent = `word ${this.values.word + 1} of ${words.length}`;
    if (!fromView) this.view.pinned = { row: this.values.word, column: null };
    this.#showWord();
  }

  #showWord() {
    const { words, surprisals, unknown } = this.reading;
    const { word: place } = this.values;
    const bits = surprisals[place];
    const parts = [];
    if (bits !== undefined) {
      const odds = 2 ** bits;
      const chance = odds < 1000 ? odds.toFixed(odds < 10 ? 1 : 0) : Math.round(odds).toLocaleString("en");
      parts.push(
        html(
          "p",
          {},
          html("b", {}, words[place]),
          " came with a surprise of ",
          html("data", { value: String(bits) }, `${bits.toFixed(1)} bits`),
          `: the model gave it one chance in ${chance}.`,
          unknown.includes(words[place]) ? " It is not in the vocabulary, and was read as an unknown word." : "",
        ),
      );
    }
    const expected = this.expected?.[place];
    if (expected) parts.push(expectations(expected, words[place], place));
    fill(this.about, parts);
  }

  #start() {
    if (this.values.word >= this.reading.words.length - 1) this.#go(0);
    this.play.textContent = "Pause";
    this.timer = setInterval(() => {
      this.#go(this.values.word + 1);
      if (this.values.word >= this.reading.words.length - 1) this.stop();
    }, PLAY_MILLISECONDS);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    if (this.play) this.play.textContent = "Play";
  }
}

/** The likeliest words for a place, with the word that came marked. */
function expectations(expected, actual, place) {
  const largest = Math.max(...expected.map((each) => each.probability));
  const rows = expected.map(({ word, probability }) => {
    const filled = html("i", {});
    filled.style.width = `${Math.round((100 * probability) / largest)}%`;
    const shown = word === "</s>" ? "end of the sentence" : word;
    return html(
      "li",
      { className: word === actual || word === actual.toLowerCase() ? "came" : "" },
      html("span", {}, shown),
      html("span", { className: "track" }, filled),
      html("data", { value: String(probability) }, `${(100 * probability).toFixed(1)} %`),
    );
  });
  const heading = place ? "Expected in its place" : "Expected as the first word";
  return html("div", {}, html("h3", {}, heading), html("ol", { className: "expected" }, rows));
}
