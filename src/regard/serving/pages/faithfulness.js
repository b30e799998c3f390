// How far to trust the attention that a page shows, measured for the very input on the page.

import { fill, html } from "/web/dom.js";
import { fixed } from "/web/colours.js";
import { track } from "/pages/parts.js";

/**
 * Show what was measured in `root`, an empty node of the page, with a note about it; without an answer, that it is
 * being measured.
 */
export function faithfulness(root, answer = null, note = "") {
  root.className = "section trust";
  fill(root, html("h2", "How far to trust this attention"));
  if (!answer) return;
  const measures = [focus(answer), movement(answer), drop(answer), correctness(answer)];
  root.append(html("p.verdict", answer.sentence));
  if (note) root.append(html("p.quiet", note));
  if (answer.ablation || answer.entropy !== null) root.append(html("div.measures", measures.filter(Boolean)));
}

function focus({ entropy, uniform_entropy: uniform, parts }) {
  if (entropy === null) return null;
  const [looked, all] = [Math.exp(entropy), Math.exp(uniform)];
  return measure(
    "Focus",
    `about ${rounded(looked)} of ${rounded(all)} ${parts}`,
    [["", looked / all]],
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
    [["", variation]],
    "How much the attention moves from one output to the next (mean Jensen-Shannon divergence). 0: it stays where it " +
      "is, whatever the model says. 1: it is always somewhere else.",
    variation,
  );
}

function drop({ ablation }) {
  if (!ablation) return null;
  const { attended, random, unit, method } = ablation;
  const largest = Math.max(attended, random, 1e-9);
  const rows = [
    [`attended ${fixed(attended, 2)}`, attended / largest],
    [`random ${fixed(random, 2)}`, random / largest],
  ];
  return measure("Faithfulness", `drop of the ${unit}`, rows, method, attended, random);
}

function correctness({ measured }) {
  const text = measured || "Not measured for this model.";
  const about =
    "Where people or a generated world say what each output should look at, attention can be compared with that. " +
    "This is a result on a test set, not about your input.";
  return measure("Correctness", text, [], about);
}

/** One number with its name, bars with a label each, and an explanation that appears on hover and focus. */
function measure(name, text, rows, explanation, ...values) {
  const data = values.map((value) => html("data", { value: String(value), hidden: true }));
  const bars = rows.map(([label, share]) => html("span", label ? html("span", label) : null, track(share)));
  const hidden = rows.every(([label]) => !label) ? "true" : null;
  const tip = html("span.tip", { role: "note" }, explanation);
  const picture = rows.length ? html("span.bars", { "aria-hidden": hidden }, bars) : null;
  const properties = { tabIndex: 0, role: "group", "aria-label": name };
  return html("div.measure", properties, html("b", name), html("span.text", text), picture, data, tip);
}

const rounded = (number) => (number < 10 ? number.toFixed(1).replace(".0", "") : String(Math.round(number)));
