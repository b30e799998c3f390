// Building nodes: HTML and SVG, text that is measured and set in both directions, and tables of weights as cells; and
// texts as people read them: right-to-left scripts, control characters, long labels.
//
// Text always becomes text nodes, never markup, so that no token can inject HTML.

import { colourAt, css } from "./colours.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element: a tag with its classes, such as "div.row"; properties, `on...` listeners and `aria-...`/`data-...`/
 * `role` attributes, where there are any; and children.
 */
export function html(selector, ...rest) {
  const { node, properties, children } = made(selector, rest, (tag) => document.createElement(tag));
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && !name.includes("-")) node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  return fill(node, children);
}

/** An SVG element, as `html` makes one, with attributes; numbers are rounded to hundredths to keep files small. */
export function svg(selector, ...rest) {
  const { node, properties, children } = made(selector, rest, (tag) => document.createElementNS(SVG, tag));
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    node.setAttribute(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  }
  return fill(node, children);
}

/** A button with its label, a text or nodes, and what a click does. */
export function button(label, onclick, properties = {}) {
  return html("button", { type: "button", onclick, ...properties }, label);
}

/** Replace the children of a node; null and undefined are none. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

function made(selector, rest, create) {
  const [tag, ...classes] = selector.split(".");
  const node = create(tag);
  if (classes.length) node.classList.add(...classes);
  const [first, ...others] = rest;
  return first?.constructor === Object
    ? { node, properties: first, children: others }
    : { node, properties: {}, children: rest };
}

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

/** A curve between two points, level at both ends. */
export function levelCurve([startX, startY], [endX, endY]) {
  const middle = (startX + endX) / 2;
  return `M${startX} ${startY}C${middle} ${startY} ${middle} ${endY} ${endX} ${endY}`;
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
  const canvas = html("canvas", { width: Math.max(1, width), height: Math.max(1, height) });
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
      const index = start + Math.floor(column / across);
      const weight = weights[row * width + column];
      if (Math.abs(weight) > Math.abs(small.weights[index])) small.weights[index] = weight;
    }
  }
  return small;
}

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/g;
const LETTER = /\p{L}/gu;
// Controls, line separators, and marks that reorder the text after them.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** A label with its control characters made visible. */
export function printable(label) {
  return label.replace(CONTROL, (letter) => (letter === "\n" ? "⏎" : letter === "\t" ? "⇥" : "\ufffd"));
}

/** The printable label, cut to a number of letters. */
export function shortened(label, letters = 28) {
  const shown = [...printable(label.slice(0, 4 * letters + 8))];
  return shown.length <= letters ? shown.join("") : `${shown.slice(0, letters - 1).join("")}…`;
}

/** "rtl" where most letters belong to a right-to-left script, otherwise "ltr". */
export function direction(labels) {
  const text = Array.isArray(labels) ? labels.join(" ") : labels;
  const right = text.match(RIGHT_TO_LEFT)?.length ?? 0;
  return 2 * right > (text.match(LETTER)?.length ?? 0) ? "rtl" : "ltr";
}
