// Controls: choices, switches and sliders that set options, the menus that hold them, tabs, and keys among buttons.

import { PALETTES } from "./colours.js";
import { button, fill, html } from "./dom.js";
import { chosenFamily, families } from "./trace.js";

/** A labelled <select>; `choices` are [value, label] pairs, `chosen` is called with the value. */
export function choice(label, choices, value, chosen) {
  const options = choices.map(([key, shown]) =>
    html("option", { value: String(key), selected: key === value }, String(shown)),
  );
  const pick = (event) => chosen(choices[event.target.selectedIndex][0]);
  return html("label", html("span", label), html("select", { "aria-label": label, onchange: pick }, options));
}

/** A labelled checkbox. */
export function flag(label, value, chosen) {
  const box = html("input", {
    type: "checkbox",
    checked: Boolean(value),
    onchange: (event) => chosen(event.target.checked),
  });
  return html("label.flag", box, html("span", label));
}

/** A labelled slider. */
export function slider(label, { min, max, step }, value, chosen) {
  const change = (event) => chosen(Number(event.target.value));
  return html(
    "label",
    html("span", label),
    html("input", { type: "range", "aria-label": label, min, max, step, value, oninput: change }),
  );
}

/**
 * Roving tabindex: arrow keys move between buttons, and Tab reaches only the current one. `leads(index)` maps
 * further keys to indices, and `chosen(index)` is called after a move. Returns what makes another button current.
 */
export function roving(buttons, { current = 0, leads = () => ({}), chosen = () => {} } = {}) {
  const select = (index, focus = false) => {
    buttons.forEach((each, other) => (each.tabIndex = other === index ? 0 : -1));
    if (focus) buttons[index]?.focus({ preventScroll: true });
  };
  const last = buttons.length - 1;
  buttons.forEach((each, index) =>
    each.addEventListener("keydown", (event) => {
      const targets = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: last, ...leads(index) };
      if (!(event.key in targets)) return;
      event.preventDefault();
      const next = targets[event.key];
      if (!buttons[next]) return;
      select(next, true);
      chosen(next);
    }),
  );
  select(current);
  return select;
}

let panels = 0;

/**
 * Tabs: one panel at a time. `list` holds [name, label, build]; a panel is built when it is first shown. `chosen` is
 * told the name of a tab that the user has chosen.
 */
export function tabs(list, current, chosen) {
  const panel = html("div.tabpanel", { role: "tabpanel", id: `panel-${++panels}` });
  const built = new Map();
  const buttons = list.map(([name, label], index) => {
    const identifiers = { id: `${panel.id}-${name}`, "aria-controls": panel.id, "data-keep": `tab-${name}` };
    return button(label, () => choose(index), { role: "tab", ...identifiers });
  });
  const wrapped = (index) => ({
    ArrowRight: (index + 1) % list.length,
    ArrowLeft: (index + list.length - 1) % list.length,
  });
  const select = roving(buttons, { leads: wrapped, chosen: choose });
  const group = { role: "tablist", "aria-label": "Ways to look at it" };

  function open(index) {
    const [name, , build] = list[index];
    select(index);
    buttons.forEach((each, other) => each.setAttribute("aria-selected", String(other === index)));
    panel.setAttribute("aria-labelledby", buttons[index].id);
    if (!built.has(name)) built.set(name, build());
    fill(panel, built.get(name));
    return name;
  }

  function choose(index) {
    chosen(open(index));
  }

  open(Math.max(0, list.findIndex(([name]) => name === current)));
  return [html("div.tabs", group, buttons), panel];
}

/** A button that opens a menu; it closes with Escape or when something else is clicked. */
export function menu(label, ...children) {
  const details = html("details", html("summary", label), html("div.menu", children));
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
  const { axes } = element.trace;
  const scales = [
    ["map", "whole map"],
    ["row", "each row"],
  ];
  const controls = [element.choice("Scale", "scale", scales)];
  if (colours) controls.push(element.choice("Colours", "palette", PALETTES));
  if (axes.some((axis) => axis.words)) controls.push(element.flag("Join subwords to words", "words"));
  if (axes.some((axis) => axis.special.length))
    controls.push(element.flag("Hide special tokens, rows keep their sum", "hideSpecial"));
  return controls;
}
