// Glimpses (Mnih et al. 2014): their path over the image, what each saw at its scales, and the belief after it.

import { svg } from "./dom.js";
import { Picture } from "./picture.js";
import { fixed } from "./scales.js";
import { measure, text } from "./text.js";
import { shortened } from "./tokens.js";

const PATH = "#ffb000";
const MAX_IMAGE = 340;
const PATCH = 74;
const PITCH = PATCH + 12;
const BAR = 13;
const PIXELATED = { preserveAspectRatio: "none", "image-rendering": "pixelated" };

/**
 * `glimpses` has image (a data URI) and its ratio; by glimpse points, boxes, patches (data URIs) and beliefs; labels of
 * all classes, and `classes`, those that are drawn.
 */
export class GlimpsesPicture extends Picture {
  constructor(glimpses, { width, theme }) {
    super();
    Object.assign(this, { glimpses, theme });
    this.rows = glimpses.points.length;
    this.scales = glimpses.patches[0].length;
    this.side = Math.min(MAX_IMAGE, width);
    this.high = Math.round(this.side * glimpses.ratio);
    const isBeside = width >= this.side + 40 + 2 * PITCH;
    [this.left, this.top] = isBeside ? [this.side + 30, 0] : [0, this.high + 16];
    this.perLine = Math.max(1, Math.min(this.rows, Math.floor((width - this.left) / PITCH)));
    this.columnHeight = 20 + this.scales * (PATCH + 5) + glimpses.classes.length * BAR + 40;
    this.width = Math.max(width, this.left + this.perLine * PITCH);
    this.height = Math.max(this.high, this.top + Math.ceil(this.rows / this.perLine) * this.columnHeight);
  }

  draw() {
    return svg(
      "g",
      {},
      this.#path(),
      this.glimpses.points.map((_, glimpse) => this.#column(glimpse)),
    );
  }

  mark({ row }) {
    const windows = this.glimpses.boxes[row].map((box, scale) => {
      const [x, y] = this.#point([box.left, box.top]);
      const [right, bottom] = this.#point([box.right, box.bottom]);
      const style = scale === 0 ? { "stroke-width": 3 } : { "stroke-width": 1.5, "stroke-dasharray": "5 4" };
      return svg("rect", { x, y, width: right - x, height: bottom - y, ...style });
    });
    const frame = { x: this.#x(row) - 4, y: this.#y(row), width: PATCH + 8, height: this.columnHeight - 18, rx: 6 };
    const column = svg("rect", { ...frame, stroke: this.theme.mark, "stroke-width": 2 });
    return svg("g", { fill: "none", stroke: PATH }, windows, column);
  }

  at(x, y) {
    if (x < this.side && y < this.high) {
      const distances = this.glimpses.points.map((point) =>
        Math.hypot(...this.#point(point).map((part, side) => part - [x, y][side])),
      );
      const nearest = distances.indexOf(Math.min(...distances));
      return distances[nearest] < 40 ? { row: nearest, column: null } : null;
    }
    const [line, place] = [Math.floor((y - this.top) / this.columnHeight), Math.floor((x - this.left) / PITCH)];
    const glimpse = line * this.perLine + place;
    const isInside = line >= 0 && place >= 0 && place < this.perLine && glimpse < this.rows;
    return isInside ? { row: glimpse, column: null } : null;
  }

  /** A point of the picture in fractions of the image, {x, y}, or null outside of it. */
  inImage(x, y) {
    const [across, down] = [x / this.side, y / this.high];
    return across >= 0 && across <= 1 && down >= 0 && down <= 1 ? { x: across, y: down } : null;
  }

  /** What is drawn where a glimpse would go that is being moved to a point of the picture. */
  ghost(x, y) {
    return svg("circle", { cx: x, cy: y, r: 11, fill: "none", stroke: PATH, "stroke-width": 3 });
  }

  box({ row }) {
    return { x: this.#x(row), y: this.#y(row), width: PATCH, height: this.columnHeight };
  }

  #x(glimpse) {
    return this.left + (glimpse % this.perLine) * PITCH;
  }

  #y(glimpse) {
    return this.top + Math.floor(glimpse / this.perLine) * this.columnHeight;
  }

  /** From fractions of the image to pixels of the picture. */
  #point([x, y]) {
    return [x * this.side, y * this.high];
  }

  #path() {
    const points = this.glimpses.points.map((point) => this.#point(point));
    const line = { points: points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" "), fill: "none" };
    const size = { width: this.side, height: this.high };
    const numbers = joinedLabels(points).map(({ x, y, label }) => {
      const width = Math.max(18, measure(label, 11, "700") + 8);
      const size = { x: x - width / 2, y: y - 9, width, height: 18, rx: 9 };
      const style = { anchor: "middle", size: 11, weight: "700", fill: "#000000" };
      return [svg("rect", { ...size, fill: PATH, stroke: "#000000" }), text(x, y, label, style)];
    });
    return [
      svg("image", { ...size, ...PIXELATED, href: this.glimpses.image }),
      svg("rect", { ...size, fill: "none", stroke: this.theme.line }),
      svg("polyline", { ...line, stroke: "#000000", "stroke-width": 4, opacity: 0.4 }),
      svg("polyline", { ...line, stroke: PATH, "stroke-width": 2 }),
      numbers,
    ];
  }

  #column(glimpse) {
    const [x, y] = [this.#x(glimpse), this.#y(glimpse)];
    const number = { anchor: "middle", size: 12, weight: "600", fill: this.theme.ink };
    const patches = this.glimpses.patches[glimpse].map((href, scale) => {
      const size = { x, y: y + 20 + scale * (PATCH + 5), width: PATCH, height: PATCH };
      return [
        svg("image", { ...size, ...PIXELATED, href }),
        svg("rect", { ...size, fill: "none", stroke: this.theme.line }),
      ];
    });
    return [
      text(x + PATCH / 2, y + 8, String(glimpse + 1), number),
      patches,
      this.#belief(glimpse, x, y + 24 + this.scales * (PATCH + 5)),
    ];
  }

  #belief(glimpse, x, y) {
    const { beliefs, classes, labels } = this.glimpses;
    const belief = beliefs[glimpse];
    const best = classes.reduce((top, each) => (belief[each] > belief[top] ? each : top), classes[0]);
    const bars = classes.map((each, place) => {
      const down = y + place * BAR;
      const size = { x: x + 18, y: down + 1, width: Math.max(1, (PATCH - 20) * belief[each]), height: BAR - 3 };
      const name = { anchor: "right", size: 10, fill: this.theme.ink };
      return [
        text(x + 14, down + BAR / 2, shortened(labels[each], 3), name),
        svg("rect", { ...size, fill: each === best ? this.theme.accent : this.theme.line }),
      ];
    });
    const answer = `${shortened(labels[best], 6)}  ${fixed(belief[best], 2)}`;
    const style = { anchor: "middle", size: 12, weight: "600", fill: this.theme.ink };
    return [bars, text(x + PATCH / 2, y + classes.length * BAR + 10, answer, style)];
  }
}

/** A label for each point; points that are too near to be labelled apart share one, such as 2-4. */
function joinedLabels(points) {
  const groups = [];
  points.forEach(([x, y], place) => {
    const near = groups.find((group) => Math.hypot(group.x - x, group.y - y) < 20);
    if (near) near.numbers.push(place + 1);
    else groups.push({ x, y, numbers: [place + 1] });
  });
  return groups.map(({ x, y, numbers }) => {
    const isRun = numbers.length > 1 && numbers.at(-1) - numbers[0] === numbers.length - 1;
    return { x, y, label: isRun ? `${numbers[0]}-${numbers.at(-1)}` : numbers.join(",") };
  });
}
