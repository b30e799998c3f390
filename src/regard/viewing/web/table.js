// The numbers as an HTML table: for screen readers, and to copy from.

import { html } from "./dom.js";
import { printable } from "./tokens.js";

const MAX_ROWS = 100;
const MAX_COLUMNS = 40;

/** The table, or, of a large one, the part around the current place; the caption says so. */
export function dataTable({ caption, columns, rows }, current) {
  const [firstRow, lastRow] = window(rows.length, MAX_ROWS, current?.row ?? 0);
  const [firstColumn, lastColumn] = window(columns.length - 1, MAX_COLUMNS, current?.column ?? 0);
  const take = (cells) => [cells[0], ...cells.slice(firstColumn + 1, lastColumn + 1)];
  const cut = lastRow - firstRow < rows.length || lastColumn - firstColumn < columns.length - 1;
  const range = (first, last, all, what) => `${what} ${first + 1} to ${last} of ${all}`;
  const [rowRange, columnRange] = [
    range(firstRow, lastRow, rows.length, "rows"),
    range(firstColumn, lastColumn, columns.length - 1, "columns"),
  ];
  const part = cut ? ` (${rowRange}, ${columnRange}; files and copies have all)` : "";
  const head = take(columns).map((name) => html("th", { scope: "col" }, printable(String(name))));
  const body = rows.slice(firstRow, lastRow).map((cells) => {
    const [first, ...others] = take(cells);
    return html(
      "tr",
      {},
      html("th", { scope: "row" }, printable(String(first))),
      others.map((cell) => html("td", {}, printable(String(cell)))),
    );
  });
  return html(
    "table",
    {},
    html("caption", {}, caption + part),
    html("thead", {}, html("tr", {}, head)),
    html("tbody", {}, body),
  );
}

function window(length, size, middle) {
  const first = Math.max(0, Math.min(middle - Math.floor(size / 2), length - size));
  return [first, Math.min(length, first + size)];
}
