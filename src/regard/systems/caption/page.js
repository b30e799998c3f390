// The page Caption: where in an image each word of its caption looks, and what changes when the image does.

import { fill, html } from "/web/dom.js";
import { fixed } from "/web/colours.js";
import { ImagePage } from "/pages/page.js";
import { button, field, number, section, select, textForm, view } from "/pages/parts.js";
import { hiding } from "/systems/caption/hide.js";

/** The shipped captioners of generated scenes and of photographs, and that of scenes with hard attention. */
const [SCENES, PHOTOS, HARD] = ["scenes", "photo-en", "scenes-hard"];
/** Options of the view that belong to the address. */
const VIEW = { cells: false, layout: "word", overlay: "light" };

const GATE = "the bar below a word. Long: the image counted for this word. Short: the words before it were enough.";

/** Whether a value of the address is left, top, right and bottom of a box. */
function isBox(value) {
  return Array.isArray(value) && value.length === 4 && value.every((edge) => edge >= 0 && edge <= 1);
}

/** Whether a caption is of hard attention, which names the cells that it chose. */
function isHard({ trace }) {
  return Boolean(trace?.series?.some((each) => each.name === "choice"));
}

export default class CaptionPage extends ImagePage {
  static heading = "Caption";
  static lead =
    "Pick an image or drop your own. The model writes a caption; click a word to see which part of the image it " +
    "looked at when it wrote that word.";
  static parts = { example: ["box"] };
  static fresh = { box: [] };
  /** Models that are known to have hard attention. */
  hard = new Set();

  get defaults() {
    return { model: "", example: "", other: "", seed: 0, text: "", box: [], ...VIEW };
  }

  build() {
    if (!isBox(this.state.box)) this.state.box = [];
    this.pickerBox = html("div");
    this.note = html("p.mismatch", { role: "status" });
    this.second = html("div.result", { hidden: true });
    this.hiding = hiding(this);
    this.own = ownCaption(this);
    this.compare = this.#comparison();
    const hint = this.served(PHOTOS) ? `or drop or paste one; ${PHOTOS} captions it` : undefined;
    return [
      section("Image", this.chooser(hint), this.pickerBox, this.note),
      section("What each word looks at", this.compare.node, html("div.columns", this.result, this.second)),
      this.hiding.node,
      this.own.node,
      this.trust,
    ];
  }

  /** The example of the address; or one for the model of the address, or one that a model of this server knows. */
  get first() {
    const { model, example } = this.state;
    const named = this.examples.find((each) => each.name === example);
    // A generated scene only for the model that was trained on these.
    const suits = (each) => (model ? (each.model === SCENES) === (model === SCENES) : this.served(each.model));
    return named ?? this.examples.find(suits) ?? this.examples[0];
  }

  begin() {
    this.state.model ||= this.served(this.first.model)?.name ?? this.preferred;
    return super.begin();
  }

  /** That a model was not trained on images like the one that is shown; "" where it was, or where nobody knows. */
  get mismatch() {
    const { example } = this;
    const knowsScenes = this.state.model === SCENES;
    if (!example && knowsScenes) return "scenes knows only generated shapes: choose another model for a photo.";
    if (!example || (example.model === SCENES) === knowsScenes) return "";
    const [known, shown] = knowsScenes ? ["generated shapes", "a photo"] : ["photos", "a generated scene"];
    return `${this.state.model} was trained on ${known}, and this is ${shown}: expect a wrong caption.`;
  }

  /** Show an image; one that the user has chosen, with the model that was made for such images. */
  take(image, isChosen) {
    this.change(image);
    const { example } = this;
    if (isChosen && this.served(example?.model)) this.set({ model: example.model });
    if (isChosen && !example && this.state.model === SCENES && this.served(PHOTOS)) this.set({ model: PHOTOS });
    this.set({ model: this.state.model });
    fill(this.pickerBox, this.picker());
    this.own.reset();
    return this.run();
  }

  run() {
    fill(this.note, this.mismatch);
    this.hiding.reset();
    this.compare.reset();
    return this.#caption();
  }

  async #caption() {
    const { model, text } = this.state;
    const answer = await this.#look(this.result, model, () => this.#caption());
    if (!answer) return;
    fill(this.result, this.served(this.state.other) ? html("h3", model) : null, this.shown(answer.caption));
    this.compare.run();
    this.hiding.run();
    if (text) this.own.run(text);
    this.measure(this.image.uri);
  }

  /** What a question about the image has. */
  get body() {
    return { input: this.image.uri, example: this.image.name };
  }

  /** The caption of a model; where it has hard attention and the page a seed, with cells that are drawn. */
  async #look(container, model, retry) {
    const { seed } = this.state;
    const wasHard = this.hard.has(model);
    const body = { ...this.body, model, ...(seed && wasHard ? { seed } : {}) };
    const answer = await this.ask(container, "inspect", body, { retry });
    // Only an answer tells that attention is hard.
    if (!answer || !isHard(answer.caption)) return answer;
    this.hard.add(model);
    return seed && !wasHard ? this.#look(container, model, retry) : answer;
  }

  /** A caption with its view and what to know about it; `isOwn` where it is not that of the image. */
  shown(caption, { isOwn = false } = {}) {
    const line = html("p.caption", html("q", caption.text || "(no words)"));
    const words = caption.trace?.axes.find((axis) => axis.name === "target")?.labels ?? [];
    if (!words.length) {
      const why = caption.trace
        ? "The model ended the caption before its first word, so that no word looks anywhere."
        : "This model reads the image once; it has no attention to show.";
      return [line, html("p.quiet", why)];
    }
    const chosen = (values) => Object.fromEntries(Object.keys(VIEW).map((name) => [name, values[name]]));
    const right = isOwn ? undefined : this.example?.caption;
    const judged = right === caption.text ? "This is the right caption." : ["A right caption: ", html("q", right)];
    const note = (name, text) => html("li", html("b", `${name}: `), text);
    const notes = [
      note("Gate", GATE),
      caption.trace.boxes?.length &&
        note("Blue frame", "where the image really shows what the word names. Good attention is brightest inside."),
      isHard(caption) && note("White frame", "the one cell that hard attention chose for the word."),
    ];
    return [
      line,
      caption.caution && !isOwn ? html("p.foreign", { role: "status" }, caption.caution) : null,
      right ? html("p.quiet", judged) : null,
      view("attention-image", caption.trace, chosen(this.state), (options) => this.set(chosen(options))),
      html("ul.notes", notes.filter(Boolean)),
    ];
  }

  /** A second captioner beside the first, such as hard attention beside soft, and other draws: {node, reset, run}. */
  #comparison() {
    const chooser = html("div");
    const redraw = (seed) => {
      this.set({ seed });
      return this.hard.has(this.state.model) ? this.#caption() : run();
    };
    const again = button("Draw again", () => redraw(this.state.seed + 1));
    const likely = button("Most probable cells", () => redraw(0));
    const seedNote = html("span.quiet", { role: "status" });
    const draws = html("div.row.draws", { hidden: true }, again, likely, seedNote);
    const both = button("Soft against hard", () => {
      this.set({ model: SCENES, other: HARD, seed: 0 });
      // On a photograph both would fail alike.
      const isScene = this.example && this.example.model === SCENES;
      const scene = !isScene && this.examples.find((each) => each.model === SCENES);
      this.take(scene ? { uri: scene.image, name: scene.name } : this.image, false);
    });
    const showDraws = () => {
      const { model, other, seed } = this.state;
      draws.hidden = ![model, other].some((name) => this.hard.has(name));
      seedNote.textContent = seed ? `Cells drawn with seed ${seed}` : "The most probable cell for each word";
      likely.disabled = !seed;
    };
    const run = async () => {
      const { other } = this.state;
      showDraws();
      this.second.hidden = !this.served(other);
      if (this.second.hidden) return void fill(this.second);
      const answer = await this.#look(this.second, other, run);
      if (!answer) return;
      fill(this.second, html("h3", other), this.shown(answer.caption));
      showDraws();
    };
    const reset = () => {
      this.turn(this.second);
      const others = this.models.map(({ name }) => name).filter((name) => name !== this.state.model);
      if (!others.includes(this.state.other)) this.state.other = "";
      const chosen = (other) => {
        this.set({ other });
        this.run();
      };
      fill(chooser, field("Compare with", select([["", "nothing"], ...others], this.state.other, chosen)));
      both.hidden = ![SCENES, HARD].every((name) => this.served(name)) || this.state.other === HARD;
      draws.hidden = true;
      this.second.hidden = !this.state.other;
    };
    const note =
      "Soft attention averages over all cells for each word; hard attention picks one cell, and can draw it again.";
    return { node: html("div.compare", chooser, both, draws, html("small", note)), reset, run };
  }
}

/** A caption of the user's own: how probable the model finds it, and where its words look: {node, reset, run}. */
function ownCaption(page) {
  const result = html("div.result");
  const input = html("input", { type: "text", maxLength: 400, placeholder: "a dog runs through the snow" });
  input.value = page.state.text;
  const gold = button("Use the right caption", () => {
    input.value = page.example?.caption ?? "";
    run(input.value);
  });
  const run = async (text) => {
    page.set({ text });
    if (!text) return void fill(result);
    const answer = await page.ask(result, "inspect", { ...page.body, text }, { retry: () => run(text) });
    if (!answer) return;
    const { caption, unknown } = answer;
    const values = caption.trace?.series?.find((each) => each.name === "log_prob")?.values;
    const sum = values?.reduce((total, each) => total + each, 0);
    const names = unknown.map((word) => `“${word}”`).join(", ");
    fill(
      result,
      values ? html("p", "Log-probability of these words: ", number(sum, fixed(sum, 2), "number")) : null,
      names ? html("p", `${page.state.model} does not know ${names}.`) : null,
      page.shown(caption, { isOwn: true }),
    );
  };
  const node = section(
    "Your own caption",
    html("p.quiet", "Write what the image shows: see where your words look, how likely they are."),
    textForm("Your caption", input, "Look", run, gold),
    result,
  );
  const reset = () => {
    gold.hidden = !page.example;
    fill(result);
  };
  return { node, reset, run };
}
