// A table of weights as coloured cells: rectangles, which stay sharp in vector graphics, or a bitmap for large tables.

import { colourAt, css } from "./colours.js";
import { svg } from "./dom.js";

const MAX_RECTANGLES = 10000;

/** Draw a table at (x, y). `reversed` draws the first column at the right, as right-to-left inputs need it. */
export function cells({ weights, height, width, scale, table, x, y, cellWidth, cellHeight, reversed = false }) {
  const group = svg("g", { transform: `translate(${x} ${y})`, "shape-rendering": "crispEdges" });
  if (height * width > MAX_RECTANGLES) {
    const href = bitmap({ weights, height, width, scale, table, reversed }).toDataURL();
    const size = { width: width * cellWidth, height: height * cellHeight };
    group.append(svg("image", { href, ...size, preserveAspectRatio: "none", "image-rendering": "pixelated" }));
    return group;
  }
  const gap = Math.min(cellWidth, cellHeight) >= 8 ? 1 : 0;
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const fill = css(colourAt(table, scale.share(row, weights[row * width + column])));
      const left = (reversed ? width - 1 - column : column) * cellWidth;
      group.append(
        svg("rect", { x: left, y: row * cellHeight, width: cellWidth - gap, height: cellHeight - gap, fill }),
      );
    }
  }
  return group;
}

/** A canvas with one pixel for each weight. */
export function bitmap({ weights, height, width, scale, table, reversed = false }) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, width);
  canvas.height = Math.max(1, height);
  const image = new ImageData(canvas.width, canvas.height);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const from = 3 * Math.round(scale.share(row, weights[row * width + column]) * 255);
      const to = 4 * (row * width + (reversed ? width - 1 - column : column));
      image.data[to] = table[from];
      image.data[to + 1] = table[from + 1];
      image.data[to + 2] = table[from + 2];
      image.data[to + 3] = 255;
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

/** A smaller table in which each cell has the number of largest magnitude of its block, so that no peak is lost. */
export function condensed(weights, height, width, maxHeight, maxWidth) {
  const down = Math.ceil(height / maxHeight);
  const across = Math.ceil(width / maxWidth);
  if (down <= 1 && across <= 1) return { weights, height, width, down: 1, across: 1 };
  const small = { height: Math.ceil(height / down), width: Math.ceil(width / across), down, across };
  small.weights = new Float32Array(small.height * small.width);
  for (let row = 0; row < height; row++) {
    const start = Math.floor(row / down) * small.width;
    for (let column = 0; column < width; column++) {
      const place = start + Math.floor(column / across);
      const weight = weights[row * width + column];
      if (Math.abs(weight) > Math.abs(small.weights[place])) small.weights[place] = weight;
    }
  }
  return small;
}
