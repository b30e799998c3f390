// <attention-glimpses>: where a model looked in an image, one glimpse after the other.

import { html } from "./dom.js";
import { AttentionElement } from "./element.js";
import { GlimpsesPicture } from "./glimpses_drawing.js";
import { makeMovable } from "./glimpses_moving.js";
import { legendText, numberList } from "./numbers.js";
import { blank, decoded, plain } from "./overlay.js";
import { exact, fixed } from "./scales.js";

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

  initialPlace() {
    return { row: this.trace.maps[0].height - 1, column: null };
  }

  picture(width) {
    this.#picture = new GlimpsesPicture(this.#glimpses(), { width, theme: this.theme });
    return this.#picture;
  }

  detail({ row }) {
    const { beliefs, labels, points } = this.#numbers();
    const pairs = beliefs[row].map((belief, place) => [labels[place], belief]).sort((one, other) => other[1] - one[1]);
    const [x, y] = points[row].map((part) => `${fixed(100 * part, 0)} %`);
    return numberList(
      [html("b", {}, `Glimpse ${row + 1}`), ` at ${x} from the left, ${y} from the top; after it:`],
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
      points: x.map((each, place) => [each, y[place]]),
      beliefs: x.map((_, row) => Array.from(main.weights.subarray(row * main.width, (row + 1) * main.width))),
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
      .map((belief, place) => [belief, place])
      .sort((one, other) => other[0] - one[0])
      .slice(0, MAX_CLASSES)
      .map(([, place]) => place);
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
