// The page Glimpse: a digit recognized by a few small glimpses, which can be dragged elsewhere.

import { fill, html } from "/web/dom.js";
import { get } from "/pages/api.js";
import { ask, button, debounced, emptyBox, field, modelPicker, section, turns } from "/pages/parts.js";
import { bar, imageInput, intro, scrollTable, view } from "/pages/pictures.js";
import { read, write } from "/pages/state.js";
import { trustStrip } from "/pages/trust.js";

export const title = "Glimpse";

const DEFAULTS = { model: "", example: "", glimpses: 0, places: [] };
const MAX_GLIMPSES = 12;

export async function show(root, context) {
  const { models, signal } = context;
  const head = intro(
    "Glimpse",
    "This model never sees the whole image. It takes a few small glimpses, decides after each where to look next, " +
      "and then says which digit it saw. Drag a glimpse elsewhere, and the rest follows from there.",
  );
  if (!models.length) return void root.append(head, emptyBox("This server has no glimpse model."));
  const { examples } = await get("/v1/glimpse/examples", { signal });
  new GlimpsePage(root, context, examples, head).start();
}

/** Whether a value of the address is the number of a glimpse and its x and y. */
function isPlace(value) {
  const [number, x, y] = Array.isArray(value) ? value : [];
  return Number.isInteger(number) && number >= 0 && [x, y].every((part) => part >= 0 && part <= 1);
}

class GlimpsePage {
  constructor(root, context, examples, head) {
    Object.assign(this, { context, examples });
    this.state = read(DEFAULTS, { example: ["places"] });
    const { glimpses } = this.state;
    this.state.glimpses = Math.max(0, Math.min(MAX_GLIMPSES, Math.round(glimpses)));
    this.state.places = [this.state.places].flat().filter(isPlace);
    const names = context.models.map((each) => each.name);
    if (!names.includes(this.state.model)) this.state.model = names[0];
    this.turn = turns(context.signal);
    this.image = null;
    this.view = null;
    this.result = html("div", { className: "result" });
    this.verdict = html("div", { className: "result", role: "status" });
    this.beliefs = html("div", { className: "result" });
    this.trust = html("section");
    const take = (image) => {
      this.set({ places: [] });
      this.take(image);
    };
    this.input = imageInput(examples, take, { signal: context.signal, drawing: true });
    const picked = (model) => {
      this.set({ model, places: [] });
      this.run();
    };
    this.count = html("input", { type: "range", min: 1, max: MAX_GLIMPSES, value: this.state.glimpses || 4 });
    this.countLabel = html("output");
    const later = debounced(() => this.run(), 200);
    this.count.addEventListener("input", () => {
      const glimpses = Number(this.count.value);
      this.set({ glimpses, places: this.state.places.filter(([number]) => number < glimpses) });
      this.countLabel.textContent = `${glimpses}`;
      later();
    });
    root.append(
      head,
      section(
        "Image",
        this.input.node,
        modelPicker(context.models, this.state.model, picked),
        html("div", { className: "slider" }, field("Number of glimpses", this.count), this.countLabel),
      ),
      section("Where it looks, what it sees, what it believes", this.verdict, this.result),
      section("What your glimpse changes", this.beliefs),
      this.trust,
    );
  }

  set(values) {
    Object.assign(this.state, values);
    write(values);
  }

  start() {
    const named = this.examples.find((each) => each.name === this.state.example);
    const first = named ?? this.examples[0];
    this.take({ uri: first.image, name: first.name });
  }

  take(image) {
    this.image = image;
    this.input.mark(image.name);
    this.set({ example: image.name || null });
    this.run();
  }

  /** Ask for the path of the model alone, and, where glimpses are forced, for the path with them. */
  async run() {
    const { model, glimpses, places } = this.state;
    const context = { models: this.context.models, signal: this.turn() };
    const body = { model, input: this.image.uri, num_glimpses: glimpses };
    const usual = await ask(this.result, context, "/v1/glimpse/at", body, () => this.run());
    if (!usual) return;
    const count = usual.beliefs.length;
    this.count.value = count;
    this.countLabel.textContent = String(count);
    const kept = places.filter(([number]) => number < count);
    let now = usual;
    if (kept.length) {
      const forced = Object.fromEntries(kept.map(([glimpse, ...place]) => [glimpse, place]));
      now = await ask(this.result, context, "/v1/glimpse/at", { ...body, places: forced }, () => this.run());
      if (!now) return;
    }
    this.showPath(now);
    this.showVerdict(now);
    this.measure(count);
    fill(this.beliefs, kept.length ? [beliefTable(usual, now, kept), this.releases(kept)] : dragHint());
  }

  /** How far to trust the path of the model alone, once for each image, model and number of glimpses. */
  measure(count) {
    const { model } = this.state;
    const asked = [model, count, this.image.uri].join();
    if (asked === this.measured) return;
    this.measured = asked;
    const options = { num_glimpses: count };
    trustStrip(this.trust, { verb: "glimpse", model, input: this.image.uri, options });
  }

  /** Show a path in one element for all answers, so that the keyboard keeps its place. */
  showPath({ trace, beliefs }) {
    if (this.view?.isConnected) {
      const row = this.view.pinned?.row ?? beliefs.length;
      this.view.trace = trace;
      if (row < beliefs.length) this.view.pinned = { row, column: null };
      return;
    }
    this.view = view("attention-glimpses", trace, { movable: true });
    this.view.addEventListener("attention-glimpse", ({ detail: { glimpse, x, y } }) => {
      const rounded = [x, y].map((part) => Math.round(1000 * part) / 1000);
      const others = this.state.places.filter(([number]) => number !== glimpse);
      this.set({ places: [...others, [glimpse, ...rounded]].sort((one, other) => one[0] - other[0]) });
      this.run();
    });
    fill(this.result, this.view);
  }

  showVerdict(now) {
    const example = this.examples.find((each) => each.name === this.image.name);
    const right = example && example.caption === `the digit ${now.label}`;
    const says = [
      "It says ",
      html("b", { className: "answer" }, now.label),
      " with probability ",
      html("data", { value: String(now.probability), className: "number" }, now.probability.toFixed(3)),
      example ? (right ? ", which is right." : `, which is wrong: it is ${example.caption}.`) : ".",
    ];
    fill(this.verdict, html("p", { className: "verdict" }, says));
  }

  /** Buttons that give glimpses back to the model. */
  releases(kept) {
    const release = (number) => {
      this.set({ places: this.state.places.filter(([each]) => each !== number) });
      this.run();
    };
    const chips = kept.map(([number, x, y]) =>
      button(`Release glimpse ${number + 1} (${percent(x)}, ${percent(y)})`, () => release(number)),
    );
    const all = kept.length > 1 ? button("Release all", () => (this.set({ places: [] }), this.run())) : null;
    return html("div", { className: "row" }, chips, all);
  }
}

function dragHint() {
  return html(
    "p",
    { className: "quiet" },
    "Drag a number in the image to another place: that glimpse is taken there, and the model chooses the later ones " +
      "after what it saw. With the keyboard: choose a glimpse with the arrow keys, move it with Shift and arrow keys.",
  );
}

/** How probable the first answer was after each glimpse, with and without the forced ones. */
function beliefTable(usual, now, kept) {
  const place = usual.labels.indexOf(usual.label);
  const forced = new Set(kept.map(([number]) => number));
  const rows = now.beliefs.map((beliefs, number) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, `${number + 1}${forced.has(number) ? " (yours)" : ""}`),
      [usual.beliefs[number][place], beliefs[place]].map((each) => html("td", {}, bar(each, each, each.toFixed(2)))),
      html("td", {}, best(now.labels, beliefs)),
    ),
  );
  const heads = ["glimpse", "model alone", "with yours", "now it believes"];
  const caption = `Probability of ${usual.label} after each glimpse`;
  const sentence =
    usual.label === now.label
      ? `The answer stays ${now.label}.`
      : `The answer changes from ${usual.label} to ${now.label}.`;
  return [html("p", {}, sentence), scrollTable("Belief after each glimpse", heads, rows, { caption })];
}

function best(labels, beliefs) {
  const top = beliefs.indexOf(Math.max(...beliefs));
  return `${labels[top]} (${beliefs[top].toFixed(2)})`;
}

function percent(share) {
  return `${Math.round(100 * share)} %`;
}
