// The panels of a memory machine above each other, time from left to right (Graves et al. 2014, figure 6).

import { cells } from "./cells.js";
import { colourTable } from "./colours.js";
import { svg } from "./dom.js";
import { Picture } from "./picture.js";
import { Scale } from "./scales.js";
import { measure, text } from "./text.js";

const LEFT = 34;
/** The height of a title; with its note on a line of its own, where there is no room beside the name. */
const [TITLE, TWO_LINES] = [20, 34];
const GAP = 8;
const BESIDE = 40;
const NOTE_SIZE = 11;

/** `tape` has panels and memory, as `tapePanels` gives them. Rows are the steps. */
export class TapePicture extends Picture {
  constructor({ panels, memory }, { width, theme, palette }) {
    super();
    Object.assign(this, { theme, palette });
    const isWide = ({ name, note }) => LEFT + nameWidth(name) + measure(note, NOTE_SIZE) > width;
    this.title = [...panels, memory].some((panel) => panel && isWide(panel)) ? TWO_LINES : TITLE;
    this.rows = panels[0].width;
    this.cellWidth = Math.max(3, Math.min(20, (width - LEFT - 4) / this.rows));
    let y = 0;
    this.panels = panels.map((panel) => {
      const cell = { width: this.cellWidth, height: cellHeight(panel) };
      const placed = { panel, cell, left: LEFT, top: y + this.title };
      y = placed.top + panel.height * cell.height + GAP;
      return placed;
    });
    this.timeline = y;
    this.memory = memory && this.#placeMemory(memory, width);
    const end = this.memory ? this.memory.top + memory.height * this.memory.cell.height + 6 : 0;
    this.width = Math.ceil(Math.max(width, LEFT + this.rows * this.cellWidth + 4));
    this.height = Math.ceil(Math.max(this.timeline + 22, end));
  }

  draw() {
    const all = this.memory ? [...this.panels, this.memory] : this.panels;
    return svg(
      "g",
      {},
      all.map((placed) => this.#panel(placed)),
      this.#steps(),
    );
  }

  mark({ row }) {
    const frame = { x: LEFT + row * this.cellWidth - 1, y: this.title - 2, width: this.cellWidth + 1 };
    const height = this.timeline - this.title - GAP + 4;
    return svg("rect", { ...frame, height, fill: "none", stroke: this.theme.mark, "stroke-width": 2 });
  }

  at(x, y) {
    const step = Math.floor((x - LEFT) / this.cellWidth);
    return step >= 0 && step < this.rows && y < this.timeline ? { row: step, column: null } : null;
  }

  box({ row }) {
    return { x: LEFT + row * this.cellWidth, y: 0, width: this.cellWidth, height: 1 };
  }

  /** The memory stands beside the panels where there is room, otherwise below them. */
  #placeMemory(memory, width) {
    const cell = { width: Math.min(14, (width - LEFT) / memory.width), height: cellHeight(memory) };
    const left = LEFT + this.rows * this.cellWidth + BESIDE + LEFT;
    const isBeside = left + memory.width * cell.width <= width;
    return {
      panel: memory,
      cell,
      ...(isBeside ? { left, top: this.title } : { left: LEFT, top: this.timeline + 26 + this.title }),
    };
  }

  #panel({ panel, cell, left, top }) {
    const scale = new Scale(panel.weights, panel.width);
    if (panel.signed) scale.signed = true;
    if (panel.bounded) scale.largest = 1;
    const table = colourTable(scale.signed ? "signed" : this.palette, this.theme.name);
    const frame = { x: left, y: top, width: panel.width * cell.width, height: panel.height * cell.height };
    const isAbove = this.title === TWO_LINES;
    const note = isAbove ? left : left + nameWidth(panel.name);
    return [
      text(left, top - (isAbove ? 24 : 10), panel.name, { size: 12, weight: "600", fill: this.theme.ink }),
      text(note, top - 10, panel.note, { size: NOTE_SIZE, fill: this.theme.quiet }),
      cells({ ...panel, scale, table, x: left, y: top, cellWidth: cell.width, cellHeight: cell.height }),
      svg("rect", { ...frame, fill: "none", stroke: this.theme.line }),
      this.#labels(panel, cell, left, top),
      [...(panel.wrong ?? [])].map((place) => this.#cross(place, panel, cell, left, top)),
    ];
  }

  #labels(panel, cell, left, top) {
    const every = Math.max(1, Math.ceil(14 / cell.height));
    const style = { anchor: "right", size: 9, fill: this.theme.quiet };
    return panel.labels.map((label, row) =>
      row % every ? null : text(left - 5, top + (row + 0.5) * cell.height, label, style),
    );
  }

  #cross(place, panel, cell, left, top) {
    const [x, y] = [left + (place % panel.width) * cell.width, top + Math.floor(place / panel.width) * cell.height];
    const [right, bottom] = [x + cell.width, y + cell.height];
    return svg("path", {
      d: `M${x} ${y}L${right} ${bottom}M${right} ${y}L${x} ${bottom}`,
      stroke: this.theme.current,
      "stroke-width": 2,
    });
  }

  #steps() {
    const style = { size: 10, fill: this.theme.quiet };
    const every = Math.max(1, Math.ceil(28 / this.cellWidth / 5) * 5);
    const labels = [text(LEFT, this.timeline + 4, "step", style)];
    for (let step = every; step <= this.rows; step += every) {
      const x = LEFT + (step - 0.5) * this.cellWidth;
      labels.push(text(x, this.timeline + 4, String(step), { ...style, anchor: "middle" }));
    }
    return labels;
  }
}

function nameWidth(name) {
  return measure(name, 12, "600") + 8;
}

function cellHeight(panel) {
  if (panel.height < 4) return 14;
  return panel.height > 60 ? 3 : panel.height > 24 ? 6 : 9;
}
