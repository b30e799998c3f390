// Tabs: one panel at a time. A panel is built when it is first shown.

import { fill, html } from "/web/dom.js";

let identifiers = 0;

/** `list` holds [name, label, build]; `chosen` is told the name of a tab that was chosen. Arrow keys step. */
export function tabs(list, current, chosen) {
  const panel = html("div", { role: "tabpanel", id: `panel-${++identifiers}`, className: "tabpanel" });
  const built = new Map();
  const known = list.some(([name]) => name === current) ? current : list[0][0];
  const buttons = list.map(([name, label]) =>
    html(
      "button",
      {
        type: "button",
        role: "tab",
        id: `${panel.id}-${name}`,
        "aria-controls": panel.id,
        "data-keep": `tab-${name}`,
        onclick: () => open(name, true),
      },
      label,
    ),
  );
  const group = { role: "tablist", className: "tabs", "aria-label": "Ways to look at it", onkeydown };
  const bar = html("div", group, buttons);

  function open(name, told = false) {
    const place = list.findIndex((each) => each[0] === name);
    buttons.forEach((each, index) => {
      each.setAttribute("aria-selected", String(index === place));
      each.tabIndex = index === place ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", buttons[place].id);
    if (!built.has(name)) built.set(name, list[place][2]());
    fill(panel, built.get(name));
    if (told) chosen(name);
  }

  function onkeydown(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = buttons[(buttons.indexOf(event.target) + step + buttons.length) % buttons.length];
    next.focus();
    next.click();
  }

  open(known);
  return html("section", { className: "section" }, bar, panel);
}
