// The page Translate: a sentence, its translation word by word, and what changes when something about it is changed.

import { tabs } from "/web/controls.js";
import { fill, html } from "/web/dom.js";
import { TextPage } from "/pages/page.js";
import { emptyBox, field, section, select } from "/pages/parts.js";
import { beamPanel } from "/systems/translate/beam.js";
import { changeBox } from "/systems/translate/change.js";
import { comparePanel, goldPanel, headsPanel } from "/systems/translate/panels.js";
import { joined, translationWords, wordPanel } from "/systems/translate/words.js";

/** How attention is shown at first; what the user changes of it stays, and is kept in the address. */
const VIEW = { words: true, hideSpecial: false, scale: "map", palette: "blue", map: "", layer: "", head: "" };
const UNCHANGED = { prefix: [], word: "", attention: [], heads: [], align: "" };
const BEAMS = [1, 2, 3, 5, 8].map((size) => [String(size), size === 1 ? "1 (greedy)" : String(size)]);
const UNKNOWN =
  "Some of this is not in the model's vocabulary. `regard translate` copies such words; here you see the model alone.";

export default class TranslatePage extends TextPage {
  static heading = "Translate";
  static lead =
    "Which source words each word of a translation looks at, what else could stand in its place, and what changes " +
    "when you move its attention.";
  static label = "Sentence";
  static action = "Translate";
  static maxLength = 5000;
  static hint = "Type a sentence or take an example: you will see what each word of its translation looked at.";
  static fresh = { sentence: 0, at: 0, ...UNCHANGED };
  static ofModel = { second: "", direction: "" };
  static parts = {
    text: ["sentence", "at", "prefix", "word", "attention"],
    prefix: ["word", "attention"],
    attention: ["word", "prefix"],
  };
  #kept = new Map();
  /** The token whose word is to be shown after the next answer, which may have joined it with others. */
  #token = null;

  get defaults() {
    const { fresh, ofModel } = TranslatePage;
    return { text: "", beam: 5, ...fresh, ...ofModel, tab: "attention", view: "matrix", options: {}, number: 0 };
  }

  build() {
    if (!BEAMS.some(([size]) => size === String(this.state.beam))) this.state.beam = this.defaults.beam;
    // Above the result, so that nothing jumps while the next one is computed.
    this.status = html("div.statusline");
    const [form, ...others] = super.build();
    return [form, this.status, ...others];
  }

  /** Where the address has no sentence, the first one that suits the model. */
  begin() {
    this.state.text ||= this.suiting[0]?.text ?? "";
    this.input.value = this.state.text;
    return super.begin();
  }

  tools() {
    const control = select(BEAMS, String(this.state.beam), (size) => {
      this.set({ beam: Number(size) });
      this.run();
    });
    return field("Beam", control);
  }

  /** Values mean something only with others, which may have come back into the address. */
  set(values) {
    super.set({ ...this.state, ...values });
  }

  /** The change that the state holds, as the server takes it. */
  get change() {
    const { prefix, word, attention, heads, align } = this.state;
    const steps = Object.fromEntries(attention.map(({ step, weights }) => [step, weights]));
    return { prefix, word, attention: steps, heads, align };
  }

  get request() {
    const { text, sentence, beam } = this.state;
    return { input: text, sentence, search: { beam } };
  }

  /** The sentence that is shown, for questions about it alone. */
  sentenceRequest({ sentences, sentence } = this.answer) {
    return { input: sentences[sentence], search: { beam: this.state.beam } };
  }

  get isChanged() {
    return JSON.stringify(this.change) !== JSON.stringify({ ...UNCHANGED, attention: {} });
  }

  /** The translation that is shown: after a change, or the original one. */
  get current() {
    return this.answer.difference?.after ?? this.answer.before;
  }

  async show() {
    this.turn(this.status);
    const key = JSON.stringify([this.state.model, this.request]);
    // The translation without a change is kept while only the change is another one.
    const found = this.answer?.key === key ? this.answer : await this.ask(this.status, "inspect", this.request);
    if (!found) return;
    let difference = null;
    if (this.isChanged) {
      const before = found.before.words.flatMap(({ tokens }) => tokens);
      const body = { ...this.sentenceRequest(found), change: this.change, before };
      difference = await this.ask(this.status, "change", body);
      if (!difference) return;
    }
    const answer = (this.answer = { ...found, key, difference });
    if (this.#token !== null) this.state.at = this.wordOf(this.#token);
    this.#token = null;
    this.#draw();
    if (answer.before.trace) this.#measureShown();
  }

  /**
   * Measure the translation that is shown: with words of the user, where they are all of the change. Attention that was
   * moved or taken away is not that of the model, so that the original translation is measured, which is said.
   */
  #measureShown() {
    const { prefix, word, attention, heads, align } = this.state;
    const isForced = prefix.length > 0 || word !== "";
    const isOther = attention.length > 0 || heads.length > 0 || align !== "";
    const start = isForced && !isOther ? joined(this.current.words.slice(0, this.state.at + 1)) : null;
    const sentence = this.answer.sentences[this.answer.sentence];
    const options = { beam: this.state.beam, ...(start === null ? {} : { prefix: start }) };
    const note = isOther ? "Measured without your change: the attention that you chose is not the model's." : "";
    const measured = JSON.stringify([this.state.model, sentence, options, note]);
    if (measured === this.measured) return;
    this.measured = measured;
    this.measure(sentence, options, note);
  }

  forget() {
    this.measured = null;
    super.forget();
  }

  /** Decode again with a change; what it leaves out stays as it is. */
  decode(values) {
    this.set(values);
    return this.show();
  }

  #draw() {
    const focused = document.activeElement?.dataset?.keep;
    const { answer, current } = this;
    this.state.at = Math.max(0, Math.min(this.state.at, current.words.length - 1));
    this.panel = html("div.wordpanel");
    this.words = translationWords(current, (at) => this.pick(at));
    this.view = this.#attentionView();
    const isUnknown = current.words.some(({ text }) => text.includes("⁇"));
    const asked = answer.key;
    const unchanged = this.isChanged ? html("p", "The translations without your change are compared.") : null;
    const list = [
      ["attention", "Attention", () => html("div", this.view)],
      ["beam", "Beam search", () => this.#keep("beam", asked + JSON.stringify(this.change), () => beamPanel(this))],
      answer.heads.length ? ["heads", "Heads", () => headsPanel(this)] : null,
      ["compare", "Compare", () => [unchanged, this.#keep("compare", asked, () => comparePanel(this))]],
      ["gold", "Right links", () => this.#keep("gold", this.state.model, () => goldPanel(this))],
    ].filter(Boolean);
    fill(
      this.result,
      this.#sentencePicker(),
      section(
        this.isChanged ? "Translation, changed" : "Translation",
        this.words,
        current.unknown ? html("p.quiet", UNKNOWN) : null,
        isUnknown ? html("p.quiet", "⁇ stands for what is not in the model's vocabulary.") : null,
        changeBox(this),
        this.panel,
      ),
      section("", tabs(list, this.state.tab, (tab) => this.set({ tab }))),
    );
    this.pick(this.state.at);
    if (focused) this.result.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus();
  }

  /** A panel, built anew only where what it depends on has changed. */
  #keep(name, key, build) {
    if (this.#kept.get(name)?.key !== key) this.#kept.set(name, { key, node: build() });
    return this.#kept.get(name).node;
  }

  /** The position of the word that has a token. */
  wordOf(token) {
    return Math.max(0, this.current.words.findIndex(({ first, tokens }) => token < first + tokens.length));
  }

  #sentencePicker() {
    const { sentences, sentence } = this.answer;
    if (sentences.length === 1) return null;
    const choices = sentences.map((text, index) => [String(index), `${index + 1}. ${text.slice(0, 70)}`]);
    const chosen = (index) => this.decode({ ...TranslatePage.fresh, sentence: Number(index) });
    const help = "The model reads a text sentence by sentence. This page looks into one of them at a time.";
    const label = `Sentence ${sentence + 1} of ${sentences.length}`;
    return section("", field(label, select(choices, String(sentence), chosen), help));
  }

  #attentionView() {
    const { trace } = this.current;
    if (!trace) return emptyBox("This model has no attention to show.");
    const options = JSON.stringify({ words: VIEW.words, ...this.state.options });
    const element = html("attention-view", { elements: "matrix lines heads", options });
    element.setAttribute("shown", this.state.view);
    element.trace = trace;
    element.addEventListener("attention-tab", ({ detail }) => this.set({ view: detail }));
    element.addEventListener("attention-options", ({ detail }) => {
      const changed = Object.entries(VIEW).filter(([name, value]) => (detail[name] ?? value) !== value);
      this.set({ options: Object.fromEntries(changed.map(([name]) => [name, detail[name]])) });
    });
    element.addEventListener("attention-position", ({ detail }) => {
      const tokens = this.#rows()?.[detail?.row ?? -1];
      if (tokens) this.pick(this.wordOf(tokens[0]));
    });
    return element;
  }

  /** The tokens of each row of the picture, of which a word may have several. */
  #rows() {
    const { selected } = this.view.shown ?? {};
    return selected?.selection.rows.axis.name === "target" ? selected.selection.rows.members : null;
  }

  /** Show what could have stood at a position of the translation, and where its step attends. */
  pick(at) {
    this.set({ at });
    this.words.select(at);
    fill(this.panel, wordPanel(this, at));
    const row = this.#rows()?.findIndex((tokens) => tokens.includes(this.current.words[at]?.first)) ?? -1;
    if (row >= 0) this.view.shown.pinned = { row, column: null };
  }

  reset() {
    return this.decode(UNCHANGED);
  }

  /** Another word at a position; everything after it is decoded again. */
  force(at, { tokens = [], word = "" }) {
    const { first } = this.current.words[at];
    this.#token = first;
    const attention = this.state.attention.filter(({ step }) => step <= first);
    return this.decode({ prefix: [...this.current.tokens.slice(0, first), ...tokens], word, attention, at });
  }

  /** Other attention at a step, which is shown for a token; everything from there on is decoded again. */
  move(step, token, weights) {
    this.#token = token;
    const attention = [...this.state.attention.filter((each) => each.step < step), { step, weights }];
    return this.decode({ prefix: this.current.tokens.slice(0, step), word: "", attention });
  }
}
