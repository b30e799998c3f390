// A heat map: outputs down the side, inputs along the top, a coloured cell for each weight (Bahdanau et al. 2015, fig. 3).

import { cells } from "./cells.js";
import { colourAt, inkOn } from "./colours.js";
import { svg } from "./dom.js";
import { fixed } from "./scales.js";
import { measure, text } from "./text.js";
import { shortened } from "./tokens.js";

const LABEL_SIZE = 13;
const MAX_NUMBERS = 400;
const SLANT = 55;

/** The picture of a selection that fits into a width where its cells stay large enough; otherwise it is wider. */
export function matrixPicture(selection, { width, theme, scale, table, maxCell = 52 }) {
  const layout = measured(selection, width, maxCell);
  const { cellWidth, cellHeight, left, top, rowLabels, columnLabels } = layout;
  const reversed = selection.columns.direction === "rtl";
  const xOf = (column) => left + (reversed ? selection.width - 1 - column : column) * cellWidth;
  const numbers = selection.height * selection.width <= MAX_NUMBERS && cellWidth >= 32;

  const weightText = (row, column) => {
    const weight = selection.weights[row * selection.width + column];
    const fill = inkOn(colourAt(table, scale.share(row, weight)));
    const [x, y] = [xOf(column) + cellWidth / 2, top + (row + 0.5) * cellHeight];
    return text(x, y, fixed(weight, 2), { anchor: "middle", size: 11, fill });
  };

  const draw = () => {
    const group = svg("g");
    rowLabels.forEach((label, row) => {
      const y = top + (row + 0.5) * cellHeight;
      group.append(text(left - 6, y, label, { anchor: "right", size: layout.labelSize, fill: theme.ink }));
    });
    columnLabels.forEach((label, column) => {
      const x = xOf(column) + cellWidth / 2;
      const slanted = { anchor: "left", size: layout.labelSize, fill: theme.ink, rotate: -SLANT };
      const level = { anchor: "middle", size: layout.labelSize, fill: theme.ink };
      group.append(layout.slanted ? text(x, top - 8, label, slanted) : text(x, top - 12, label, level));
    });
    group.append(cells({ ...selection, scale, table, x: left, y: top, cellWidth, cellHeight, reversed }));
    if (numbers) {
      for (let row = 0; row < selection.height; row++) {
        for (let column = 0; column < selection.width; column++) {
          if (Math.abs(selection.weights[row * selection.width + column]) >= 0.005)
            group.append(weightText(row, column));
        }
      }
    }
    return group;
  };

  const mark = ({ row, column }) => {
    const group = svg("g", { fill: "none", stroke: theme.mark, "stroke-width": 2 });
    const y = top + row * cellHeight;
    if (row >= 0)
      group.append(
        svg("rect", { x: left - 1, y: y - 1, width: selection.width * cellWidth + 1, height: cellHeight + 1 }),
      );
    if (column !== null && column < selection.width) {
      group.append(
        svg("rect", {
          x: xOf(column) - 1,
          y: top - 1,
          width: cellWidth + 1,
          height: selection.height * cellHeight + 1,
          opacity: 0.45,
        }),
      );
      if (row >= 0)
        group.append(svg("rect", { x: xOf(column) - 1, y: y - 1, width: cellWidth + 1, height: cellHeight + 1 }));
    }
    return group;
  };

  return {
    width: layout.width,
    height: layout.height,
    rows: selection.height,
    columns: selection.width,
    reversed,
    draw,
    mark,
    at: (x, y) => {
      const row = Math.floor((y - top) / cellHeight);
      const shown = Math.floor((x - left) / cellWidth);
      if (row >= selection.height || shown >= selection.width || (row < 0 && shown < 0)) return null;
      // Above the cells are the labels of the columns, beside them those of the rows.
      return { row: Math.max(-1, row), column: shown < 0 ? null : reversed ? selection.width - 1 - shown : shown };
    },
    box: ({ row, column }) => ({
      x: column === null ? 0 : xOf(column),
      y: row < 0 ? 0 : top + row * cellHeight,
      width: cellWidth,
      height: cellHeight,
    }),
  };
}

function measured(selection, width, maxCell) {
  // Many positions, or a phone: small cells and labels rather than much scrolling.
  const small = Math.max(selection.height, selection.width) > 45 || width < 24 * selection.width;
  const labelSize = small ? 11 : LABEL_SIZE;
  const rowLabels = selection.rows.labels.map((label) => shortened(label, 24));
  const columnLabels = selection.columns.labels.map((label) => shortened(label, 24));
  const longest = (labels) => Math.max(20, ...labels.map((label) => measure(label, labelSize)));
  const left = longest(rowLabels) + 10;
  const widest = longest(columnLabels);
  const angle = (SLANT * Math.PI) / 180;
  // Slanted labels reach beyond the last column, by as much as they are long.
  const fitted = (beyond) => Math.floor((width - left - beyond) / Math.max(1, selection.width));
  let cellWidth = Math.min(maxCell, fitted(2));
  const slanted = widest + 6 > cellWidth;
  const beyond = slanted ? Math.min(widest, measure(columnLabels.at(-1) ?? "", labelSize)) * Math.cos(angle) + 8 : 2;
  if (slanted) cellWidth = Math.min(maxCell, Math.max(small ? 13 : 18, fitted(beyond)));
  const cellHeight = Math.max(small ? 13 : 22, Math.min(28, cellWidth));
  const top = slanted ? widest * Math.sin(angle) + 16 : 26;
  return {
    rowLabels,
    columnLabels,
    labelSize,
    left,
    top,
    cellWidth,
    cellHeight,
    slanted,
    width: Math.ceil(left + selection.width * cellWidth + beyond),
    height: Math.ceil(top + selection.height * cellHeight + 2),
  };
}
