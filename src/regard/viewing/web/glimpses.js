// <attention-glimpses>: where a model looked in an image, one glimpse after the other.

import { exact, fixed } from "./colours.js";
import { html, measure, shortened, svg, text } from "./dom.js";
import { AttentionElement } from "./element.js";
import { blank, decoded, plain } from "./image.js";
import { legendText, numberList } from "./numbers.js";
import { Picture } from "./sheet.js";
import { rowOf } from "./trace.js";

const MAX_CLASSES = 10;

export class AttentionGlimpses extends AttentionElement {
  static label = "Glimpses";
  /** `movable` lets the user drag glimpses over the image: dispatches "attention-glimpse" with {glimpse, x, y}. */
  static defaults = { movable: false };
  get hint() {
    const moving = this.options.movable ? " Drag a number, or press Shift and an arrow key, to move a glimpse." : "";
    return (
      "Numbers mark the glimpses in order. " +
      `Point at one, or step with the arrow keys, to see its windows and what was believed after it.${moving}`
    );
  }

  #picture = null;

  constructor() {
    super();
    makeMovable(this, () => this.#picture);
  }

  static suits(trace) {
    const main = trace.maps[0];
    if (!main?.height || !trace.values("x") || !trace.values("y")) return false;
    return Array.from({ length: main.height }, (_, step) => step).every((step) =>
      trace.boxes.some((box) => box.position === step),
    );
  }

  initialPosition() {
    return { row: this.trace.maps[0].height - 1, column: null };
  }

  picture(width) {
    this.#picture = new GlimpsesPicture(this.#glimpses(), { width, theme: this.theme });
    return this.#picture;
  }

  detail({ row }) {
    const { beliefs, labels, points } = this.#numbers();
    const pairs = beliefs[row].map((belief, index) => [labels[index], belief]).sort((one, other) => other[1] - one[1]);
    const [x, y] = points[row].map((part) => `${fixed(100 * part, 0)} %`);
    return numberList(
      [html("b", `Glimpse ${row + 1}`), ` at ${x} from the left, ${y} from the top; after it:`],
      pairs.slice(0, 6),
    );
  }

  table() {
    const { beliefs, labels, points } = this.#numbers();
    const rows = beliefs.map((belief, glimpse) => [glimpse + 1, ...points[glimpse].map(exact), ...belief.map(exact)]);
    return {
      caption: "Where each glimpse was, and the probability of each class after it",
      columns: ["glimpse", "x", "y", ...labels],
      rows,
    };
  }

  legend(width) {
    const note =
      "Below each number: what the glimpse saw, the sharpest scale first, and the probability of the classes after it.";
    return legendText(note, { width, theme: this.theme });
  }

  #numbers() {
    const { trace } = this;
    const main = trace.maps[0];
    const [x, y] = [trace.values("x"), trace.values("y")];
    return {
      points: x.map((each, index) => [each, y[index]]),
      beliefs: x.map((_, row) => Array.from(rowOf(main, row))),
      labels: trace.axis(main.columns).labels,
      boxes: x.map((_, row) => trace.boxes.filter((box) => box.axis === main.rows && box.position === row)),
    };
  }

  #glimpses() {
    const numbers = this.#numbers();
    const image = this.trace.image ? decoded(this.trace.image, () => this.refresh()) : null;
    const grey = plain(blank(8, 8));
    const last = numbers.beliefs.at(-1);
    const classes = last
      .map((belief, index) => [belief, index])
      .sort((one, other) => other[0] - one[0])
      .slice(0, MAX_CLASSES)
      .map(([, index]) => index);
    classes.sort((one, other) => one - other);
    const given = this.trace.extras.glimpse_size;
    const size = Number.isInteger(given) && given > 0 ? given : 16;
    const patches = numbers.boxes.map((boxes, step) =>
      boxes.map((box, scale) => (image ? patch(image, box, numbers.points[step], size, size * 2 ** scale) : grey)),
    );
    return {
      ...numbers,
      classes,
      patches,
      image: this.trace.image ?? grey,
      ratio: image ? image.naturalHeight / image.naturalWidth : 1,
    };
  }
}

/** What a window saw: cut from the image, black outside of it, and made as coarse as the retina is. */
function patch(image, box, [x, y], size, full) {
  const [width, height] = [image.naturalWidth, image.naturalHeight];
  const [left, right] = uncut(box.left * width, box.right * width, width, full, x * width);
  const [top, bottom] = uncut(box.top * height, box.bottom * height, height, full, y * height);
  const [wide, high] = [Math.max(1, right - left), Math.max(1, bottom - top)];
  const scale = Math.min(1, size / Math.max(wide, high));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [wide, high].map((side) => Math.max(1, Math.round(side * scale)));
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#000000";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.imageSmoothingEnabled = scale < 1;
  pen.imageSmoothingQuality = "high";
  pen.scale(canvas.width / wide, canvas.height / high);
  pen.drawImage(image, -left, -top);
  return canvas.toDataURL();
}

/** Where a window of `full` pixels begins and ends that the edges of the image have cut to [low, high]. */
function uncut(low, high, extent, full, centre) {
  const [start, end] = [Math.round(low), Math.round(high)];
  const [atStart, atEnd] = [start <= 0, end >= extent];
  if (end - start >= full || !(atStart || atEnd)) return [start, end];
  if (!atStart) return [start, start + full];
  return atEnd ? [Math.round(centre - full / 2), Math.round(centre - full / 2) + full] : [end - full, end];
}

const PATH = "#ffb000";
const MAX_IMAGE = 340;
const PATCH = 74;
const PITCH = PATCH + 12;
/** How far the frame of a glimpse is from what it saw. */
const FRAME = 5;
const BAR = 13;
const PIXELATED = { preserveAspectRatio: "none", "image-rendering": "pixelated" };

/**
 * `glimpses` has image (a data URI) and its ratio; by glimpse points, boxes, patches (data URIs) and beliefs; labels of
 * all classes, and `classes`, those that are drawn.
 */
class GlimpsesPicture extends Picture {
  constructor(glimpses, { width, theme }) {
    super();
    Object.assign(this, { glimpses, theme });
    this.rows = glimpses.points.length;
    this.scales = glimpses.patches[0].length;
    this.side = Math.min(MAX_IMAGE, width);
    this.high = Math.round(this.side * glimpses.ratio);
    const isBeside = width >= this.side + 40 + 2 * PITCH;
    // The frame of the current glimpse is wider than what it saw.
    [this.left, this.top] = isBeside ? [this.side + 30, 0] : [FRAME + 1, this.high + 16];
    this.perLine = Math.max(1, Math.min(this.rows, Math.floor((width - this.left) / PITCH)));
    this.columnHeight = 20 + this.scales * (PATCH + 5) + glimpses.classes.length * BAR + 40;
    this.width = Math.max(width, this.left + this.perLine * PITCH);
    this.height = Math.max(this.high, this.top + Math.ceil(this.rows / this.perLine) * this.columnHeight);
  }

  draw() {
    return svg("g", this.#path(), this.glimpses.points.map((_, glimpse) => this.#column(glimpse)));
  }

  mark({ row }) {
    const windows = this.glimpses.boxes[row].map((box, scale) => {
      const [x, y] = this.#point([box.left, box.top]);
      const [right, bottom] = this.#point([box.right, box.bottom]);
      const style = scale === 0 ? { "stroke-width": 3 } : { "stroke-width": 1.5, "stroke-dasharray": "5 4" };
      return svg("rect", { x, y, width: right - x, height: bottom - y, ...style });
    });
    const width = PATCH + 2 * FRAME;
    const frame = { x: this.#x(row) - FRAME, y: this.#y(row) + 1, width, height: this.columnHeight - 19, rx: 6 };
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
    const [line, index] = [Math.floor((y - this.top) / this.columnHeight), Math.floor((x - this.left) / PITCH)];
    const glimpse = line * this.perLine + index;
    const isInside = line >= 0 && index >= 0 && index < this.perLine && glimpse < this.rows;
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
    const bars = classes.map((each, index) => {
      const down = y + index * BAR;
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
  points.forEach(([x, y], index) => {
    const near = groups.find((group) => Math.hypot(group.x - x, group.y - y) < 20);
    if (near) near.numbers.push(index + 1);
    else groups.push({ x, y, numbers: [index + 1] });
  });
  return groups.map(({ x, y, numbers }) => {
    const isRun = numbers.length > 1 && numbers.at(-1) - numbers[0] === numbers.length - 1;
    return { x, y, label: isRun ? `${numbers[0]}-${numbers.at(-1)}` : numbers.join(",") };
  });
}

const STEP = 0.05;
const MOVES = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };
const clamp = (value) => Math.min(1, Math.max(0, value));

/** Let an <attention-glimpses> with the option `movable` move its glimpses; `picture` gives what is drawn now. */
function makeMovable(element, picture) {
  let dragged = null;
  let wasDragged = false;
  /** The last move, which is drawn only when the answer to it has come. */
  let moved = null;
  const tell = (glimpse, { x, y }) => {
    const detail = { glimpse, x: clamp(x), y: clamp(y) };
    moved = { ...detail, trace: element.trace, picture: picture() };
    element.dispatchEvent(new CustomEvent("attention-glimpse", { bubbles: true, composed: true, detail }));
  };
  /** Where a glimpse is, also while a move of it is not drawn yet: keys may be faster than answers. */
  const pointOf = (glimpse) => {
    const isDrawn = moved?.trace !== element.trace && moved?.picture !== picture();
    if (moved?.glimpse === glimpse && !isDrawn) return moved;
    const [x, y] = picture().glimpses.points[glimpse];
    return { x, y };
  };
  const sheet = () => element.shadowRoot.querySelector(".picture svg");
  const point = (event) => {
    const { left, top } = sheet().getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  const listen = (type, listener) => element.addEventListener(type, listener, { capture: true, passive: false });
  /** The glimpse under a pointer or a finger, or null. */
  const under = (event, where) => {
    if (!element.options.movable || !sheet() || !event.composedPath().includes(sheet())) return null;
    return picture()?.inImage(...point(where)) && picture().at(...point(where));
  };

  // A finger on a glimpse moves it, and not the page.
  listen("touchstart", (event) => {
    if (event.touches.length === 1 && under(event, event.touches[0])) event.preventDefault();
  });
  listen("pointerdown", (event) => {
    wasDragged = false;
    const position = event.button ? null : under(event, event);
    if (!position) return;
    event.preventDefault();
    element.setPointerCapture(event.pointerId);
    dragged = { glimpse: position.row, ghost: null };
    element.pinned = position;
  });
  listen("pointermove", (event) => {
    if (!dragged) return;
    event.stopPropagation();
    wasDragged = true;
    dragged.ghost?.remove();
    dragged.ghost = picture().ghost(...point(event));
    sheet().append(dragged.ghost);
  });
  listen("pointerup", (event) => {
    if (!dragged) return;
    const { glimpse, ghost } = dragged;
    dragged = null;
    ghost?.remove();
    const { side, high } = picture();
    const [x, y] = point(event);
    if (wasDragged) tell(glimpse, { x: x / side, y: y / high });
  });
  listen("pointercancel", () => {
    dragged?.ghost?.remove();
    dragged = null;
  });
  // A drag ends with a click, which would let go of the glimpse.
  listen("click", (event) => {
    if (wasDragged) event.stopPropagation();
    wasDragged = false;
  });
  listen("keydown", (event) => {
    const move = event.shiftKey && MOVES[event.key];
    const position = element.current;
    if (!move || !element.options.movable || !position) return;
    event.stopPropagation();
    event.preventDefault();
    const { x, y } = pointOf(position.row);
    tell(position.row, { x: x + move[0], y: y + move[1] });
  });
}
