// Lines between two columns of words: inputs at the left, outputs at the right, a line as strong as each weight.

import { svg } from "./dom.js";
import { fixed } from "./scales.js";
import { measure, text } from "./text.js";
import { shortened } from "./tokens.js";

const PITCH = 24;
const SIZE = 13;
/** Weights below this share of the largest have no line. */
const MIN_SHARE = 0.02;
const MAX_LINES_PER_ROW = 12;
const MAX_SPREAD = 60;

/** The picture of a selection. Places with row -1 are inputs. */
export function linesPicture(selection, { width, theme, scale }) {
  const sides = [selection.columns.labels, selection.rows.labels].map((labels) =>
    labels.map((label) => shortened(label, 24)),
  );
  const [leftWidth, rightWidth] = sides.map(
    (labels) => Math.max(20, ...labels.map((label) => measure(label, SIZE))) + 8,
  );
  const longest = Math.max(selection.height, selection.width);
  // The shorter side is spread over the height of the longer one, which keeps a word-for-word translation level.
  const pitch = (count) => (longest <= MAX_SPREAD ? (PITCH * longest) / Math.max(1, count) : PITCH);
  const inputY = (column) => (column + 0.5) * pitch(selection.width) + 4;
  const outputY = (row) => (row + 0.5) * pitch(selection.height) + 4;
  const right = Math.max(leftWidth + 110, Math.min(width, leftWidth + rightWidth + 420) - rightWidth);
  const middle = (leftWidth + right) / 2;
  const height = longest * PITCH + 8;
  const links = linksByRow(selection, scale);

  const curve = ({ row, column, share }, colour, strength = 1) => {
    const [from, to] = [inputY(column), outputY(row)];
    return svg("path", {
      d: `M${leftWidth} ${Math.round(from)}C${middle} ${Math.round(from)} ${middle} ${Math.round(to)} ${right} ${Math.round(to)}`,
      fill: "none",
      stroke: colour,
      "stroke-width": 0.6 + 4 * share,
      "stroke-opacity": strength * (0.08 + 0.85 * share),
      "stroke-linecap": "round",
    });
  };
  const colour = (link) => (link.weight < 0 ? theme.current : theme.accent);
  const input = (column, options = {}) =>
    text(leftWidth - 6, inputY(column), sides[0][column], { anchor: "right", size: SIZE, fill: theme.ink, ...options });
  const output = (row, options = {}) =>
    text(right + 6, outputY(row), sides[1][row], { size: SIZE, fill: theme.ink, ...options });
  const isVisible = (y, top, bottom) => y >= top - PITCH && y <= bottom + PITCH;

  const draw = (top, bottom) => {
    const group = svg("g");
    const shown = links
      .flat()
      .filter(({ row, column }) => isVisible(outputY(row), top, bottom) || isVisible(inputY(column), top, bottom));
    // The strongest are drawn last, on top.
    shown.sort((one, other) => one.share - other.share);
    group.append(...shown.map((link) => curve(link, colour(link))));
    sides[0].forEach((_, column) => isVisible(inputY(column), top, bottom) && group.append(input(column)));
    sides[1].forEach((_, row) => isVisible(outputY(row), top, bottom) && group.append(output(row)));
    return group;
  };

  const mark = ({ row, column }) => {
    const chosen = row >= 0 ? links[row] : links.flat().filter((link) => link.column === column);
    const veil = svg("rect", { width: right + rightWidth, height, fill: theme.paper, opacity: 0.8 });
    const group = svg(
      "g",
      {},
      veil,
      chosen.map((link) => curve(link, colour(link))),
    );
    const bold = { weight: "700", fill: theme.current };
    group.append(row >= 0 ? output(row, bold) : input(column, bold));
    for (const link of chosen) {
      const [x, y] = row >= 0 ? [leftWidth + 8, inputY(link.column)] : [right - 8, outputY(link.row)];
      const number = { anchor: row >= 0 ? "left" : "right", size: 11, fill: theme.ink, weight: "600" };
      const size = measure(fixed(link.weight, 2), 11, "600");
      group.append(
        svg("rect", {
          x: row >= 0 ? x - 2 : x - size - 2,
          y: y - 8,
          width: size + 4,
          height: 16,
          fill: theme.paper,
          opacity: 0.85,
        }),
      );
      group.append(
        text(x, y, fixed(link.weight, 2), number),
        row >= 0 ? input(link.column, { weight: "600" }) : output(link.row, { weight: "600" }),
      );
    }
    return group;
  };

  return {
    width: Math.ceil(right + rightWidth),
    height,
    rows: selection.height,
    draw,
    mark,
    at: (x, y) => {
      const column = Math.floor((y - 4) / pitch(selection.width));
      const row = Math.floor((y - 4) / pitch(selection.height));
      if (x < leftWidth) return column >= 0 && column < selection.width ? { row: -1, column } : null;
      return x > right - 40 && row >= 0 && row < selection.height ? { row, column: null } : null;
    },
    box: ({ row, column }) => ({
      x: 0,
      y: (row >= 0 ? outputY(row) : inputY(column)) - PITCH / 2,
      width: right,
      height: PITCH,
    }),
  };
}

function linksByRow(selection, scale) {
  const links = [];
  for (let row = 0; row < selection.height; row++) {
    const own = [];
    for (let column = 0; column < selection.width; column++) {
      const weight = selection.weights[row * selection.width + column];
      const share = Math.min(1, Math.abs(weight) / scale.top(row));
      if (share >= MIN_SHARE) own.push({ row, column, weight, share });
    }
    own.sort((one, other) => other.share - one.share);
    links.push(own.slice(0, MAX_LINES_PER_ROW));
  }
  return links;
}
