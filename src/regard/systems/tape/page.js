// The page Tape: a machine that writes a sequence to its memory and reads it back, at any length.

import { fill, html } from "/web/dom.js";
import { Page } from "/pages/page.js";
import { bar, button, debounced, field, number, scrollTable, section, select } from "/pages/parts.js";
import { tableRow, textForm, view } from "/pages/parts.js";

/** Sizes of the memory to choose from; 0 for that of the training. */
const SLOTS = [0, 64, 256, 512];
const MAX_SEED = 2 ** 32 - 1;
const PER_LENGTH = 8;

export default class TapePage extends Page {
  static heading = "Tape";
  static lead =
    "A neural Turing machine reads a sequence, writes it to its memory, and answers from there. Watch its heads " +
    "move, and make the sequence longer than any it was trained on.";

  get defaults() {
    return { length: 0, seed: 1, slots: 0, rows: "", vectors: false, allSlots: false };
  }

  build() {
    const { state } = this;
    if (!SLOTS.includes(state.slots)) state.slots = 0;
    if (!Number.isInteger(state.seed) || state.seed < 0 || state.seed > MAX_SEED) state.seed = 1;
    this.own = html("input", { type: "text", maxLength: 4000, value: state.rows, placeholder: "01100101 10010110" });
    const later = debounced(() => this.run(), 250);
    this.slider = lengthSlider((length) => {
      this.#forgetRows({ length });
      later();
    });
    const sizes = SLOTS.map((count) => [count, count ? String(count) : "as in training"]);
    const slots = select(sizes, state.slots, (count) => {
      this.set({ slots: Number(count) });
      this.run();
    });
    const another = button("Another sequence", () => {
      this.#forgetRows({ seed: state.seed + 1 });
      this.run();
    });
    const runOwn = (rows) => {
      this.set({ rows });
      this.run();
    };
    const picker = this.picker(() => {
      this.scores.reset();
      this.own.value = "";
      return { length: 0, rows: "" };
    });
    this.scores = this.#lengths();
    const tools = html("div.row", html("div.grow", this.slider.node), field("Slots of the memory", slots), another);
    const form = textForm("Or bits of your own, rows separated by spaces", this.own, "Run", runOwn);
    return [
      section("Sequence", picker, tools, form),
      section("The machine at work", this.result),
      this.scores.node,
      this.trust,
    ];
  }

  #forgetRows(values) {
    this.set({ ...values, rows: "" });
    this.own.value = "";
  }

  async run() {
    const turn = (this.running = Symbol("turn"));
    const isShown = (await this.#learn()) && (await (this.state.rows ? this.#runOwn() : this.#runRandom()));
    if (isShown || turn !== this.running || this.signal.aborted) return;
    // Only the message stays: what was shown before does not answer what was asked.
    for (const each of this.result.querySelectorAll(":scope > :not(.error)")) each.remove();
    this.forget();
  }

  /** Find out which lengths the model knows, where the address has a length or rows; resolves to whether it is so. */
  async #learn() {
    const { model, length, rows } = this.state;
    if (this.slider.model === model || !(length || rows)) return true;
    const answer = await this.ask(this.result, "random", {});
    if (!answer) return false;
    const { shortest, longest } = answer;
    if (length) this.set({ length: Math.min(longest, Math.max(1, shortest, Math.round(length))) });
    this.slider.set({ ...answer, length: this.state.length || answer.length });
    return true;
  }

  async #runOwn() {
    const { slots, rows } = this.state;
    const answer = await this.ask(this.result, "", { input: rows, options: { slots }, trace: true });
    if (!answer) return false;
    const count = rows.split(/\s+/).length;
    this.#show(answer.results[0], `${count} ${count === 1 ? "row" : "rows"} of your own.`);
    this.measure(rows, { slots });
    return true;
  }

  async #runRandom() {
    const { length, seed, slots } = this.state;
    const answer = await this.ask(this.result, "random", { seed, slots, ...(length ? { length } : {}) });
    if (!answer) return false;
    this.slider.set(answer);
    this.#show(answer.result, described(answer));
    this.measure(answer.result.sequence, { slots: answer.slots });
    return true;
  }

  #show({ text, wrong, bits, trace }, line) {
    const count = text.replaceAll(" ", "").length;
    const verdict = wrong ? `${wrong} of ${count} bits wrong.` : `All ${count} bits right.`;
    const mark = html("b", { className: wrong ? "bad" : "good" }, verdict);
    const changed = ({ vectors, allSlots }) => this.set({ vectors, allSlots });
    const { vectors, allSlots } = this.state;
    fill(
      this.result,
      html("p.verdict", mark, ` ${line} `, number(bits, bits.toFixed(3)), " bits would correct the answer."),
      trace
        ? view("attention-tape", trace, { vectors, allSlots }, changed)
        : html("p.quiet", "This machine has no memory to show."),
      reading(),
    );
  }

  /** How right the answers are at each length, measured on request: {node, reset}. */
  #lengths() {
    const box = html("div.result");
    const pick = (length) => this.slider.pick(length);
    const measure = async () => {
      const { model } = this.state;
      const scores = [];
      const [rows, message] = [html("div"), html("span", `Measuring ${model} …`)];
      const onResult = (score) => {
        scores.push(score);
        if (model === this.state.model) fill(rows, drawn(scores, pick));
      };
      const onProgress = (done, of) => (message.textContent = `Measuring ${model}: ${done} of ${of} lengths …`);
      fill(box, rows);
      const listeners = { onResult, onProgress, message, retry: measure };
      await this.stream(box, "lengths", { model, per_length: PER_LENGTH }, listeners);
    };
    const reset = () => {
      this.turn(box);
      fill(box, button("Measure", measure), html("small", ` ${PER_LENGTH} random sequences of each length.`));
    };
    reset();
    const about = "Bits right on fresh sequences, from the longest of the training on.";
    return { node: section("How far does it generalise?", html("p.quiet", about), box), reset };
  }
}

function described({ length, unit, trained, slots, task }) {
  const beyond = length > trained[1] ? `, ${(length / trained[1]).toFixed(1)} times the longest of its training` : "";
  return `Task ${task}, ${length} ${unit}${beyond}; a memory of ${slots} slots.`;
}

/** How to read the picture. */
function reading() {
  const line = (name, text) => html("li", html("b", `${name}: `), text);
  return html(
    "ul.notes",
    line("Write and read", "where each head is, slot by slot. A diagonal means one slot further in each step."),
    line("Gates", "near 1 the head searches the memory by content, near 0 it starts from its last position."),
    line("Memory over time", "how much each slot holds after each step."),
  );
}

/** The slider for the length, which marks where the training ends. `set` takes an answer of the server. */
function lengthSlider(changed) {
  const output = html("output");
  const help = html("small");
  const input = html("input", { type: "range", min: 1, max: 20, value: 20 });
  const ticks = html("span.trained", { "aria-hidden": "true" });
  let known = null;
  const describe = () => {
    const [, longest] = known.trained;
    const value = Number(input.value);
    output.textContent = `${value} ${known.unit}`;
    output.classList.toggle("beyond", value > longest);
    help.textContent =
      value > longest
        ? `Longer than anything in training, which ended at ${longest}.`
        : `Within the lengths of the training, up to ${longest}. Move on to go beyond.`;
    ticks.style.width = `${(100 * (longest - input.min)) / (input.max - input.min)}%`;
  };
  const moved = () => {
    if (known) describe();
    changed(Number(input.value));
  };
  input.addEventListener("input", moved);
  const set = (answer) => {
    known = answer;
    [input.min, input.max] = [Math.max(1, answer.shortest), answer.longest];
    input.value = answer.length;
    describe();
  };
  const pick = (length) => {
    input.value = length;
    moved();
  };
  const rail = html("div.rail", ticks);
  const node = html("div.slider", field("Length of the sequence", input), rail, html("div", output, " ", help));
  return {
    node,
    set,
    pick,
    /** The model whose lengths it shows. */
    get model() {
      return known?.model;
    },
  };
}

function drawn(scores, pick) {
  const rows = scores.map(({ length, bits_right: right, exact }) => {
    const chosen = button(String(length), () => pick(length), { title: "Show such a sequence" });
    const shares = [number(right, `${right.toFixed(1)} %`), number(exact, `${exact.toFixed(0)} %`)];
    return tableRow(chosen, bar(right / 100), shares);
  });
  return scrollTable("Scores by length", ["length", "", "bits right", "no wrong bit"], rows, { className: "lengths" });
}
