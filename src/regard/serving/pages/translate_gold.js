// Sentences whose right word links are known, beside what the model attends to.

import { fill, html } from "/web/dom.js";
import { ask, button, field, select, turns } from "/pages/parts.js";

const LANGUAGES = { en: "English", fr: "French", de: "German", fa: "Persian" };
const COUNT = 200;

/** The panel: examples of the world babel, one after the other. */
export function goldPanel(page) {
  const names = Object.keys(LANGUAGES);
  const directions = names.flatMap((source) =>
    names.filter((target) => target !== source).map((target) => `${source}-${target}`),
  );
  const { model } = page.state;
  const own = directions.find((each) => model.includes(each)) ?? "en-fr";
  const current = () => (directions.includes(page.state.direction) ? page.state.direction : own);
  const result = html("div", {});
  const turn = turns(page.context.signal);
  const load = async () => {
    const { number } = page.state;
    const context = { models: page.context.models, signal: turn() };
    const body = { model, direction: current(), number };
    const answer = await ask(result, context, "/v1/translate/gold", body, load);
    if (answer) fill(result, checked(answer, number));
  };
  const go = (number) => {
    page.set({ number: (number + COUNT) % COUNT });
    load();
  };
  const labelled = directions.map((each) => [each, each.split("-").map((name) => LANGUAGES[name]).join(" to ")]);
  const control = select(labelled, current(), (direction) => {
    page.set({ direction });
    load();
  });
  load();
  const help =
    "These sentences were made by a grammar that knows which words belong together. The model is given both " +
    "sentences, and each target word is linked with the source word that it attends to most.";
  return html(
    "div",
    {},
    html("p", { className: "quiet" }, help),
    html(
      "div",
      { className: "row" },
      field("Languages", control),
      button("Previous", () => go(page.state.number - 1)),
      button("Next example", () => go(page.state.number + 1), { primary: true }),
    ),
    result,
  );
}

function checked(answer, number) {
  const { error_rate: rate, precision, recall, links, sure, possible, trace } = answer;
  const key = (link) => link.join("-");
  const right = new Set([...sure, ...possible].map(key));
  const good = links.filter((link) => right.has(key(link))).length;
  const view = html("attention-matrix", {});
  view.trace = { ...trace, extras: { ...trace.extras, links: { sure, possible } } };
  const measure = (name, value, help) =>
    html(
      "div",
      { className: "score" },
      html("dt", {}, name),
      html("dd", {}, html("data", { value }, value.toFixed(2)), html("small", {}, help)),
    );
  const found = `${good} of ${links.length} links by attention are right.`;
  const outlines =
    "Outlined cells are the right links: solid for sure ones, dashed for possible ones. " +
    "A strong colour inside an outline is right.";
  return [
    html("p", {}, html("strong", {}, `Example ${number + 1}: `), found),
    html(
      "dl",
      { className: "scores" },
      measure("AER", rate, "alignment error rate: 0 is perfect, 1 is all wrong"),
      measure("Precision", precision, "of the links by attention, how many are right"),
      measure("Recall", recall, "of the sure links, how many attention finds"),
    ),
    html("p", { className: "quiet" }, outlines),
    view,
  ];
}
