// Controls above a picture: choices, switches and sliders that set options, and the menus that hold them.

import { PALETTES } from "./colours.js";
import { html } from "./dom.js";
import { chosenFamily, families } from "./selection.js";

/** A labelled <select>; `choices` are [value, label] pairs, `chosen` is called with the value. */
export function choice(label, choices, value, chosen) {
  const options = choices.map(([key, shown]) =>
    html("option", { value: String(key), selected: key === value }, String(shown)),
  );
  const pick = (event) => chosen(choices[event.target.selectedIndex][0]);
  return html("label", {}, html("span", {}, label), html("select", { "aria-label": label, onchange: pick }, options));
}

/** A labelled checkbox. */
export function flag(label, value, chosen) {
  const box = html("input", {
    type: "checkbox",
    checked: Boolean(value),
    onchange: (event) => chosen(event.target.checked),
  });
  return html("label", { className: "flag" }, box, html("span", {}, label));
}

/** A labelled slider. */
export function slider(label, { min, max, step }, value, chosen) {
  const change = (event) => chosen(Number(event.target.value));
  return html(
    "label",
    {},
    html("span", {}, label),
    html("input", { type: "range", "aria-label": label, min, max, step, value, oninput: change }),
  );
}

/** A button that opens a menu; it closes with Escape or when something else is clicked. */
export function menu(label, ...children) {
  const details = html("details", {}, html("summary", {}, label), html("div", { className: "menu" }, children));
  const close = (event) => {
    if (!event.composedPath().includes(details)) details.open = false;
  };
  details.addEventListener("toggle", () => {
    if (details.open) document.addEventListener("pointerdown", close);
    else document.removeEventListener("pointerdown", close);
  });
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !details.open) return;
    details.open = false;
    details.querySelector("summary").focus();
    event.stopPropagation();
  });
  return details;
}

/** Choices of map, layer and head, as far as a trace has several. */
export function mapChoices(element, accepts) {
  const all = families(element.trace, accepts);
  const { options } = element;
  const family = chosenFamily(all, options);
  const controls = [];
  if (!family) return controls;
  if (all.length > 1) {
    const names = all.map((each) => [each.label, each.label]);
    const pick = (map) => element.setOptions({ map, layer: undefined, head: undefined, name: undefined });
    controls.push(choice("Map", names, family.label, pick));
  }
  if (family.layers.length > 1) {
    const layers = [["all", "all"], ...family.layers.map((layer) => [layer, layer])];
    controls.push(choice("Layer", layers, options.layer ?? "all", (layer) => element.setOptions({ layer })));
  }
  if (family.heads.length > 1 || family.layers.length > 1) {
    const heads = [["mean", "mean"], ["max", "max"], ...family.heads.map((head) => [head, head])];
    controls.push(choice("Head", heads, options.head ?? "mean", (head) => element.setOptions({ head })));
  }
  return controls;
}

/** How a table of weights is shown: scale, colours, words, special tokens. */
export function tableOptions(element, { colours = true } = {}) {
  const { trace, options } = element;
  const set = (name) => (value) => element.setOptions({ [name]: value });
  const scales = [
    ["map", "whole map"],
    ["row", "each row"],
  ];
  const controls = [choice("Scale", scales, options.scale, set("scale"))];
  if (colours) controls.push(choice("Colours", PALETTES, options.palette, set("palette")));
  if (trace.axes.some((axis) => axis.words)) controls.push(flag("Join subwords to words", options.words, set("words")));
  if (trace.axes.some((axis) => axis.special.length)) {
    controls.push(flag("Hide special tokens, rows keep their sum", options.hideSpecial, set("hideSpecial")));
  }
  return controls;
}
