// The page Caption: where in an image each word of its caption looks, and what changes when the image does.

import { fill, html } from "/web/dom.js";
import { fixed } from "/web/colours.js";
import { get } from "/pages/api.js";
import { comparison } from "/pages/caption_compare.js";
import { hiding } from "/pages/caption_hide.js";
import { ask, button, emptyBox, field, modelPicker, section, turns } from "/pages/parts.js";
import { imageInput, intro, view } from "/pages/pictures.js";
import { read, write } from "/pages/state.js";
import { trustStrip } from "/pages/trust.js";

export const title = "Caption";

const DEFAULTS = {
  model: "",
  example: "",
  other: "",
  seed: 0,
  text: "",
  box: [],
  cells: false,
  layout: "word",
  overlay: "light",
};
/** The shipped captioners of generated scenes and of photographs. */
const [SCENES, PHOTOS] = ["scenes", "photo-en"];
/** Options of the view that belong to the address. */
const VIEW_OPTIONS = ["cells", "layout", "overlay"];

export async function show(root, context) {
  const { models, signal } = context;
  if (!models.length) {
    root.append(intro("Caption", "Where in an image each word of its caption looks."), noModels());
    return;
  }
  const { examples } = await get("/v1/caption/examples", { signal });
  const page = new CaptionPage(root, context, examples);
  page.start();
}

function noModels() {
  return emptyBox(html("p", {}, "This server has no captioner. Train one, and serve its folder: regard serve my-run"));
}

/** Whether a value of the address is left, top, right and bottom of a box. */
function isBox(value) {
  return Array.isArray(value) && value.length === 4 && value.every((edge) => edge >= 0 && edge <= 1);
}

class CaptionPage {
  constructor(root, context, examples) {
    this.context = context;
    this.examples = examples;
    this.state = read(DEFAULTS, { example: ["box"] });
    if (!isBox(this.state.box)) this.state.box = [];
    this.turn = turns(context.signal);
    this.image = null;
    /** Models that are known to have hard attention. */
    this.hard = new Set();
    this.result = html("div", { className: "result" });
    this.trust = html("section");
    this.pickerBox = html("div");
    const hint = this.has(PHOTOS) ? `or drop or paste one; ${PHOTOS} captions it` : "or drop or paste one";
    this.input = imageInput(examples, (image) => this.take(image, true), { signal: context.signal, hint });
    this.comparison = comparison(this);
    this.hiding = hiding(this);
    this.own = ownCaption(this);
    root.append(
      intro(
        "Caption",
        "Pick an image or drop your own. The model writes a caption; click a word to see which part of the image it " +
          "looked at when it wrote that word.",
      ),
      section("Image", this.input.node, this.pickerBox),
      section(
        "What each word looks at",
        this.comparison.controls,
        html("div", { className: "columns" }, this.result, this.comparison.panel),
      ),
      this.hiding.node,
      this.own.node,
      this.trust,
    );
  }

  /** The view options of the address, for every view of a caption. */
  get viewOptions() {
    return Object.fromEntries(VIEW_OPTIONS.map((name) => [name, this.state[name]]));
  }

  get model() {
    return this.state.model;
  }

  get body() {
    return { model: this.model, input: this.image.uri, example: this.image.name };
  }

  set(values) {
    Object.assign(this.state, values);
    write(values);
  }

  start() {
    const { model, example } = this.state;
    const named = this.examples.find((each) => each.name === example);
    const first = named ?? (this.has(model) ? this.exampleFor(model) : this.examples.find((each) => this.has(each.model)));
    const { image: uri, name, model: own } = first ?? this.examples[0];
    if (!this.has(model)) this.state.model = this.has(own) ? own : this.names[0];
    this.take({ uri, name }, false);
  }

  /** An image of the kind that a model knows: a generated scene only where it was trained on these. */
  exampleFor(model) {
    return this.examples.find((each) => (each.model === SCENES) === (model === SCENES));
  }

  /** That a model was not trained on images like the one that is shown; "" where it was, or where nobody knows. */
  get mismatch() {
    const example = this.examples.find((each) => each.name === this.image.name);
    if (!example && this.model === SCENES) return "scenes knows only generated shapes: choose another model for a photo.";
    if (!example || (example.model === SCENES) === (this.model === SCENES)) return "";
    const [known, shown] = this.model === SCENES ? ["generated shapes", "a photo"] : ["photos", "a generated scene"];
    return `${this.model} was trained on ${known}, and this is ${shown}: expect a wrong caption.`;
  }

  get names() {
    return this.context.models.map((each) => each.name);
  }

  has(name) {
    return this.names.includes(name);
  }

  /** Show an image. `choose` takes the model that was made for an example; a box belongs to one image only. */
  take(image, choose) {
    const changed = this.image !== null && this.image.uri !== image.uri;
    this.image = image;
    const example = this.examples.find((each) => each.name === image.name);
    this.input.mark(image.name);
    if (choose && example && this.has(example.model)) this.state.model = example.model;
    if (choose && !example && this.model === SCENES && this.has(PHOTOS)) this.state.model = PHOTOS;
    if (changed) this.state.box = [];
    this.set({ example: image.name || null, model: this.model, box: this.state.box });
    this.showPicker();
    this.hiding.reset();
    this.own.reset(example);
    this.comparison.reset();
    this.caption();
  }

  showPicker() {
    const note = html("p", { className: "mismatch", role: "status" });
    const tell = () => fill(note, this.mismatch);
    const chosen = (model) => {
      this.set({ model });
      tell();
      this.hiding.reset();
      this.comparison.reset();
      this.caption();
    };
    fill(this.pickerBox, modelPicker(this.context.models, this.model, chosen), note);
    tell();
  }

  async caption() {
    const answer = await this.look(this.result, this.model, this.turn(), () => this.caption());
    if (!answer) return;
    const heading = this.has(this.state.other) ? html("h3", {}, this.model) : null;
    fill(this.result, heading, this.shown(answer.caption, this.image.name));
    this.comparison.run();
    this.hiding.run();
    if (this.state.text) this.own.run();
    trustStrip(this.trust, { verb: "caption", model: this.model, input: this.image.uri });
  }

  /** The caption of a model; where it has hard attention and the page a seed, with cells that are drawn. */
  async look(root, model, signal, retry) {
    const { models } = this.context;
    const { seed } = this.state;
    const isHard = this.hard.has(model);
    const body = { ...this.body, model, ...(seed && isHard ? { seed } : {}) };
    const answer = await ask(root, { models, signal }, "/v1/caption/look", body, retry);
    // Only an answer tells that attention is hard: it names the cells that were chosen.
    if (!answer?.caption.trace?.series?.some((each) => each.name === "choice")) return answer;
    this.hard.add(model);
    return seed && !isHard ? this.look(root, model, signal, retry) : answer;
  }

  /** A caption with its view and what to know about it. */
  shown(caption, example) {
    const line = html("p", { className: "caption" }, html("q", {}, caption.text || "(no words)"));
    const words = caption.trace?.axes.find((axis) => axis.name === "target")?.labels ?? [];
    if (!words.length) {
      const why = caption.trace
        ? "The model ended the caption before its first word, so that no word looks anywhere."
        : "This model reads the image once; it has no attention to show.";
      return [line, html("p", { className: "quiet" }, why)];
    }
    const changed = (options) => this.set(Object.fromEntries(VIEW_OPTIONS.map((name) => [name, options[name]])));
    const gold = caption.trace.boxes?.length;
    const right = this.examples.find((each) => each.name === example)?.caption;
    return [
      line,
      right
        ? html(
            "p",
            { className: "quiet" },
            right === caption.text ? "This is the right caption." : ["A right caption: ", html("q", {}, right)],
          )
        : null,
      view("attention-image", caption.trace, this.viewOptions, changed),
      html(
        "ul",
        { className: "notes" },
        html(
          "li",
          {},
          html("b", {}, "Gate: "),
          "the bar below a word. Long: the image counted for this word. Short: the words before it were enough.",
        ),
        gold
          ? html(
              "li",
              {},
              html("b", {}, "Blue frame: "),
              "where the image really shows what the word names. Good attention is brightest inside.",
            )
          : null,
        caption.trace.series?.some((each) => each.name === "choice")
          ? html("li", {}, html("b", {}, "White frame: "), "the one cell that hard attention chose for the word.")
          : null,
      ),
    ];
  }
}

/** A caption of the user's own: how probable the model finds it, and where its words look. */
function ownCaption(page) {
  const result = html("div", { className: "result" });
  const turn = turns(page.context.signal);
  const input = html("input", { type: "text", maxLength: 400, placeholder: "a dog runs through the snow" });
  input.value = page.state.text;
  const gold = button("Use the right caption", () => {
    input.value = page.examples.find((each) => each.name === page.image.name)?.caption ?? "";
    run();
  });
  const run = async () => {
    const text = input.value.trim();
    page.set({ text });
    if (!text) return void fill(result);
    const body = { ...page.body, text };
    const context = { models: page.context.models, signal: turn() };
    const answer = await ask(result, context, "/v1/caption/look", body, run);
    if (!answer) return;
    const { caption, unknown } = answer;
    const log = caption.trace?.series?.find((each) => each.name === "log_prob");
    const sum = log ? log.values.reduce((total, each) => total + each, 0) : null;
    fill(
      result,
      sum === null
        ? null
        : html(
            "p",
            {},
            "Log-probability of these words: ",
            html("data", { value: String(sum), className: "number" }, fixed(sum, 2)),
          ),
      unknown.length
        ? html("p", {}, `${page.model} does not know ${unknown.map((word) => `“${word}”`).join(", ")}.`)
        : null,
      page.shown(caption, ""),
    );
  };
  const submit = (event) => {
    event.preventDefault();
    run();
  };
  const form = html(
    "form",
    { className: "row", onsubmit: submit },
    html("div", { className: "grow" }, field("Your caption", input)),
    html("button", { type: "submit" }, "Look"),
    gold,
  );
  const node = section(
    "Your own caption",
    html("p", { className: "quiet" }, "Write what the image shows: see where your words look, how likely they are."),
    form,
    result,
  );
  const reset = (example) => {
    gold.hidden = !example;
    fill(result);
  };
  return { node, run, reset };
}

