// The numbers of one row as text beside a picture, all numbers as an HTML table, and the legend of the colours.

import { colourAt, css, exact, fixed, formatWeight } from "./colours.js";
import { html, measure, printable, svg, text, wrapped } from "./dom.js";
import { rowOf, seriesOf, strongest } from "./trace.js";

const LISTED = 8;

/** A label and its numbers as a list of pairs; `chosen` marks one of them. */
export function numberList(heading, pairs, chosen = -1) {
  const items = pairs.map(([label, number], index) => {
    const value = html("data", { value: String(exact(number)) }, formatWeight(number));
    return html("li", { className: index === chosen ? "chosen" : "" }, html("bdi", printable(label)), value);
  });
  return [html("p", heading), html("ul.chips", items)];
}

/** What a row attends to: its strongest inputs, and the one that is pointed at. Of a column, who attends to it. */
export function positionNumbers(trace, selection, { row, column }) {
  if (row < 0) return columnNumbers(selection, column);
  const heading = [
    html("b", html("bdi", printable(selection.rows.labels[row]))),
    ` attends to`,
    ...rowSeries(trace, selection, row),
  ];
  const pairs = strongest(selection, row, LISTED).filter(
    ([index, weight]) => index === column || Math.abs(weight) >= 0.0005,
  );
  const weights = rowOf(selection, row);
  let chosen = -1;
  if (column !== null && column < selection.width) {
    chosen = pairs.findIndex(([index]) => index === column);
    if (chosen < 0) chosen = pairs.push([column, weights[column]]) - 1;
  }
  // Without those that have no weight at all, such as words that are yet to be read.
  const listed = new Set(pairs.map(([index]) => index));
  const rest = weights.filter((weight, index) => weight && !listed.has(index)).length;
  const list = numberList(
    heading,
    pairs.map(([index, weight]) => [selection.columns.labels[index], weight]),
    chosen,
  );
  if (rest > 0) {
    const shown = pairs.reduce((sum, [, weight]) => sum + weight, 0);
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    list[1].append(
      html("li.quiet", `${rest} ${pairs.length ? "more" : "inputs"}: ${formatWeight(total - shown)} together`),
    );
  }
  return list;
}

function columnNumbers(selection, column) {
  const name = html("b", html("bdi", printable(selection.columns.labels[column])));
  const pairs = selection.rows.labels.map((label, row) => [label, selection.weights[row * selection.width + column]]);
  pairs.sort((one, other) => Math.abs(other[1]) - Math.abs(one[1]));
  return numberList([name, " is attended to by"], pairs.slice(0, LISTED));
}

/** The series of a row, such as " (p 0.93, gate 0.41)". */
export function rowSeries(trace, selection, row) {
  const shown = trace.series
    .filter((each) => each.axis === selection.rows.axis.name && each.name !== "choice")
    .map((each) => {
      const value = seriesOf(trace, each.name, selection.rows)[row];
      return each.name === "log_prob" ? `p ${fixed(Math.exp(value), 3)}` : `${each.name} ${fixed(value, 3)}`;
    });
  return shown.length ? [html("span.quiet", ` (${shown.join(", ")})`)] : [];
}

/** All weights of a selection as a table, with the series of the rows at the end. */
export function selectionTable(trace, selection) {
  const series = trace.series.filter((each) => each.axis === selection.rows.axis.name);
  const values = series.map((each) => seriesOf(trace, each.name, selection.rows));
  const rows = [];
  for (let row = 0; row < selection.height; row++) {
    const weights = Array.from(rowOf(selection, row), exact);
    rows.push([selection.rows.labels[row], ...weights, ...values.map((all) => exact(all[row]))]);
  }
  const corner = `${selection.rows.axis.name} \\ ${selection.columns.axis.name}`;
  const columns = [corner, ...selection.columns.labels, ...series.map((each) => each.name)];
  return { caption: `${selection.name}: each row shows what it attends to`, columns, rows };
}

/** A bar of the colours with the numbers at its ends, and what they are: {width, height, node}. */
export function legendBar({ scale, table, theme, width, name = "weight" }) {
  const steps = 60;
  const length = 150;
  const digits = scale.largest < 0.1 ? 3 : 2;
  const [low, high] = scale.perRow
    ? [scale.signed ? "−max" : "0", "largest of the row"]
    : [scale.signed ? fixed(-scale.largest, digits) : "0", fixed(scale.largest, digits)];
  const left = Math.max(34, Math.ceil(measure(low, 12)) + 8);
  const bar = svg("g", { "shape-rendering": "crispEdges" });
  for (let step = 0; step < steps; step++) {
    const fill = css(colourAt(table, step / (steps - 1)));
    bar.append(svg("rect", { x: left + (step * length) / steps, y: 4, width: length / steps + 0.5, height: 12, fill }));
  }
  const style = { size: 12, fill: theme.quiet };
  const ends = [text(left - 6, 10, low, { ...style, anchor: "right" }), text(left + length + 6, 10, high, style)];
  const frame = svg("rect", { x: left, y: 4, width: length, height: 12, fill: "none", stroke: theme.line });
  const end = left + length + 14 + measure(high, 12);
  const beside = end + measure(name, 12) <= width;
  const note = legendText(name, { width: beside ? width - end : width, theme });
  const node = svg(
    "g",
    bar,
    frame,
    ends,
    svg("g", { transform: beside ? `translate(${end} 1)` : "translate(0 22)" }, note.node),
  );
  return {
    width: Math.ceil(beside ? end + note.width : Math.max(end, note.width)),
    height: beside ? 20 : 22 + note.height,
    node,
  };
}

/** A sentence below a picture: {width, height, node}. It breaks into lines of at most `width`. */
export function legendText(note, { width, theme }) {
  const words = note.split(" ");
  const lines = [];
  for (const { index, line } of wrapped(words, width, { size: 12, padding: 0, gap: 4 }))
    (lines[line] ??= []).push(words[index]);
  const nodes = lines.map((line, index) => text(0, 9 + 17 * index, line.join(" "), { size: 12, fill: theme.quiet }));
  const longest = Math.max(...lines.map((line) => measure(line.join(" "), 12)));
  return { width: Math.ceil(longest) + 4, height: 17 * lines.length + 2, node: svg("g", nodes) };
}

const MAX_ROWS = 100;
const MAX_COLUMNS = 40;

/** The table, or, of a large one, the part around the current position; the caption says so. */
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
      html("th", { scope: "row" }, printable(String(first))),
      others.map((cell) => html("td", printable(String(cell)))),
    );
  });
  return html("table", html("caption", caption + part), html("thead", html("tr", head)), html("tbody", body));
}

function window(length, size, middle) {
  const first = Math.max(0, Math.min(middle - Math.floor(size / 2), length - size));
  return [first, Math.min(length, first + size)];
}
