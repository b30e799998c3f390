// All heads of a model as small maps, a row for each layer, and the current one enlarged below them.

import { bitmap } from "./cells.js";
import { svg } from "./dom.js";
import { matrixPicture } from "./matrix_drawing.js";
import { Scale } from "./scales.js";
import { measure, text } from "./text.js";

const GAP = 6;
const TOP = 24;
const LEFT = 64;
const MIN_SIDE = 26;
const MAX_SIDE = 96;

/**
 * `heads` is a list of rows of {map, selection} or null. One scale of colours serves all heads, so that they can be
 * compared; or each row of each map has its own.
 */
export function headsPicture(heads, { width, theme, table, perRow, layerNames, headNames }) {
  const columns = headNames.length;
  const side = Math.max(MIN_SIDE, Math.min(MAX_SIDE, Math.floor((width - LEFT) / columns) - GAP));
  const shapes = heads
    .flat()
    .filter(Boolean)
    .map(({ selection }) => selection);
  const largest = Math.max(...shapes.map(({ weights }) => new Scale(weights, 1).largest));
  const scaleOf = ({ selection }) => {
    const own = new Scale(selection.weights, selection.width, perRow);
    if (!perRow) own.largest = largest;
    return own;
  };
  const gridHeight = TOP + heads.length * (side + GAP);
  const xOf = (column) => LEFT + column * (side + GAP);
  const yOf = (row) => TOP + row * (side + GAP);
  const thumbnails = new Map();

  const thumbnail = (cell) => {
    if (!thumbnails.has(cell)) {
      const { selection } = cell;
      const reversed = selection.columns.direction === "rtl";
      thumbnails.set(cell, bitmap({ ...selection, scale: scaleOf(cell), table, reversed }).toDataURL());
    }
    return thumbnails.get(cell);
  };
  const enlarged = (cell) => matrixPicture(cell.selection, { width, theme, scale: scaleOf(cell), table, maxCell: 44 });
  const example = enlarged(heads.flat().find(Boolean));

  const draw = () => {
    const group = svg("g");
    const label = { size: 11, fill: theme.quiet };
    const isShort = headNames.some((name) => measure(name, 11) > side);
    if (isShort) group.append(text(LEFT - 8, 12, "head", { ...label, anchor: "right" }));
    headNames.forEach((name, column) => {
      group.append(
        text(xOf(column) + side / 2, 12, isShort ? name.split(" ").at(-1) : name, { ...label, anchor: "middle" }),
      );
    });
    heads.forEach((cells, row) => {
      group.append(text(LEFT - 8, yOf(row) + side / 2, layerNames[row], { ...label, anchor: "right" }));
      cells.forEach((cell, column) => {
        if (!cell) return;
        const size = { x: xOf(column), y: yOf(row), width: side, height: side };
        group.append(
          svg("image", { ...size, href: thumbnail(cell), preserveAspectRatio: "none", "image-rendering": "pixelated" }),
        );
        group.append(svg("rect", { ...size, fill: "none", stroke: theme.line }));
      });
    });
    return group;
  };

  const mark = ({ row, column }) => {
    const cell = heads[row]?.[column ?? 0];
    if (!cell) return null;
    const frame = { x: xOf(column ?? 0) - 2, y: yOf(row) - 2, width: side + 4, height: side + 4 };
    const below = svg("g", { transform: `translate(0 ${gridHeight + 28})` }, enlarged(cell).draw());
    const title = text(0, gridHeight + 14, cell.map.name, { size: 13, weight: "600", fill: theme.ink });
    return svg("g", {}, svg("rect", { ...frame, fill: "none", stroke: theme.mark, "stroke-width": 3 }), title, below);
  };

  return {
    width: Math.max(xOf(columns), example.width),
    height: gridHeight + 28 + example.height,
    rows: heads.length,
    columns,
    draw,
    mark,
    at: (x, y) => {
      const [row, column] = [Math.floor((y - TOP) / (side + GAP)), Math.floor((x - LEFT) / (side + GAP))];
      return row >= 0 && column >= 0 && heads[row]?.[column] ? { row, column } : null;
    },
    box: ({ row, column }) => ({ x: xOf(column ?? 0), y: yOf(row), width: side, height: side }),
    largest,
  };
}
