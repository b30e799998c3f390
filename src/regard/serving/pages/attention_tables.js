// What the page Attention is drawn with: vectors as shaded numbers, numbers to edit, and a table of one step.

import { fixed } from "/web/colours.js";
import { fill, html } from "/web/dom.js";
import { scrollTable, track } from "/pages/parts.js";

const MOST = 99;

/** A vector as numbers, shaded by their sizes: those below zero in another colour. */
export function vector(values) {
  return html("span.vector", values.map(shaded));
}

function shaded(value) {
  const node = html("data", { value: String(value), className: value < 0 ? "below" : "" }, fixed(value, 2));
  node.style.setProperty("--shade", `${(100 * Math.min(1, Math.abs(value))).toFixed(0)}%`);
  return node;
}

/** A number that keeps its exact value. */
export function exactNumber(value, decimals = 2) {
  return html("data", { value: String(value) }, fixed(value, decimals));
}

/** A weight as a bar with its number. */
export function weightBar(weight) {
  return html("span.bar", track(weight), exactNumber(weight));
}

/**
 * A matrix whose numbers can be edited, in place; `changed` is called afterwards. `rows` names its rows, and `split` is
 * the number of parts that its columns are drawn in, as those of heads.
 */
export function numberGrid(name, matrix, changed, { rows = [], split = 1 } = {}) {
  const width = matrix[0].length / split;
  const cell = (row, column) => {
    const input = html("input", {
      type: "number",
      step: 0.1,
      min: -MOST,
      max: MOST,
      value: matrix[row][column],
      "aria-label": `${name}, ${rows[row] ?? `row ${row + 1}`}, column ${column + 1}`,
    });
    input.addEventListener("input", () => {
      const given = Number(input.value);
      const isAllowed = input.value !== "" && Math.abs(given) <= MOST;
      input.setAttribute("aria-invalid", String(!isAllowed));
      if (!isAllowed) return;
      matrix[row][column] = given;
      changed();
    });
    return html("td", { className: column && column % width === 0 ? "part" : "" }, input);
  };
  const lines = matrix.map((values, row) => {
    const label = rows[row] ? html("th", { scope: "row" }, rows[row]) : null;
    return html(
      "tr",
      label,
      values.map((_, column) => cell(row, column)),
    );
  });
  return html("table.grid", html("caption", name), html("tbody", lines));
}

/**
 * A table of one step of attention: a row for each thing that may be attended to. `cells` are its further cells, as
 * nodes, between its name and its score; `pick` is called with the place of a row whose name is clicked.
 */
export function stepTable(label, heads, rows, { pick = null, chosen = -1, sum = null } = {}) {
  const named = ({ name }, place) => {
    if (!pick) return html("bdi", name);
    const properties = { type: "button", "aria-pressed": String(place === chosen), onclick: () => pick(place) };
    return html("button", { ...properties, "data-place": place }, name);
  };
  const body = rows.map((row, place) => {
    const cells = row.cells.map((cell) => html("td", cell));
    return html(
      "tr",
      { className: row.isHidden ? "hiddenword" : "" },
      html("th", { scope: "row" }, named(row, place)),
      cells,
    );
  });
  if (sum)
    body.push(html("tr.sum", html("th", { scope: "row", colSpan: heads.length - 1 }, sum.name), html("td", sum.value)));
  return scrollTable(label, heads, body, { className: "step" });
}

/** Replace the children of a node, and keep the focus on the button of the same place. */
export function refill(node, ...children) {
  const place = node.contains(document.activeElement) ? document.activeElement.dataset.place : undefined;
  fill(node, ...children);
  if (place !== undefined) node.querySelector(`[data-place="${place}"]`)?.focus();
}

/** Matrices that can be edited, folded away. */
export function editor(title, grids) {
  return html("details.files", html("summary", title), html("div.grids.scroll", grids));
}

/** The names of a table of choices with their labels, as `select` takes them. */
export function choices(table) {
  return Object.entries(table).map(([name, { label }]) => [name, label]);
}
