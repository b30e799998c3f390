// A second captioner beside the first, such as hard attention beside soft, and other draws of hard attention.

import { fill, html } from "/web/dom.js";
import { button, field, select, turns } from "/pages/parts.js";

const SOFT_AND_HARD = ["photo-en", "photo-en-hard"];

/** The part of the page: {controls, panel, reset, run}. */
export function comparison(page) {
  const turn = turns(page.context.signal);
  const chooser = html("div");
  const panel = html("div", { className: "result", hidden: true });
  const draw = (seed) => {
    page.set({ seed });
    if (page.hard.has(page.model)) page.caption();
    else run();
  };
  const again = button("Draw again", () => draw(page.state.seed + 1));
  const likely = button("Most probable cells", () => draw(0));
  const seedNote = html("span", { className: "quiet", role: "status" });
  const draws = html("div", { className: "row draws", hidden: true }, again, likely, seedNote);
  const both = button("Soft against hard", () => {
    const [model, other] = SOFT_AND_HARD;
    page.set({ model, other, seed: 0 });
    // On a generated scene both would fail alike.
    const own = page.examples.find((each) => each.name === page.image.name);
    const photograph = own && own.model !== model && page.examples.find((each) => each.model === model);
    page.take(photograph ? { uri: photograph.image, name: photograph.name } : page.image, false);
  });

  const showDraws = () => {
    const { model, other, seed } = page.state;
    draws.hidden = ![model, other].some((name) => page.hard.has(name));
    seedNote.textContent = seed ? `Cells drawn with seed ${seed}` : "The most probable cell for each word";
    likely.disabled = !seed;
  };
  const run = async () => {
    const { other } = page.state;
    showDraws();
    if (!page.has(other)) {
      panel.hidden = true;
      return void fill(panel);
    }
    panel.hidden = false;
    const answer = await page.look(panel, other, turn(), run);
    if (!answer) return;
    fill(panel, html("h3", {}, other), page.shown(answer.caption, page.image.name));
    showDraws();
  };
  const reset = () => {
    turn();
    const { model } = page.state;
    const others = page.names.filter((name) => name !== model);
    const choices = [["", "nothing"], ...others.map((name) => [name, name])];
    if (!others.includes(page.state.other)) page.state.other = "";
    const chosen = (other) => {
      page.set({ other });
      reset();
      page.caption();
    };
    fill(chooser, field("Compare with", select(choices, page.state.other, chosen)));
    both.hidden = !SOFT_AND_HARD.every((name) => page.has(name)) || page.state.other === SOFT_AND_HARD[1];
    draws.hidden = true;
    panel.hidden = !page.state.other;
  };
  const note =
    "Soft attention averages over all cells for each word; hard attention picks one cell, and can draw it again.";
  const controls = html("div", { className: "compare" }, chooser, both, draws, html("small", {}, note));
  return { controls, panel, reset, run };
}
