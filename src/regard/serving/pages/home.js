// The home page: a card for each system that has a page, with its models, what they are, and how good.

import { html } from "/web/dom.js";
import { intro } from "/pages/parts.js";

/** Pixels between two cards. */
const GAP = 16;

/** Show the home page: `systems` are those that have a page, `all` the models of the server. */
export function showHome(root, { systems, all, signal }) {
  const text =
    "Type a sentence, drop a photo or paste a review: see what the model attends to, how far to trust it, and what " +
    "happens when you change it. Everything runs on this machine.";
  const cards = systems.map((each) => card(each, all.filter((model) => model.verb === each.name)));
  const others = all.filter((model) => systems.every(({ name }) => name !== model.verb));
  const grid = html("div.cards", cards, others.length ? otherModels(others) : null);
  root.append(intro("Look inside attention models", text), grid);
  const sizes = new ResizeObserver(() => pack(grid));
  for (const each of grid.children) sizes.observe(each);
  signal.addEventListener("abort", () => sizes.disconnect());
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
