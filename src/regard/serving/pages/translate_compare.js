// Two models beside each other: their translations, and the difference of what they attend to.

import { fill, html } from "/web/dom.js";
import { fixed } from "/web/colours.js";
import { ask, field, select, turns } from "/pages/parts.js";
import { alignmentName, editedText } from "/pages/translate_change.js";

const EXPLAINED = {
  softmax: "Soft attention reads a weighted mean of all source tokens.",
  hard: "Hard attention reads only the one source token that it finds best, instead of a weighted mean of all.",
  local_m: "Local attention sees only the source tokens within three positions of the diagonal.",
  sparsemax: "Sparse attention gives most source tokens a weight of exactly 0.",
  uniform: "Uniform attention reads the mean of all source tokens: what is left when attention is taken away.",
};

/** The panel; the second model is the same with another alignment, or another translator of this server. */
export function comparePanel(page) {
  const { model, second } = page.state;
  const variants = page.answer.alignments.filter((name) => name !== page.answer.alignment);
  const others = page.context.models.map(({ name }) => name).filter((name) => name !== model);
  const choices = [
    ...variants.map((name) => [`${model}+${name}`, `${model} with ${alignmentName(name)}`]),
    ...others.map((name) => [name, name]),
  ];
  if (!choices.length) return html("p", {}, "There is no second translator to compare with: serve another model too.");
  const chosen = choices.some(([value]) => value === second) ? second : choices[0][0];
  const result = html("div", {});
  const turn = turns(page.context.signal);
  const load = async (value) => {
    const [name, align = ""] = value.split("+");
    const body = { ...page.sentenceRequest(), second: name, second_change: { align } };
    const context = { models: page.context.models, signal: turn() };
    const answer = await ask(result, context, "/v1/translate/compare", body, () => load(value));
    if (answer) fill(result, compared(answer, model, choices.find((each) => each[0] === value)[1], align));
  };
  const control = select(choices, chosen, (value) => {
    page.set({ second: value });
    load(value);
  });
  load(chosen);
  return html("div", {}, field("Second model", control), result);
}

function compared({ first, second, edits, log_prob_by_second: judged, trace }, one, other, align) {
  const side = (name, { text, log_prob: value }) =>
    html(
      "div",
      { className: "side" },
      html("h3", {}, name),
      html("p", { className: "hypothesis", dir: "auto" }, text),
      html("p", { className: "quiet" }, "log-probability ", html("data", { value }, fixed(value, 2))),
    );
  const perToken = judged / (first.tokens.length + 1);
  const strange = perToken < -5;
  const verdict =
    `${other} gives the first translation a log-probability of ${fixed(judged, 2)}, ${fixed(perToken, 2)} per token` +
    (strange ? ": it would hardly ever say this, so that what it attends to here means little." : ".");
  const help =
    `While both are given the first translation: orange where ${one} attends more, purple where ${other} does. ` +
    "Choose “first” or “second” to see one of them.";
  const view = trace && html("attention-matrix", {});
  if (view) view.trace = trace;
  return [
    align ? html("p", {}, EXPLAINED[align], " None of its parameters was trained for it.") : null,
    html("div", { className: "columns" }, side(one, first), side(other, second)),
    first.text === second.text ? html("p", {}, "Both give the same words.") : editedText(edits),
    html("p", { className: "quiet" }, verdict),
    view && html("h3", {}, "Difference of their attention, word by word"),
    view && html("p", { className: "quiet" }, help),
    view,
  ];
}
