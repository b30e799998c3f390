// <attention-lines>: any map of a trace as lines between its inputs and outputs.

import { fixed } from "./colours.js";
import { mapChoices, tableOptions } from "./controls.js";
import { levelCurve, measure, shortened, svg, text } from "./dom.js";
import { SelectionElement } from "./matrix.js";
import { Picture } from "./sheet.js";

export class AttentionLines extends SelectionElement {
  static label = "Lines";
  get hint() {
    return (
      "Inputs at the left, outputs at the right. " +
      "Point at a word for its numbers, click to keep it, step with the arrow keys."
    );
  }

  picture(width) {
    const { selection, scale } = this.selected;
    return new LinesPicture(selection, { width, theme: this.theme, scale });
  }

  controls() {
    return { main: mapChoices(this, this.accepts), more: tableOptions(this, { colours: false }) };
  }

  legend() {
    const { scale } = this.selected;
    return scale.perRow ? null : lineLegend(scale.largest, this.theme);
  }
}

const PITCH = 24;
const SIZE = 13;
const MARGIN = 4;
const MAX_LETTERS = 24;
/** Weights below this share of the largest have no line. */
const MIN_SHARE = 0.02;
const MAX_LINES_PER_ROW = 12;
/** Words up to which the shorter side is spread over the height of the longer one. */
const MAX_SPREAD = 60;
const MAX_CURVE = 420;
const MIN_CURVE = 110;

/** The lines of a selection. Positions with row -1 are inputs. */
class LinesPicture extends Picture {
  constructor(selection, { width, theme, scale }) {
    super();
    const short = (labels) => labels.map((label) => shortened(label, MAX_LETTERS));
    const room = (labels) => Math.max(20, ...labels.map((label) => measure(label, SIZE))) + 8;
    this.theme = theme;
    this.rows = selection.height;
    this.inputs = short(selection.columns.labels);
    this.outputs = short(selection.rows.labels);
    this.links = linksByRow(selection, scale);
    const longest = Math.max(this.inputs.length, this.outputs.length);
    // A word-for-word translation stays level.
    const pitch = (count) => (longest <= MAX_SPREAD ? (PITCH * longest) / Math.max(1, count) : PITCH);
    this.inputPitch = pitch(this.inputs.length);
    this.outputPitch = pitch(this.outputs.length);
    const [inputRoom, outputRoom] = [room(this.inputs), room(this.outputs)];
    this.left = inputRoom;
    this.right = inputRoom + Math.max(MIN_CURVE, Math.min(MAX_CURVE, width - inputRoom - outputRoom));
    this.width = Math.ceil(this.right + outputRoom);
    this.height = longest * PITCH + 2 * MARGIN;
  }

  draw(top, bottom) {
    const isVisible = (y) => y >= top - PITCH && y <= bottom + PITCH;
    const links = this.links
      .flat()
      .filter((link) => isVisible(this.#inputY(link.column)) || isVisible(this.#outputY(link.row)));
    // The strongest are drawn last, on top.
    links.sort((one, other) => one.share - other.share);
    const visible = (labels, yOf) => labels.map((_, index) => index).filter((index) => isVisible(yOf(index)));
    return svg(
      "g",
      links.map((link) => this.#curve(link)),
      visible(this.inputs, (column) => this.#inputY(column)).map((column) => this.#input(column)),
      visible(this.outputs, (row) => this.#outputY(row)).map((row) => this.#output(row)),
    );
  }

  mark({ row, column }) {
    const ofRow = row >= 0;
    const links = ofRow ? this.links[row] : this.links.flat().filter((link) => link.column === column);
    const veil = svg("rect", { width: this.width, height: this.height, fill: this.theme.paper, opacity: 0.8 });
    const current = { weight: "700", fill: this.theme.current };
    const bold = { weight: "600" };
    return svg(
      "g",
      veil,
      links.map((link) => this.#curve(link)),
      links.map((link) => this.#number(link, ofRow)),
      links.map((link) => (ofRow ? this.#input(link.column, bold) : this.#output(link.row, bold))),
      ofRow ? this.#output(row, current) : this.#input(column, current),
    );
  }

  at(x, y) {
    const column = Math.floor((y - MARGIN) / this.inputPitch);
    const row = Math.floor((y - MARGIN) / this.outputPitch);
    if (x < this.left) return column >= 0 && column < this.inputs.length ? { row: -1, column } : null;
    return x > this.right - 40 && row >= 0 && row < this.rows ? { row, column: null } : null;
  }

  box({ row, column }) {
    const y = row >= 0 ? this.#outputY(row) : this.#inputY(column);
    return { x: 0, y: y - PITCH / 2, width: this.right, height: PITCH };
  }

  #inputY(column) {
    return (column + 0.5) * this.inputPitch + MARGIN;
  }

  #outputY(row) {
    return (row + 0.5) * this.outputPitch + MARGIN;
  }

  #input(column, style = {}) {
    const own = { anchor: "right", size: SIZE, fill: this.theme.ink, ...style };
    return text(this.left - 6, this.#inputY(column), this.inputs[column], own);
  }

  #output(row, style = {}) {
    return text(this.right + 6, this.#outputY(row), this.outputs[row], { size: SIZE, fill: this.theme.ink, ...style });
  }

  #curve({ row, column, weight, share }) {
    const ends = [[this.left, this.#inputY(column)], [this.right, this.#outputY(row)]];
    return svg("path", {
      d: levelCurve(...ends.map((point) => point.map(Math.round))),
      fill: "none",
      stroke: weight < 0 ? this.theme.current : this.theme.accent,
      ...lineStyle(share),
    });
  }

  /** The weight of a line beside its other end. */
  #number({ row, column, weight }, ofRow) {
    const number = fixed(weight, 2);
    const size = measure(number, 11, "600");
    const [x, y] = ofRow ? [this.left + 8, this.#inputY(column)] : [this.right - 8 - size, this.#outputY(row)];
    const paper = { x: x - 2, y: y - 8, width: size + 4, height: 16, fill: this.theme.paper, opacity: 0.85 };
    return [svg("rect", paper), text(x, y, number, { size: 11, fill: this.theme.ink, weight: "600" })];
  }
}

/** Samples of lines with their weights: {width, height, node}. */
function lineLegend(largest, theme) {
  const node = svg("g");
  [0.1, 0.5, 1].forEach((share, index) => {
    const x = 4 + index * 96;
    node.append(svg("path", { d: `M${x} 10H${x + 40}`, stroke: theme.accent, ...lineStyle(share) }));
    node.append(text(x + 46, 10, fixed(share * largest, largest < 0.2 ? 3 : 2), { size: 12, fill: theme.quiet }));
  });
  node.append(text(290, 10, "weight", { size: 12, fill: theme.quiet }));
  return { width: 340, height: 20, node };
}

function lineStyle(share) {
  return { "stroke-width": 0.6 + 4 * share, "stroke-opacity": 0.08 + 0.85 * share, "stroke-linecap": "round" };
}

/** The strongest links of each row, as {row, column, weight, share}. */
function linksByRow({ weights, height, width }, scale) {
  return Array.from({ length: height }, (_, row) => {
    const links = [];
    for (let column = 0; column < width; column++) {
      const weight = weights[row * width + column];
      const share = Math.min(1, Math.abs(weight) / scale.top(row));
      if (share >= MIN_SHARE) links.push({ row, column, weight, share });
    }
    return links.sort((one, other) => other.share - one.share).slice(0, MAX_LINES_PER_ROW);
  });
}
