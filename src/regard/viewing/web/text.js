// Text in pictures: measuring it, breaking it into lines, and SVG text that is set right in both directions.

import { svg } from "./dom.js";
import { direction } from "./tokens.js";

export const FONT = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
const widths = new Map();
let pen = null;

/** The width of a text in pixels. */
export function measure(text, size = 13, weight = "normal") {
  const key = `${weight} ${size} ${text}`;
  if (!widths.has(key)) {
    pen ??= document.createElement("canvas").getContext("2d");
    pen.font = `${weight} ${size}px ${FONT}`;
    if (widths.size > 20000) widths.clear();
    widths.set(key, pen.measureText(text).width);
  }
  return widths.get(key);
}

/** SVG text. `anchor` is the side of the text, left, middle or right, that stands at x, whatever its direction. */
export function text(x, y, string, { anchor = "left", size = 13, fill, weight, rotate, opacity } = {}) {
  const right = direction(string) === "rtl";
  const anchors = { left: right ? "end" : "start", middle: "middle", right: right ? "start" : "end" };
  return svg(
    "text",
    {
      x,
      y,
      fill,
      opacity,
      "font-size": size,
      "font-weight": weight,
      "text-anchor": anchors[anchor],
      "dominant-baseline": "central",
      direction: right ? "rtl" : undefined,
      transform: rotate ? `rotate(${rotate} ${Math.round(x * 100) / 100} ${Math.round(y * 100) / 100})` : undefined,
    },
    string,
  );
}

/**
 * Break words into lines of at most `width`: [{index, x, line, width}]. Lines of right-to-left text begin at the
 * right. `gap` is the space between two words, `padding` belongs to each side of a word.
 */
export function wrapped(words, width, { size = 13, weight, gap = 4, padding = 3, rtl = false } = {}) {
  const placed = [];
  let x = 0;
  let line = 0;
  words.forEach((word, index) => {
    const own = Math.min(measure(word, size, weight) + 2 * padding, width);
    if (x > 0 && x + own > width) {
      line += 1;
      x = 0;
    }
    placed.push({ index, line, width: own, x: rtl ? width - x - own : x });
    x += own + gap;
  });
  return placed;
}
