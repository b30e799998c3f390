// The tabs of the page beside its attention and its search: heads, a second model, and sentences with right links.

import { bitmap, fill, html } from "/web/dom.js";
import { colourTable, fixed, themeAround } from "/web/colours.js";
import { button, editedText, field, number, select, view } from "/pages/parts.js";

const PARTS = {
  encoder: "Encoder: source to source",
  decoder: "Decoder: back to its own words",
  cross: "Decoder: to the source",
};

/** A head in words: "cross 2.1" is head 1 of layer 2, from the decoder to the source. */
export function headName(name) {
  const [part, address] = name.split(" ");
  const [layer, head] = address.split(".");
  return `head ${head} of layer ${layer} (${PARTS[part].toLowerCase()})`;
}

/** A grid of layers and heads for each part, each with its map; a removed head is pressed. */
export function headsPanel(page) {
  const { heads } = page.answer;
  const removed = new Set(page.state.heads);
  const toggle = (name) => {
    if (!removed.delete(name)) removed.add(name);
    page.decode({ heads: heads.filter((each) => removed.has(each)) });
  };
  // The maps before any head was removed: what each of them reads.
  const maps = new Map((page.answer.before.trace?.maps ?? []).map((map) => [map.name, map]));
  const theme = themeAround(page.root).name;
  const headButton = (name) => {
    const gone = removed.has(name);
    const label = [name.split(".")[1], maps.has(name) ? thumbnail(maps.get(name), theme) : null];
    return button(label, () => toggle(name), {
      className: "head",
      "aria-pressed": String(gone),
      "aria-label": `${name}${gone ? ", removed" : ""}`,
      "data-keep": name,
      title: gone ? `Put ${name} back` : `Remove ${name}`,
    });
  };
  const grids = Object.entries(PARTS).map(([part, label]) => {
    const own = heads.filter((name) => name.startsWith(`${part} `));
    const layers = [...new Set(own.map((name) => name.slice(part.length + 1).split(".")[0]))];
    const rows = layers.map((layer) => {
      const names = own.filter((name) => name.startsWith(`${part} ${layer}.`));
      return html("div.headrow", html("span", `layer ${layer}`), names.map(headButton));
    });
    return html("div", html("h3", label), rows);
  });
  const help =
    "Each square is the map of a head: rows are words that attend, dark cells what they attend to. Choose heads to " +
    "remove: what they read no longer reaches the rest of the model. The difference stands above.";
  return html("div", html("p.quiet", help), html("div.columns", grids));
}

/** The map of a head as a small picture, one pixel for each weight. */
function thumbnail({ weights }, theme) {
  const [height, width] = [weights.length, weights[0].length];
  const scale = { share: (_, weight) => Math.min(1, weight) };
  const canvas = bitmap({ weights: weights.flat(), height, width, scale, table: colourTable("blue", theme) });
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
}

const NAMES = {
  softmax: "soft attention",
  hard: "hard attention",
  local_m: "local attention",
  sparsemax: "sparse attention",
  uniform: "uniform attention",
};
const EXPLAINED = {
  softmax: "Soft attention reads a weighted mean of all source tokens.",
  hard: "Hard attention reads only the one source token that it finds best, instead of a weighted mean of all.",
  local_m: "Local attention sees only the source tokens within three positions of the diagonal.",
  sparsemax: "Sparse attention gives most source tokens a weight of exactly 0.",
  uniform: "Uniform attention reads the mean of all source tokens: what is left when attention is taken away.",
};

/** A name for an alignment. */
export function alignmentName(name) {
  return NAMES[name] ?? name;
}

/**
 * Two models beside each other, and the difference of what they attend to. The second is the same with another
 * alignment, or another translator of this server.
 */
export function comparePanel(page) {
  const { model, second } = page.state;
  const variants = page.answer.alignments.filter((name) => name !== page.answer.alignment);
  const others = page.models.map(({ name }) => name).filter((name) => name !== model);
  const choices = [
    ...variants.map((name) => [`${model}+${name}`, `${model} with ${alignmentName(name)}`]),
    ...others.map((name) => [name, name]),
  ];
  if (!choices.length) return html("p", "There is no second translator to compare with: serve another model too.");
  const chosen = choices.some(([value]) => value === second) ? second : choices[0][0];
  const result = html("div");
  const load = async (value) => {
    const [name, align = ""] = value.split("+");
    const body = { ...page.sentenceRequest(), second: name, second_change: { align } };
    const answer = await page.ask(result, "compare", body, { retry: () => load(value) });
    if (answer) fill(result, compared(answer, model, choices.find((each) => each[0] === value)[1], align));
  };
  const control = select(choices, chosen, (value) => {
    page.set({ second: value });
    load(value);
  });
  load(chosen);
  return html("div", field("Second model", control), result);
}

function compared({ first, second, edits, log_prob_by_second: judged, trace }, one, other, align) {
  const side = (name, { text, log_prob: value }) =>
    html(
      "div.side",
      html("h3", name),
      html("p.hypothesis", { dir: "auto" }, text),
      html("p.quiet", "log-probability ", number(value, fixed(value, 2))),
    );
  const perToken = judged / (first.tokens.length + 1);
  const strange = perToken < -5;
  const verdict =
    `${other} gives the first translation a log-probability of ${fixed(judged, 2)}, ${fixed(perToken, 2)} per token` +
    (strange ? ": it would hardly ever say this, so that what it attends to here means little." : ".");
  const help =
    `While both are given the first translation: orange where ${one} attends more, purple where ${other} does. ` +
    "Choose “first” or “second” to see one of them.";
  return [
    align ? html("p", EXPLAINED[align], " None of its parameters was trained for it.") : null,
    html("div.columns", side(one, first), side(other, second)),
    first.text === second.text ? html("p", "Both give the same words.") : editedText(edits),
    html("p.quiet", verdict),
    trace && html("h3", "Difference of their attention, word by word"),
    trace && html("p.quiet", help),
    trace && view("attention-matrix", trace),
  ];
}

const LANGUAGES = { en: "English", fr: "French", de: "German", fa: "Persian" };
const COUNT = 200;

/** Sentences of the world babel, whose right word links are known, beside what the model attends to. */
export function goldPanel(page) {
  const names = Object.keys(LANGUAGES);
  const directions = names.flatMap((source) =>
    names.filter((target) => target !== source).map((target) => `${source}-${target}`),
  );
  const { model } = page.state;
  const own = directions.find((each) => model.includes(each)) ?? "en-fr";
  const current = () => (directions.includes(page.state.direction) ? page.state.direction : own);
  const result = html("div");
  const load = async () => {
    const { number: index } = page.state;
    const body = { direction: current(), number: index };
    const answer = await page.ask(result, "gold", body, { retry: load });
    if (answer) fill(result, checked(answer, index));
  };
  const go = (index) => {
    page.set({ number: (index + COUNT) % COUNT });
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
  const previous = button("Previous", () => go(page.state.number - 1));
  const next = button("Next example", () => go(page.state.number + 1), { className: "primary" });
  return html("div", html("p.quiet", help), html("div.row", field("Languages", control), previous, next), result);
}

function checked(answer, index) {
  const { error_rate: rate, precision, recall, links, sure, possible, trace } = answer;
  const key = (link) => link.join("-");
  const right = new Set([...sure, ...possible].map(key));
  const good = links.filter((link) => right.has(key(link))).length;
  const measure = (name, value, help) =>
    html("div.score", html("dt", name), html("dd", number(value, value.toFixed(2)), html("small", help)));
  const found = `${good} of ${links.length} links by attention are right.`;
  const outlines =
    "Outlined cells are the right links: solid for sure ones, dashed for possible ones. " +
    "A strong colour inside an outline is right.";
  return [
    html("p", html("strong", `Example ${index + 1}: `), found),
    html(
      "dl.scores",
      measure("AER", rate, "alignment error rate: 0 is perfect, 1 is all wrong"),
      measure("Precision", precision, "of the links by attention, how many are right"),
      measure("Recall", recall, "of the sure links, how many attention finds"),
    ),
    html("p.quiet", outlines),
    view("attention-matrix", { ...trace, extras: { ...trace.extras, links: { sure, possible } } }),
  ];
}
