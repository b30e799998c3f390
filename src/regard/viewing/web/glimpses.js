// <attention-glimpses>: where a model looked in an image, one glimpse after the other.

import { html } from "./dom.js";
import { AttentionElement } from "./element.js";
import { GlimpsesPicture } from "./glimpses_drawing.js";
import { legendText, numberList } from "./numbers.js";
import { blank, decoded, plain } from "./overlay.js";
import { exact, fixed } from "./scales.js";

const MAX_CLASSES = 10;

export class AttentionGlimpses extends AttentionElement {
  static label = "Glimpses";
  get hint() {
    return (
      "Numbers mark the glimpses in order. " +
      "Point at one, or step with the arrow keys, to see its windows and what was believed after it."
    );
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
    return new GlimpsesPicture(this.#glimpses(), { width, theme: this.theme });
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
    const size = this.trace.extras.glimpse_size;
    const patches = numbers.boxes.map((boxes) =>
      boxes.map((box) => (image ? patch(image, box, Number.isInteger(size) && size > 0 ? size : 16) : grey)),
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

/** What a window saw: cut from the image and made as coarse as the retina is. */
function patch(image, box, size) {
  const canvas = document.createElement("canvas");
  const [wide, high] = [(box.right - box.left) * image.naturalWidth, (box.bottom - box.top) * image.naturalHeight];
  const scale = Math.min(1, size / Math.max(wide, high));
  canvas.width = Math.max(1, Math.round(wide * scale));
  canvas.height = Math.max(1, Math.round(high * scale));
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = scale < 1;
  pen.imageSmoothingQuality = "high";
  pen.drawImage(
    image,
    box.left * image.naturalWidth,
    box.top * image.naturalHeight,
    wide,
    high,
    0,
    0,
    canvas.width,
    canvas.height,
  );
  return canvas.toDataURL();
}
