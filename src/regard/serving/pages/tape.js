// The page Tape: a machine that writes a sequence to its memory and reads it back, at any length.

import { fill, html } from "/web/dom.js";
import { stream } from "/pages/api.js";
import { ask, busy, button, debounced, emptyBox, field, modelPicker, section, select, turns } from "/pages/parts.js";
import { bar, intro, scrollTable, view } from "/pages/pictures.js";
import { read, write } from "/pages/state.js";
import { clearTrust, trustStrip } from "/pages/trust.js";

export const title = "Tape";

const DEFAULTS = { model: "", length: 0, seed: 1, slots: 0, rows: "", vectors: false, allSlots: false };
/** Sizes of the memory to choose from; 0 for that of the training. */
const SLOTS = [0, 64, 256, 512];
const MAX_SEED = 2 ** 32 - 1;

export async function show(root, context) {
  const { models, signal } = context;
  const head = intro(
    "Tape",
    "A neural Turing machine reads a sequence, writes it to its memory, and answers from there. Watch its heads " +
      "move, and make the sequence longer than any it was trained on.",
  );
  if (!models.length) return void root.append(head, emptyBox("This server has no memory machine."));
  const state = read(DEFAULTS);
  const names = models.map((each) => each.name);
  if (!names.includes(state.model)) state.model = names[0];
  if (!SLOTS.includes(state.slots)) state.slots = DEFAULTS.slots;
  if (!Number.isInteger(state.seed) || state.seed < 0 || state.seed > MAX_SEED) state.seed = DEFAULTS.seed;
  const set = (values) => {
    Object.assign(state, values);
    write(values);
  };
  const result = html("div", { className: "result" });
  const trust = html("section");
  const turn = turns(signal);
  const slider = lengthSlider((length) => {
    set({ length, rows: "" });
    own.value = "";
    later();
  });
  const own = html("input", { type: "text", maxLength: 4000, value: state.rows, placeholder: "01100101 10010110" });
  const chart = lengthChart({ context, state, pick: (length) => slider.pick(length) });

  const run = async () => {
    const context = { models, signal: turn() };
    const isShown = (await learn(context)) && (await (state.rows ? runOwn(context) : runRandom(context)));
    if (isShown || context.signal.aborted) return;
    // Only the message stays: what was shown before does not answer what was asked.
    for (const each of result.querySelectorAll(":scope > :not(.error)")) each.remove();
    clearTrust(trust);
  };
  /** Find out which lengths the model knows, where the address has a length or rows; resolves to whether it is known. */
  const learn = async (context) => {
    const { model, length, rows } = state;
    if (slider.model === model || !(length || rows)) return true;
    const answer = await ask(result, context, "/v1/tape/random", { model }, run);
    if (!answer) return false;
    if (length) set({ length: Math.min(answer.longest, Math.max(1, answer.shortest, Math.round(length))) });
    slider.set({ ...answer, length: state.length || answer.length });
    return true;
  };
  const runOwn = async (context) => {
    const { model, slots, rows } = state;
    const body = { model, input: rows, options: { slots }, trace: true };
    const answer = await ask(result, context, "/v1/tape", body, run);
    if (!answer) return false;
    const count = rows.split(/\s+/).length;
    showResult(answer.results[0], `${count} ${count === 1 ? "row" : "rows"} of your own.`);
    trustStrip(trust, { verb: "tape", model, input: rows, options: { slots } });
    return true;
  };
  const runRandom = async (context) => {
    const { model, length, seed, slots } = state;
    const body = { model, seed, slots, ...(length ? { length } : {}) };
    const answer = await ask(result, context, "/v1/tape/random", body, run);
    if (!answer) return false;
    slider.set(answer);
    showResult(answer.result, described(answer));
    const { sequence } = answer.result;
    trustStrip(trust, { verb: "tape", model, input: sequence, options: { slots: answer.slots } });
    return true;
  };
  const later = debounced(run, 250);
  const showResult = (tape, line) => {
    const bits = tape.text.replaceAll(" ", "").length;
    const verdict = tape.wrong ? `${tape.wrong} of ${bits} bits wrong.` : `All ${bits} bits right.`;
    const mark = html("b", { className: tape.wrong ? "bad" : "good" }, verdict);
    const lost = html("data", { value: String(tape.bits) }, tape.bits.toFixed(3));
    const changed = ({ vectors, allSlots }) => set({ vectors, allSlots });
    const options = { vectors: state.vectors, allSlots: state.allSlots };
    fill(
      result,
      html("p", { className: "verdict" }, mark, ` ${line} `, lost, " bits would correct the answer."),
      tape.trace
        ? view("attention-tape", tape.trace, options, changed)
        : html("p", { className: "quiet" }, "This machine has no memory to show."),
      reading(),
    );
  };
  const pickModel = (model) => {
    set({ model, length: 0, rows: "" });
    own.value = "";
    chart.reset();
    run();
  };
  const sizes = SLOTS.map((count) => [count, count ? String(count) : "as in training"]);
  const slots = select(sizes, state.slots, (count) => {
    set({ slots: Number(count) });
    run();
  });
  const another = button("Another sequence", () => {
    set({ seed: state.seed + 1, rows: "" });
    own.value = "";
    run();
  });
  const ownForm = html(
    "form",
    {
      className: "row",
      onsubmit: (event) => {
        event.preventDefault();
        set({ rows: own.value.trim() });
        run();
      },
    },
    html("div", { className: "grow" }, field("Or bits of your own, rows separated by spaces", own)),
    html("button", { type: "submit" }, "Run"),
  );
  root.append(
    head,
    section(
      "Sequence",
      modelPicker(models, state.model, pickModel),
      html(
        "div",
        { className: "row" },
        html("div", { className: "grow" }, slider.node),
        field("Slots of the memory", slots),
        another,
      ),
      ownForm,
    ),
    section("The machine at work", result),
    chart.node,
    trust,
  );
  await run();
}

function described({ length, unit, trained, slots, task }) {
  const beyond = length > trained[1] ? `, ${(length / trained[1]).toFixed(1)} times the longest of its training` : "";
  return `Task ${task}, ${length} ${unit}${beyond}; a memory of ${slots} slots.`;
}

/** How to read the picture. */
function reading() {
  const line = (name, text) => html("li", {}, html("b", {}, `${name}: `), text);
  return html(
    "ul",
    { className: "notes" },
    line("Write and read", "where each head is, slot by slot. A diagonal means one slot further in each step."),
    line("Gates", "near 1 the head searches the memory by content, near 0 it goes on from where it was."),
    line("Memory over time", "how much each slot holds. What was written stays."),
  );
}

/** The slider for the length, which marks where the training ends. `set` takes an answer of the server. */
function lengthSlider(changed) {
  const output = html("output");
  const help = html("small");
  const input = html("input", { type: "range", min: 1, max: 20, value: 20 });
  const ticks = html("span", { className: "trained", "aria-hidden": "true" });
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
    const share = (longest - input.min) / (input.max - input.min);
    ticks.style.width = `${100 * share}%`;
  };
  input.addEventListener("input", () => {
    if (known) describe();
    changed(Number(input.value));
  });
  const set = (answer) => {
    known = answer;
    [input.min, input.max] = [Math.max(1, answer.shortest), answer.longest];
    input.value = answer.length;
    describe();
  };
  const pick = (length) => {
    input.value = length;
    if (known) describe();
    changed(length);
  };
  const node = html(
    "div",
    { className: "slider" },
    field("Length of the sequence", input),
    html("div", { className: "rail" }, ticks),
    html("div", {}, output, " ", help),
  );
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

/** How right the answers are at each length, measured on request. */
function lengthChart({ context, state, pick }) {
  const turn = turns(context.signal);
  const box = html("div", { className: "result" });
  const measure = async () => {
    const body = { model: state.model, per_length: 8 };
    const scores = [];
    const onResult = (score) => {
      scores.push(score);
      if (body.model === state.model) fill(rows, drawn(scores, pick));
    };
    const [rows, status] = [html("div"), html("span", {}, `Measuring ${body.model} …`)];
    const onProgress = (done, of) => void (status.textContent = `Measuring ${body.model}: ${done} of ${of} lengths …`);
    fill(box, rows);
    const asked = stream("/v1/tape/lengths", body, { signal: turn(), onResult, onProgress });
    await busy(box, asked, status, measure);
  };
  const reset = () => turn() && fill(box, button("Measure", measure), html("small", {}, " 8 random sequences of each length."));
  reset();
  const node = section(
    "How far does it generalise?",
    html("p", { className: "quiet" }, "Bits right on fresh sequences, from the longest of the training on."),
    box,
  );
  return { node, reset };
}

function drawn(scores, pick) {
  const rows = scores.map(({ length, bits_right: right, exact }) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, button(String(length), () => pick(length), { title: "Show such a sequence" })),
      html("td", {}, bar(right / 100)),
      html("td", {}, html("data", { value: String(right) }, `${right.toFixed(1)} %`)),
      html("td", {}, html("data", { value: String(exact) }, `${exact.toFixed(0)} %`)),
    ),
  );
  return scrollTable("Scores by length", ["length", "", "bits right", "no wrong bit"], rows, { className: "lengths" });
}
