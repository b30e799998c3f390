// The page Glimpse: a digit recognized by a few small glimpses, which can be dragged elsewhere.

import { fill, html } from "/web/dom.js";
import { ImagePage } from "/pages/page.js";
import { bar, button, debounced, field, number, scrollTable, section, tableRow, view } from "/pages/parts.js";

const MAX_GLIMPSES = 12;

/** Whether a value of the address is the number of a glimpse and its x and y. */
function isLocation(value) {
  const [glimpse, x, y] = Array.isArray(value) ? value : [];
  return Number.isInteger(glimpse) && glimpse >= 0 && [x, y].every((part) => part >= 0 && part <= 1);
}

export default class GlimpsePage extends ImagePage {
  static heading = "Glimpse";
  static lead =
    "This model never sees the whole image. It takes a few small glimpses, decides after each where to look next, " +
    "and then says which digit it saw. Drag a glimpse elsewhere, and the rest follows from there.";
  static isDrawing = true;
  static fresh = { locations: [] };
  static parts = { example: ["locations"] };

  get defaults() {
    return { example: "", glimpses: 0, locations: [] };
  }

  build() {
    const { state } = this;
    state.glimpses = Math.max(0, Math.min(MAX_GLIMPSES, Math.round(state.glimpses)));
    state.locations = [state.locations].flat().filter(isLocation);
    this.verdict = html("div.result", { role: "status" });
    this.beliefs = html("div.result");
    this.count = html("input", { type: "range", min: 1, max: MAX_GLIMPSES, value: state.glimpses || 4 });
    this.countLabel = html("output");
    const later = debounced(() => this.run(), 200);
    this.count.addEventListener("input", () => {
      const glimpses = Number(this.count.value);
      this.set({ glimpses, locations: state.locations.filter(([glimpse]) => glimpse < glimpses) });
      this.countLabel.textContent = `${glimpses}`;
      later();
    });
    const slider = html("div.slider", field("Number of glimpses", this.count), this.countLabel);
    return [
      section("Image", this.chooser(), this.picker(() => ({ locations: [] })), slider),
      section("Where it looks, what it sees, what it believes", this.verdict, this.result),
      section("What your glimpse changes", this.beliefs),
      this.trust,
    ];
  }

  /** Ask for the path of the model alone, and, where glimpses are forced, for the path with them. */
  async run() {
    const { glimpses, locations } = this.state;
    const body = { input: this.image.uri, num_glimpses: glimpses };
    const usual = await this.ask(this.result, "at", body);
    if (!usual) return;
    const count = usual.beliefs.length;
    this.count.value = count;
    this.countLabel.textContent = String(count);
    const kept = locations.filter(([glimpse]) => glimpse < count);
    const forced = Object.fromEntries(kept.map(([glimpse, ...location]) => [glimpse, location]));
    const now = kept.length ? await this.ask(this.result, "at", { ...body, locations: forced }) : usual;
    if (!now) return;
    this.#showPath(now);
    this.#showVerdict(now);
    fill(this.beliefs, kept.length ? [beliefTable(usual, now, kept), this.#releases(kept)] : dragHint());
    // The trust in the path of the model alone, once for each image, model and number of glimpses.
    const measured = [this.state.model, count, this.image.uri].join();
    if (measured === this.measured) return;
    this.measured = measured;
    this.measure(this.image.uri, { num_glimpses: count });
  }

  /** Show a path in one element for all answers, so that the keyboard keeps its place. */
  #showPath({ trace, beliefs }) {
    if (this.view?.isConnected) {
      const row = this.view.pinned?.row ?? beliefs.length;
      this.view.trace = trace;
      if (row < beliefs.length) this.view.pinned = { row, column: null };
      return;
    }
    this.view = view("attention-glimpses", trace, { movable: true });
    this.view.addEventListener("attention-glimpse", ({ detail: { glimpse, x, y } }) => {
      const rounded = [x, y].map((part) => Math.round(1000 * part) / 1000);
      const others = this.state.locations.filter(([each]) => each !== glimpse);
      this.#force([...others, [glimpse, ...rounded]].sort((one, other) => one[0] - other[0]));
    });
    fill(this.result, this.view);
  }

  #force(locations) {
    this.set({ locations });
    this.run();
  }

  #showVerdict({ label, probability }) {
    const right = this.example && this.example.caption === `the digit ${label}`;
    const judged = right ? ", which is right." : `, which is wrong: it is ${this.example?.caption}.`;
    const share = number(probability, probability.toFixed(3), "number");
    const says = ["It says ", html("b.answer", label), " with probability ", share, this.example ? judged : "."];
    fill(this.verdict, html("p.verdict", says));
  }

  /** Buttons that give glimpses back to the model. */
  #releases(kept) {
    const rounded = (share) => `${Math.round(100 * share)} %`;
    const chips = kept.map(([glimpse, x, y]) => {
      const release = () => this.#force(this.state.locations.filter(([each]) => each !== glimpse));
      return button(`Release glimpse ${glimpse + 1} (${rounded(x)}, ${rounded(y)})`, release);
    });
    return html("div.row", chips, kept.length > 1 ? button("Release all", () => this.#force([])) : null);
  }
}

function dragHint() {
  const text =
    "Drag a number in the image to another place: that glimpse is taken there, and the model chooses the later ones " +
    "after what it saw. With the keyboard: choose a glimpse with the arrow keys, move it with Shift and arrow keys.";
  return html("p.quiet", text);
}

/** How probable the first answer was after each glimpse, with and without the forced ones. */
function beliefTable(usual, now, kept) {
  const index = usual.labels.indexOf(usual.label);
  const forced = new Set(kept.map(([glimpse]) => glimpse));
  const rows = now.beliefs.map((beliefs, glimpse) => {
    const shares = [usual.beliefs[glimpse][index], beliefs[index]];
    const head = `${glimpse + 1}${forced.has(glimpse) ? " (yours)" : ""}`;
    return tableRow(head, shares.map((each) => bar(each, each, each.toFixed(2))), best(now.labels, beliefs));
  });
  const heads = ["glimpse", "model alone", "with yours", "now it believes"];
  const caption = `Probability of ${usual.label} after each glimpse`;
  const [one, other] = [usual.label, now.label];
  const sentence = one === other ? `The answer stays ${one}.` : `The answer changes from ${one} to ${other}.`;
  return [html("p", sentence), scrollTable("Belief after each glimpse", heads, rows, { caption })];
}

function best(labels, beliefs) {
  const top = beliefs.indexOf(Math.max(...beliefs));
  return `${labels[top]} (${beliefs[top].toFixed(2)})`;
}
