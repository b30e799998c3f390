// The trust strip: how far to trust the attention that a page shows, measured for the very input on the page.

import { fill, html } from "/web/dom.js";
import { fixed } from "/web/colours.js";
import { post } from "/pages/api.js";
import { busy } from "/pages/parts.js";

const running = new WeakMap();

/** Show no trust in `root`, and measure none. */
export function clearTrust(root) {
  running.get(root)?.abort();
  root.classList.remove("section", "trust");
  fill(root);
}

/**
 * Measure and show how far to trust the attention of a model for one input, in `root`, an empty node of the page. A
 * further call for the same node replaces what it shows.
 */
export async function trustStrip(root, { verb, model, input, options = {} }) {
  running.get(root)?.abort();
  const control = new AbortController();
  running.set(root, control);
  root.classList.add("section", "trust");
  fill(root, html("h2", {}, "How far to trust this attention"));
  const asked = post("/v1/faithfulness", { verb, model, input, options }, { signal: control.signal });
  const answer = await busy(root, asked, "Measuring: the model answers again without some of its input …");
  if (!answer || control.signal.aborted) return;
  fill(root, html("h2", {}, "How far to trust this attention"), html("p", { className: "verdict" }, answer.sentence));
  const measures = [focus(answer), movement(answer), faithfulness(answer), correctness(answer)].filter(Boolean);
  if (answer.ablation || answer.entropy !== null) root.append(html("div", { className: "measures" }, measures));
}

function focus({ entropy, uniform_entropy: uniform, parts }) {
  if (entropy === null) return null;
  const [looked, all] = [Math.exp(entropy), Math.exp(uniform)];
  return measure(
    "Focus",
    `about ${rounded(looked)} of ${rounded(all)} ${parts}`,
    bar([["", looked / all]]),
    `How many ${parts} share the attention at a time: its entropy is ${entropy.toFixed(2)} nats. 0 is all on one, ` +
      `${uniform.toFixed(2)} is spread evenly. Sharp attention is easy to read, which does not make it right.`,
    entropy,
  );
}

function movement({ variation }) {
  if (variation === null) return null;
  return measure(
    "Movement",
    `${variation.toFixed(2)} of 1`,
    bar([["", variation]]),
    "How much the attention moves from one output to the next (mean Jensen-Shannon divergence). 0: it stays where it " +
      "is, whatever the model says. 1: it is always somewhere else.",
    variation,
  );
}

function faithfulness({ ablation }) {
  if (!ablation) return null;
  const { attended, random, unit, method } = ablation;
  const largest = Math.max(attended, random, 1e-9);
  const rows = [
    [`attended ${fixed(attended, 2)}`, attended / largest],
    [`random ${fixed(random, 2)}`, random / largest],
  ];
  return measure("Faithfulness", `drop of the ${unit}`, bar(rows), method, attended, random);
}

function correctness({ measured }) {
  const text = measured || "Not measured for this model.";
  const about =
    "Where people or a generated world say what each output should look at, attention can be compared with that. " +
    "This is a result on a test set, not about your input.";
  return measure("Correctness", text, null, about);
}

/** One number with its name, a bar, and an explanation that appears on hover and focus. */
function measure(name, text, picture, explanation, ...values) {
  const data = values.map((value) => html("data", { value: String(value), hidden: true }));
  const shown = html("span", { className: "text" }, text);
  const tip = html("span", { className: "tip", role: "note" }, explanation);
  const properties = { className: "measure", tabIndex: 0, role: "group", "aria-label": name };
  return html("div", properties, html("b", {}, name), shown, picture, data, tip);
}

/** Bars with a label each, as long as their share of 1. */
function bar(rows) {
  return html(
    "span",
    { className: "bars", "aria-hidden": rows.every(([label]) => !label) ? "true" : null },
    rows.map(([label, share]) => {
      const filled = html("i", {});
      filled.style.width = `${Math.round(100 * Math.max(0, Math.min(1, share)))}%`;
      return html("span", {}, label ? html("span", {}, label) : null, html("span", { className: "track" }, filled));
    }),
  );
}

const rounded = (number) => (number < 10 ? number.toFixed(1).replace(".0", "") : String(Math.round(number)));
