// A second captioner beside the first, such as hard attention beside soft, and other draws of hard attention.

import { fill, html } from "/web/dom.js";
import { ask, button, field, select } from "/pages/parts.js";
import { turns } from "/pages/pictures.js";

/** The part of the page: {controls, panel, reset, run}. */
export function comparison(page) {
  const turn = turns(page.context.signal);
  const chooser = html("div");
  const panel = html("div", { className: "result", hidden: true });
  const again = button("Draw again", () => {
    page.set({ seed: page.state.seed + 1 });
    run();
  });
  const likely = button("Most probable cells", () => {
    page.set({ seed: 0 });
    run();
  });
  const seedNote = html("span", { className: "quiet", role: "status" });
  const draws = html("div", { className: "row draws", hidden: true }, again, likely, seedNote);

  const run = async () => {
    const { other, seed } = page.state;
    if (!page.has(other)) {
      draws.hidden = panel.hidden = true;
      return void fill(panel);
    }
    panel.hidden = false;
    const context = { models: page.context.models, signal: turn() };
    const body = { ...page.body, model: other, ...(seed ? { seed } : {}) };
    const answer = await ask(panel, context, "/v1/caption/look", body, run);
    if (!answer) return;
    // Soft attention has nothing to draw: its captions name no chosen cells.
    const isHard = answer.caption.trace?.series?.some((each) => each.name === "choice");
    draws.hidden = !isHard;
    seedNote.textContent = seed ? `Cells drawn with seed ${seed}` : "The most probable cell for each word";
    likely.disabled = !seed;
    fill(panel, html("h3", {}, other), page.shown(answer.caption, page.image.name));
  };
  const reset = () => {
    const others = page.names.filter((name) => name !== page.model);
    const choices = [["", "nothing"], ...others.map((name) => [name, name])];
    if (!others.includes(page.state.other)) page.state.other = "";
    const chosen = (other) => {
      page.set({ other, seed: 0 });
      page.caption();
    };
    fill(chooser, field("Compare with", select(choices, page.state.other, chosen)));
    draws.hidden = true;
    panel.hidden = !page.state.other;
  };
  const note =
    "Soft attention averages over all cells for each word; hard attention picks one cell, and can draw it again.";
  const controls = html("div", { className: "compare" }, chooser, draws, html("small", {}, note));
  return { controls, panel, reset, run };
}
