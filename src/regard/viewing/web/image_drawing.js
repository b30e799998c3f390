// A caption over its image (Xu et al. 2015): one word at a time, or all words as small images.

import { svg } from "./dom.js";
import { attentionField, overlaid, plain } from "./overlay.js";
import { fixed } from "./scales.js";
import { measure, text, wrapped } from "./text.js";
import { shortened } from "./tokens.js";

const SIZE = 15;
const LINE = 46;
const TILE = 150;

/** The image with the overlay of the current word; beside or below it the words, to choose from. */
export function wordPicture(caption, { width, theme, overlay, smooth, pinned }) {
  const { selection, base, grid, gates, boxes } = caption;
  const beside = width >= 620;
  const imageWidth = Math.min(base.width, beside ? Math.round(width * 0.55) : width);
  const imageHeight = Math.round((imageWidth * base.height) / base.width);
  const [left, top] = beside ? [imageWidth + 20, 2] : [0, imageHeight + 12];
  const labels = selection.rows.labels.map((label) => shortened(label, 30));
  const rtl = selection.rows.direction === "rtl";
  const room = width - left;
  const placed = wrapped(
    labels.map((label) => `${label} 0.00`),
    room,
    { size: SIZE, gap: 8, padding: 7, rtl },
  );
  const lines = (placed.at(-1)?.line ?? 0) + 1;
  const yOf = (item) => top + item.line * LINE;
  const [cellWidth, cellHeight] = [imageWidth / grid[1], imageHeight / grid[0]];
  const image = (href) => svg("image", { href, width: imageWidth, height: imageHeight, preserveAspectRatio: "none" });

  const chip = (item, current) => {
    const group = svg("g", { transform: `translate(${left + item.x} ${yOf(item)})` });
    const fill = current ? theme.current : theme.ink;
    const number = fixed(caption.peaks[item.index], 2);
    const outline = {
      width: item.width,
      height: 30,
      rx: 6,
      fill: theme.paper,
      stroke: current ? theme.current : theme.line,
      "stroke-width": current ? 2 : 1,
    };
    const numberWidth = measure(number, 11);
    const [wordX, numberX] = rtl ? [item.width - 7, 7] : [7, item.width - 7 - numberWidth];
    group.append(
      svg("rect", outline),
      text(wordX, 15, labels[item.index], {
        anchor: rtl ? "right" : "left",
        size: SIZE,
        fill,
        weight: current ? "700" : undefined,
      }),
    );
    group.append(text(numberX, 16, number, { size: 11, fill: theme.quiet }));
    if (gates) {
      group.append(svg("rect", { x: 4, y: 33, width: item.width - 8, height: 4, rx: 2, fill: theme.line }));
      group.append(
        svg("rect", {
          x: 4,
          y: 33,
          width: (item.width - 8) * Math.max(0, Math.min(1, gates[item.index])),
          height: 4,
          rx: 2,
          fill: theme.accent,
        }),
      );
    }
    return group;
  };

  const mark = ({ row, column }) => {
    const weights = selection.weights.subarray(row * selection.width, (row + 1) * selection.width);
    const field = attentionField(weights, grid, base.width, base.height, smooth);
    const group = svg("g", {}, image(overlaid(base, field, overlay)), chip(placed[row], true));
    for (const box of boxes.filter((each) => selection.rows.members[row].includes(each.position))) {
      const frame = {
        x: box.left * imageWidth,
        y: box.top * imageHeight,
        width: (box.right - box.left) * imageWidth,
        height: (box.bottom - box.top) * imageHeight,
      };
      group.append(
        svg("rect", { ...frame, fill: "none", stroke: "#ffffff", "stroke-width": 4 }),
        svg("rect", { ...frame, fill: "none", stroke: "#0072b2", "stroke-width": 2 }),
      );
    }
    const cell = column ?? caption.choices?.[row];
    if (cell !== undefined && cell !== null) {
      const frame = {
        x: (cell % grid[1]) * cellWidth,
        y: Math.floor(cell / grid[1]) * cellHeight,
        width: cellWidth,
        height: cellHeight,
        fill: "none",
      };
      group.append(
        svg("rect", { ...frame, stroke: "#000000", "stroke-width": 4 }),
        svg("rect", { ...frame, stroke: "#ffffff", "stroke-width": 2 }),
      );
    }
    return group;
  };

  return {
    width,
    height: Math.max(imageHeight, top + lines * LINE + 4),
    rows: labels.length,
    reversed: rtl,
    draw: () =>
      svg(
        "g",
        {},
        image(plain(base)),
        placed.map((item) => chip(item, false)),
      ),
    mark,
    at: (x, y) => {
      if (x < imageWidth && y < imageHeight) {
        const cell = Math.floor(y / cellHeight) * grid[1] + Math.floor(x / cellWidth);
        return pinned() ? { row: pinned().row, column: cell } : null;
      }
      const found = placed.find(
        (item) => x >= left + item.x && x <= left + item.x + item.width && y >= yOf(item) && y <= yOf(item) + 38,
      );
      return found ? { row: found.index, column: null } : null;
    },
    box: ({ row }) => ({ x: left + placed[row].x, y: yOf(placed[row]), width: placed[row].width, height: LINE }),
  };
}

/** A tile for each word: the image as this word attends to it, the word, and its largest weight. */
export function tilesPicture(caption, { width, theme, overlay, smooth }) {
  const { selection, base, grid, gates } = caption;
  const columns = Math.max(2, Math.min(selection.height, Math.floor(width / TILE)));
  const tile = Math.floor(width / columns) - 8;
  const high = Math.round((tile * base.height) / base.width);
  const pitch = high + (gates ? 44 : 34);
  const place = (row) => [(row % columns) * (tile + 8), Math.floor(row / columns) * pitch];
  const drawTile = (row) => {
    const weights = selection.weights.subarray(row * selection.width, (row + 1) * selection.width);
    const field = attentionField(weights, grid, base.width, base.height, smooth);
    const [x, y] = place(row);
    const label = shortened(selection.rows.labels[row], Math.max(6, Math.floor(tile / 11)));
    const group = svg("g", { transform: `translate(${x} ${y})` });
    group.append(
      svg("image", { href: overlaid(base, field, overlay), width: tile, height: high, preserveAspectRatio: "none" }),
    );
    group.append(text(2, high + 13, label, { size: 13, fill: theme.ink, weight: "600" }));
    group.append(
      text(tile - 2, high + 13, fixed(caption.peaks[row], 2), { anchor: "right", size: 11, fill: theme.quiet }),
    );
    if (gates) {
      group.append(svg("rect", { x: 0, y: high + 25, width: tile, height: 4, rx: 2, fill: theme.line }));
      group.append(
        svg("rect", {
          x: 0,
          y: high + 25,
          width: tile * Math.max(0, Math.min(1, gates[row])),
          height: 4,
          rx: 2,
          fill: theme.accent,
        }),
      );
    }
    return group;
  };
  return {
    width: columns * (tile + 8) - 8,
    height: Math.ceil(selection.height / columns) * pitch,
    rows: selection.height,
    draw: (top, bottom) => {
      const rows = Array.from({ length: selection.height }, (_, row) => row);
      return svg("g", {}, rows.filter((row) => place(row)[1] < bottom && place(row)[1] + pitch > top).map(drawTile));
    },
    mark: ({ row }) => {
      const [x, y] = place(row);
      return svg("rect", {
        x: x + 1,
        y: y + 1,
        width: tile - 2,
        height: high - 2,
        fill: "none",
        stroke: theme.mark,
        "stroke-width": 3,
      });
    },
    at: (x, y) => {
      const row = Math.floor(y / pitch) * columns + Math.floor(x / (tile + 8));
      return x >= 0 && y >= 0 && x < columns * (tile + 8) && row < selection.height ? { row, column: null } : null;
    },
    box: ({ row }) => ({ x: place(row)[0], y: place(row)[1], width: tile, height: pitch }),
  };
}
