// The Translate page: a sentence, its translation word by word, and what changes when something about it is changed.

import { fill, html } from "/web/dom.js";
import { ask, button, emptyBox, examples, field, modelPicker, section, select } from "/pages/parts.js";
import { read, write } from "/pages/state.js";
import { trustStrip } from "/pages/trust.js";
import { beamPanel } from "/pages/translate_beam.js";
import { changeBox } from "/pages/translate_change.js";
import { comparePanel } from "/pages/translate_compare.js";
import { goldPanel } from "/pages/translate_gold.js";
import { headsPanel } from "/pages/translate_heads.js";
import { tabs } from "/pages/translate_tabs.js";
import { translationWords, wordPanel } from "/pages/translate_words.js";

export const title = "Translate";

const LECTURE = "The agreement on the European Economic Area was signed in August 1992.";
const EXAMPLES = {
  en: [LECTURE, "He is happy because his sister is coming tomorrow.", "I don't know where you bought that book."],
  fa: ["من این کتاب را دیروز خریدم.", "او امروز به مدرسه نرفت.", "هوا سرد است."],
};
/** How attention is shown at first; what the user changes of it stays, and is kept in the address. */
const VIEW = { words: true, hideSpecial: false, scale: "map", palette: "blue", map: "", layer: "", head: "" };
const UNCHANGED = { prefix: [], word: "", attention: [], heads: [], align: "" };
const BEAMS = [1, 2, 3, 5, 8].map((size) => [String(size), size === 1 ? "1 (greedy)" : String(size)]);

export async function show(root, context) {
  if (!context.models.length) return void fill(root, emptyBox(html("p", {}, "This server has no translator.")));
  await new TranslatePage(root, context).start();
}

/** What a model is likely to read: the language that its name begins with. */
function samples(name) {
  return EXAMPLES[name.slice(0, 2)] ?? EXAMPLES.en;
}

class TranslatePage {
  constructor(root, context) {
    Object.assign(this, { root, context });
    const first = context.models.find((each) => each.name === "en-fr") ?? context.models[0];
    const sentence = { model: first.name, text: "", sentence: 0, beam: 5 };
    const shown = { tab: "attention", view: "matrix", options: {}, at: 0, second: "", direction: "", number: 0 };
    const parts = {
      text: ["sentence", "at", "prefix", "word", "attention"],
      prefix: ["word", "attention"],
      attention: ["word", "prefix"],
    };
    this.state = read({ ...sentence, ...shown, ...UNCHANGED }, parts);
    if (!context.models.some((each) => each.name === this.state.model)) this.state.model = first.name;
    if (!BEAMS.some(([size]) => size === String(this.state.beam))) this.state.beam = sentence.beam;
    this.answer = null;
    /** The token whose word is to be shown after the next answer, which may have joined it with others. */
    this.token = null;
    this.kept = new Map();
  }

  async start() {
    this.input = html("textarea", { rows: 2, spellcheck: false, dir: "auto", maxLength: 5000 });
    this.input.value = this.state.text;
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        this.submit();
      }
    });
    this.samples = html("div");
    this.status = html("div", { className: "statusline" });
    this.result = html("div", { className: "results" });
    const model = modelPicker(this.context.models, this.state.model, (name) => {
      this.set({ model: name, sentence: 0, at: 0, second: "", direction: "", ...UNCHANGED });
      this.showSamples();
      if (this.state.text) this.load();
    });
    const beam = select(BEAMS, String(this.state.beam), (size) => {
      this.set({ beam: Number(size) });
      if (this.state.text) this.load();
    });
    fill(
      this.root,
      section(
        null,
        html("h1", {}, "Translate"),
        field("Sentence", this.input),
        this.samples,
        html(
          "div",
          { className: "row tools" },
          html("div", { className: "grow" }, model),
          field("Beam", beam),
          button("Translate", () => this.submit(), { primary: true }),
        ),
      ),
      this.status,
      this.result,
    );
    this.showSamples();
    if (this.state.text) await this.load();
    else this.showNothing();
  }

  set(values) {
    Object.assign(this.state, values);
    write(this.state);
  }

  showSamples() {
    const pick = ({ text }) => {
      this.input.value = text;
      this.submit();
    };
    const list = samples(this.state.model).map((text) => ({ label: text, text }));
    fill(this.samples, examples(list, pick));
  }

  showNothing() {
    const text = "Type a sentence or take an example: you will see what each word of its translation looked at.";
    fill(this.result, emptyBox(html("p", {}, text)));
  }

  submit() {
    const text = this.input.value.trim();
    if (!text) {
      this.set({ text, sentence: 0, at: 0, ...UNCHANGED });
      this.asked = null;
      return this.showNothing();
    }
    this.set({ text, sentence: 0, at: 0, ...UNCHANGED });
    return this.load();
  }

  /** The change that the state holds, as the server takes it. */
  get change() {
    const { prefix, word, attention, heads, align } = this.state;
    const steps = Object.fromEntries(attention.map(({ step, weights }) => [step, weights]));
    return { prefix, word, attention: steps, heads, align };
  }

  get request() {
    const { model, text, sentence, beam } = this.state;
    return { model, input: text, sentence, search: { beam } };
  }

  /** The sentence that is shown, for questions about it alone. */
  sentenceRequest({ sentences, sentence } = this.answer) {
    const { model, beam } = this.state;
    return { model, input: sentences[sentence], search: { beam } };
  }

  get isChanged() {
    return JSON.stringify(this.change) !== JSON.stringify({ ...UNCHANGED, attention: {} });
  }

  /** The translation that is shown: after a change, or the original one. */
  get current() {
    return this.answer.difference?.after ?? this.answer.before;
  }

  async load() {
    const asked = (this.asked = Symbol("request"));
    const retry = () => this.load();
    const key = JSON.stringify(this.request);
    // The translation without a change is kept while only the change is another one.
    const kept = this.answer?.key === key ? this.answer : null;
    const found = kept ?? (await ask(this.status, this.context, "/v1/translate/inspect", this.request, retry));
    if (!found || asked !== this.asked) return;
    let difference = null;
    if (this.isChanged) {
      const before = found.before.words.flatMap(({ tokens }) => tokens);
      const body = { ...this.sentenceRequest(found), change: this.change, before };
      difference = await ask(this.status, this.context, "/v1/translate/change", body, retry);
      if (!difference || asked !== this.asked) return;
    }
    this.answer = { ...found, key, difference };
    if (this.token !== null) this.state.at = this.wordOf(this.token);
    this.token = null;
    this.draw();
  }

  /** Decode again with a change; what it leaves out stays as it is. */
  decode(values) {
    this.set(values);
    return this.load();
  }

  draw() {
    const focused = document.activeElement?.dataset?.keep;
    const { answer } = this;
    this.state.at = Math.max(0, Math.min(this.state.at, this.current.words.length - 1));
    this.panel = html("div", { className: "wordpanel" });
    this.words = translationWords(this.current, (at) => this.pick(at));
    const note =
      this.current.unknown &&
      "Some of this is not in the model's vocabulary. `regard translate` copies such words; " +
        "here you see the model alone.";
    const isUnknown = this.current.words.some(({ text }) => text.includes("⁇"));
    this.view = this.attentionView();
    const asked = JSON.stringify(this.request);
    const unchanged = this.isChanged ? html("p", {}, "The translations without your change are compared.") : null;
    const list = [
      ["attention", "Attention", () => html("div", {}, this.view)],
      ["beam", "Beam search", () => this.keep("beam", asked + JSON.stringify(this.change), () => beamPanel(this))],
      answer.heads.length ? ["heads", "Heads", () => headsPanel(this)] : null,
      ["compare", "Compare", () => [unchanged, this.keep("compare", asked, () => comparePanel(this))]],
      ["gold", "Right links", () => this.keep("gold", this.state.model, () => goldPanel(this))],
    ].filter(Boolean);
    fill(
      this.result,
      this.sentencePicker(),
      section(
        this.isChanged ? "Translation, changed" : "Translation",
        this.words,
        note ? html("p", { className: "quiet" }, note) : null,
        isUnknown ? html("p", { className: "quiet" }, "⁇ stands for what is not in the model's vocabulary.") : null,
        changeBox(this),
        this.panel,
      ),
      tabs(list, this.state.tab, (tab) => this.set({ tab })),
      (this.trust ??= html("div")),
    );
    this.pick(this.state.at);
    if (focused) this.result.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus();
    this.showTrust();
  }

  /** A panel, built anew only where what it depends on has changed. */
  keep(name, key, build) {
    if (this.kept.get(name)?.key !== key) this.kept.set(name, { key, node: build() });
    return this.kept.get(name).node;
  }

  /** The place of the word that has a token. */
  wordOf(token) {
    return Math.max(0, this.current.words.findIndex(({ first, tokens }) => token < first + tokens.length));
  }

  showTrust() {
    const sentence = this.answer.sentences[this.answer.sentence];
    const key = JSON.stringify([this.state.model, sentence]);
    if (key === this.trusted || !this.answer.before.trace) return;
    this.trusted = key;
    trustStrip(this.trust, { verb: "translate", model: this.state.model, input: sentence });
  }

  sentencePicker() {
    const { sentences, sentence } = this.answer;
    if (sentences.length === 1) return null;
    const choices = sentences.map((text, place) => [String(place), `${place + 1}. ${text.slice(0, 70)}`]);
    const control = select(choices, String(sentence), (place) =>
      this.decode({ sentence: Number(place), at: 0, ...UNCHANGED }),
    );
    const help = "The model reads a text sentence by sentence. This page looks into one of them at a time.";
    return section(null, field(`Sentence ${sentence + 1} of ${sentences.length}`, control, help));
  }

  attentionView() {
    const { trace } = this.current;
    if (!trace) return emptyBox(html("p", {}, "This model has no attention to show."));
    const { words } = VIEW;
    const options = JSON.stringify({ words, ...this.state.options });
    const view = html("attention-view", { elements: "matrix lines heads", options });
    view.setAttribute("shown", this.state.view);
    view.trace = trace;
    view.addEventListener("attention-tab", ({ detail }) => this.set({ view: detail }));
    view.addEventListener("attention-options", ({ detail }) => {
      const changed = Object.entries(VIEW).filter(([name, value]) => (detail[name] ?? value) !== value);
      this.set({ options: Object.fromEntries(changed.map(([name]) => [name, detail[name]])) });
    });
    view.addEventListener("attention-place", ({ detail }) => {
      const tokens = this.rowsOf(view)?.[detail?.row ?? -1];
      if (tokens) this.pick(this.wordOf(tokens[0]));
    });
    return view;
  }

  /** The tokens of each row of the picture, of which a word may have several. */
  rowsOf(view) {
    const { selected } = view.shown ?? {};
    return selected?.selection.rows.axis.name === "target" ? selected.selection.rows.members : null;
  }

  /** Show what could have stood at a place of the translation, and where its step attends. */
  pick(at) {
    this.set({ at });
    this.words.select(at);
    fill(this.panel, wordPanel(this, at));
    const rows = this.rowsOf(this.view);
    const row = rows?.findIndex((tokens) => tokens.includes(this.current.words[at]?.first)) ?? -1;
    if (row >= 0) this.view.shown.pinned = { row, column: null };
  }

  reset() {
    return this.decode({ ...UNCHANGED });
  }

  /** Another word at a place; everything after it is decoded again. */
  force(at, { tokens = [], word = "" }) {
    const { first } = this.current.words[at];
    this.token = first;
    const attention = this.state.attention.filter(({ step }) => step <= first);
    return this.decode({ prefix: [...this.current.tokens.slice(0, first), ...tokens], word, attention, at });
  }

  /** Other attention at a step, which is shown for a token; everything from there on is decoded again. */
  move(step, token, weights) {
    this.token = token;
    const attention = [...this.state.attention.filter((each) => each.step < step), { step, weights }];
    return this.decode({ prefix: this.current.tokens.slice(0, step), word: "", attention });
  }
}
