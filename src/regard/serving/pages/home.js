// The home page: where to start, a translation with its attention, and a card for each system that has a page.

import { html } from "/web/dom.js";
import { post } from "/pages/api.js";
import { busy, intro, section, view } from "/pages/parts.js";

/** Figure 3 of Bahdanau et al. 2015: the adjectives of French stand in another order. */
const SENTENCE = "The agreement on the European Economic Area was signed in August 1992.";
/** What to open first, in order: a path, its name, and what it shows. */
const FIRST = [
  ["/attention", "One step of attention", "the arithmetic in small numbers that you can edit"],
  [`/translate?${new URLSearchParams({ text: SENTENCE })}`, "Translate a sentence", "choose another word"],
  ["/read", "Read word by word", "whether it means the animal or the street"],
  ["/caption", "Caption an image", "hide a part of it and see which words disappear"],
];

/** Pixels between two cards. */
const GAP = 16;

/** Show the home page: `systems` are those that have a page, `all` the models of the server. */
export function showHome(root, { systems, all, signal }) {
  const text =
    "An attention model weighs the parts of its input for each part of its output. These pages show the weights of " +
    "trained models, how far to trust them, and what changes with them. Everything runs on this machine.";
  const cards = systems.map((each) => card(each, all.filter((model) => model.verb === each.name)));
  const others = all.filter((model) => systems.every(({ name }) => name !== model.verb));
  const grid = html("div.cards", cards, others.length ? otherModels(others) : null);
  root.append(intro("Look inside attention models", text), startHere(systems, all, signal), grid);
  const sizes = new ResizeObserver(() => pack(grid));
  for (const each of grid.children) sizes.observe(each);
  signal.addEventListener("abort", () => sizes.disconnect());
}

/** The first pages to open, in order, and beside them what attention looks like, once the translator has answered. */
function startHere(systems, all, signal) {
  const isServed = ([path]) => path === "/attention" || systems.some(({ name }) => path.slice(1).startsWith(name));
  const step = ([path, name, about]) => html("li", html("a", { href: path }, name), `: ${about}`);
  const translator = systems.find(({ name }) => name === "translate")?.model;
  const figure = html("figure");
  if (all.some(({ name }) => name === translator)) showTranslation(figure, translator, signal);
  return section("Start here", html("div.columns.start", html("ol", FIRST.filter(isServed).map(step)), figure));
}

async function showTranslation(figure, model, signal) {
  const asked = post("/v1/translate", { model, input: SENTENCE, trace: true }, { signal });
  const answer = await busy(figure, asked, "Translating an example …");
  const trace = answer?.results[0].trace;
  if (!trace) return;
  const text =
    `The attention of ${model} for one sentence. Where the two languages order their words differently, the dark ` +
    "cells leave the diagonal.";
  figure.append(html("figcaption", text), view("attention-matrix", trace, { words: true, hideSpecial: true }));
}

/** Put each card, in order, into the column that is shortest so far; a row of the grid is one pixel high. */
function pack(grid) {
  const ends = getComputedStyle(grid).gridTemplateColumns.split(" ").map(() => 1);
  for (const card of grid.children) {
    const column = ends.indexOf(Math.min(...ends));
    const height = Math.ceil(card.getBoundingClientRect().height);
    card.style.gridArea = `${ends[column]} / ${column + 1} / span ${height}`;
    ends[column] += height + GAP;
  }
}

/** Models of systems that have no page. */
function otherModels(models) {
  const lines = models.map((model) => html("li", html("b", model.name), ` POST /v1/${model.verb}`));
  const about = html("p", "Models without a page of their own, which answer over the API.");
  return html("article.card", html("h2", "Other models"), about, html("ul", lines));
}

function card({ name, label, summary }, models) {
  const heading = html("h2", html("a", { href: `/${name}` }, label));
  const list = models.length
    ? html("ul.modellist", models.map((model) => modelLine(name, model)))
    : html("p.quiet", "No model here. Train one, and serve its folder: regard serve my-run");
  const scales = [...new Set(models.map((model) => model.scale))].filter(Boolean);
  const meaning = scales.length ? html("p.scale", scales.join(" ")) : null;
  return html("article.card", heading, html("p", summary), list, meaning);
}

/** A model: its name leads to the page with it chosen. */
function modelLine(page, { name, summary, headline, measured_on: measured, mebibytes }) {
  const link = html("a", { href: `/${page}?${new URLSearchParams({ model: name })}` }, name);
  const test = measured ? html("small", ` on ${measured}`) : null;
  const score = headline ? html("span.score", headline, test) : null;
  const about = `${summary || "A model of your own."} ${mebibytes} MiB.`;
  return html("li", html("div.line", link, score), html("p", about));
}
