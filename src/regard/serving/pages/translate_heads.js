// The heads of a Transformer: remove some of them, and translate again.

import { html } from "/web/dom.js";
import { button } from "/pages/parts.js";

const PARTS = {
  encoder: "Encoder: source to source",
  decoder: "Decoder: back to its own words",
  cross: "Decoder: to the source",
};

/** A head in words: "cross 2.1" is head 1 of layer 2, from the decoder to the source. */
export function headName(name) {
  const [part, place] = name.split(" ");
  const [layer, head] = place.split(".");
  return `head ${head} of layer ${layer} (${PARTS[part].toLowerCase()})`;
}

/** A grid of layers and heads for each part; a removed head is pressed. */
export function headsPanel(page) {
  const { heads } = page.answer;
  const removed = new Set(page.state.heads);
  const toggle = (name) => {
    if (!removed.delete(name)) removed.add(name);
    page.decode({ heads: heads.filter((each) => removed.has(each)) });
  };
  const grids = Object.entries(PARTS).map(([part, label]) => {
    const own = heads.filter((name) => name.startsWith(`${part} `));
    const layers = [...new Set(own.map((name) => name.slice(part.length + 1).split(".")[0]))];
    const rows = layers.map((layer) => {
      const buttons = own
        .filter((name) => name.startsWith(`${part} ${layer}.`))
        .map((name) => {
          const gone = removed.has(name);
          return button(name.split(".")[1], () => toggle(name), {
            className: "head",
            "aria-pressed": String(gone),
            "aria-label": `${name}${gone ? ", removed" : ""}`,
            "data-keep": name,
            title: gone ? `Put ${name} back` : `Remove ${name}`,
          });
        });
      return html("div", { className: "headrow" }, html("span", {}, `layer ${layer}`), buttons);
    });
    return html("div", {}, html("h3", {}, label), rows);
  });
  const help =
    "Choose heads to remove: what they read no longer reaches the rest of the model. The difference stands above.";
  return html(
    "div",
    {},
    html("p", { className: "quiet" }, help),
    html("div", { className: "columns" }, grids),
  );
}
