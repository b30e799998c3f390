// What every page shares: its models, the state in its address, questions to the server, and what is shown meanwhile.

import { fill, html } from "/web/dom.js";
import { get, post, stream } from "/pages/api.js";
import { faithfulness } from "/pages/faithfulness.js";
import { busy, button, emptyBox, exampleButtons, field, intro, modelPicker, section } from "/pages/parts.js";
import { imageInput } from "/pages/pictures.js";
import { read, write } from "/pages/state.js";

/**
 * A page of the workbench: `page.js` in the folder of a system has its own as the default export. It extends this with
 *   static heading, lead    what stands above it
 *   defaults                the values of its address, beside `model`
 *   static parts            those of them that mean something only together with another (see state.js)
 *   build()                 its nodes, made once
 *   run()                   asks the server, and draws what the state says
 */
export class Page {
  static heading = "";
  static lead = "";
  static parts = {};
  #asking = new WeakMap();

  /**
   * `system` is as /v1/systems lists it; `models` are its models, `all` those of the server, as /v1/models lists them;
   * `signal` is aborted when the user leaves the page.
   */
  constructor(root, { system, models, all, signal }) {
    const { name, model } = system;
    Object.assign(this, { root, system, name, models, all, signal, examples: [] });
    this.preferred = this.served(model)?.name ?? models[0]?.name ?? "";
    this.result = html("div.result");
    /** How far to trust the attention that the page shows. */
    this.trust = html("section");
  }

  get defaults() {
    return {};
  }

  /** Show the page; resolves when it has its first answer. */
  async start() {
    const { heading, lead } = this.constructor;
    this.root.append(intro(heading, lead));
    if (!this.models.length) {
      const text = "No model of this server is for this page. Train one, and serve its folder: regard serve my-run";
      return void this.root.append(emptyBox(text));
    }
    await this.load();
    const defaults = { model: this.preferred, ...this.defaults };
    this.state = read(defaults, this.constructor.parts);
    if (!this.served(this.state.model)) this.state.model = defaults.model;
    this.root.append(...[this.build()].flat().filter(Boolean));
    await this.begin();
  }

  /** Show what the address says. */
  begin() {
    return this.run();
  }

  /** Ask for what the page needs before it is built. */
  async load() {
    if (!this.system.examples) return;
    this.examples = (await get(this.path("examples"), { signal: this.signal })).examples;
  }

  /** Change the state, and the address with it. */
  set(values) {
    Object.assign(this.state, values);
    write(values);
  }

  /** A model of this page, or undefined. */
  served(name) {
    return this.models.find((each) => each.name === name);
  }

  path(what) {
    return ["/v1", this.name, what].filter(Boolean).join("/");
  }

  /**
   * Ask a model, by default that of the state. What is under way, and a refusal, are shown in `container`, where a
   * further question replaces this one. Resolves to the answer, or to undefined where there is none.
   */
  async ask(container, what, body, { retry = () => this.run(), path = this.path(what), message = "" } = {}) {
    const asked = { model: this.state.model, ...body };
    const model = this.all.find((each) => each.name === asked.model);
    // The first time, the model must be loaded.
    const text = message || `${model?.loaded === false ? "Loading" : "Asking"} ${asked.model} …`;
    const answer = await busy(container, post(path, asked, { signal: this.turn(container) }), text, retry);
    if (answer && model) model.loaded = true;
    return answer;
  }

  /** Ask for results that come one by one, as `ask` does; `onResult` gets each, `onProgress` how many are there. */
  async stream(container, what, body, { retry, message, ...listeners }) {
    const asked = stream(this.path(what), body, { signal: this.turn(container), ...listeners });
    return busy(container, asked, message, retry);
  }

  /** A signal for a question whose answer is shown in `container`: it ends the one before. */
  turn(container) {
    this.#asking.get(container)?.abort();
    const control = new AbortController();
    this.#asking.set(container, control);
    return AbortSignal.any([this.signal, control.signal]);
  }

  /** Measure how far to trust the attention of the model for an input, and show it, with a note where there is one. */
  async measure(input, options = {}, note = "") {
    faithfulness(this.trust);
    const body = { verb: this.name, input, options };
    const message = "Measuring: the model answers again without some of its input …";
    const retry = () => this.measure(input, options, note);
    const answer = await this.ask(this.trust, "", body, { path: "/v1/faithfulness", message, retry });
    if (answer) faithfulness(this.trust, answer, note);
  }

  /** Show no measurement, and end one that is under way. */
  forget() {
    this.turn(this.trust);
    this.trust.className = "";
    fill(this.trust);
  }

  /** A choice of the models of the page; `changed` are further values of the state that become others with it. */
  picker(changed = () => ({})) {
    return modelPicker(this.models, this.state.model, (model) => {
      this.set({ model, ...changed() });
      this.run();
    });
  }
}

/** A page for a text. `fresh` are the values of the state that belong to one text, as they are for a new one. */
export class TextPage extends Page {
  static label = "Text";
  static action = "Read";
  static rows = 2;
  static maxLength = 4000;
  /** What is said where there is no text. */
  static hint = "";
  /** Of long texts, Enter begins a new line, and Ctrl and Enter submit. */
  static isLong = false;
  static fresh = {};
  /** Values of the state that belong to a model, as they are for another. */
  static ofModel = {};

  build() {
    const { label, action, rows, maxLength, isLong, fresh, ofModel } = this.constructor;
    this.input = html("textarea", { rows, maxLength, dir: "auto", spellcheck: false, value: this.state.text });
    this.input.addEventListener("keydown", (event) => {
      const isMeant = isLong ? event.ctrlKey || event.metaKey : !event.shiftKey;
      if (event.key !== "Enter" || !isMeant || event.isComposing) return;
      event.preventDefault();
      this.submit();
    });
    this.samples = html("div");
    this.result = html("div.page");
    /** Where it is shown that the text is asked about. */
    this.status ??= this.result;
    const send = button(action, () => this.submit(), { className: "primary", title: isLong ? "Ctrl+Enter" : "Enter" });
    const picker = html("div.grow", this.picker(() => ({ ...fresh, ...ofModel })));
    return [
      section("", field(label, this.input), this.samples, html("div.row.tools", picker, this.tools(), send)),
      this.result,
      this.trust,
    ];
  }

  /** Further controls beside the choice of the model. */
  tools() {
    return null;
  }

  /** Show the text that was typed. */
  submit() {
    this.set({ text: this.input.value.trim(), ...this.constructor.fresh });
    return this.run();
  }

  /** The examples for the model; all, where it has none of its own. */
  get suiting() {
    const { model } = this.state;
    // The name of a translator begins with the language that it reads.
    const suits = (each) => (each.model ? each.model === model : !each.language || model.startsWith(each.language));
    const suiting = this.examples.filter(suits);
    return suiting.length ? suiting : this.examples;
  }

  async run() {
    const { text } = this.state;
    const pick = (example) => {
      this.input.value = example.text;
      this.submit();
    };
    fill(this.samples, exampleButtons(this.suiting, pick));
    this.set({ ...this.state });
    if (text.trim()) return this.show();
    this.turn(this.status);
    this.forget();
    fill(this.result, emptyBox(this.constructor.hint));
  }

  /** Ask about the text of the state, and draw the answer. */
  async show() {
    throw new Error(`${this.constructor.name} needs show.`);
  }
}

/**
 * A page for an image: {uri, name}, with the name of an example, or "" for an image of one's own. `fresh` are the
 * values of the state that belong to one image, as they are for another.
 */
export class ImagePage extends Page {
  static hint = "or drop or paste one";
  /** Whether examples are drawings of few pixels. */
  static isDrawing = false;
  static fresh = {};
  image = null;

  get example() {
    return this.examples.find((each) => each.name === this.image?.name);
  }

  /** The choice of an image: examples, a file, a drop, or a paste. */
  chooser(hint = this.constructor.hint) {
    const { isDrawing: drawing } = this.constructor;
    this.input = imageInput(this.examples, (image) => this.take(image, true), { signal: this.signal, drawing, hint });
    return this.input.node;
  }

  /** Show the image of the address, or the first. */
  begin() {
    const { image: uri, name } = this.first;
    return this.take({ uri, name }, false);
  }

  /** The example that is shown at first. */
  get first() {
    return this.examples.find((each) => each.name === this.state.example) ?? this.examples[0];
  }

  /** Show an image; `isChosen` where the user has just chosen it. */
  take(image, _isChosen) {
    this.change(image);
    return this.run();
  }

  /** Make another image that of the page. */
  change(image) {
    if (this.image && this.image.uri !== image.uri) this.set(this.constructor.fresh);
    this.image = image;
    this.input.mark(image.name);
    // An image of one's own is not in the address.
    this.set({ example: image.name || null });
  }
}
