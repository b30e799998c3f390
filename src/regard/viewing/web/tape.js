// <attention-tape>: a memory machine at work.

import { colourTable, exact, fixed, PALETTES, Scale } from "./colours.js";
import { cells, html, measure, svg, text } from "./dom.js";
import { AttentionElement } from "./element.js";
import { legendBar, numberList } from "./numbers.js";
import { Picture } from "./sheet.js";
import { rowOf } from "./trace.js";

/** The names of the maps of heads. */
const HEAD = /^(write|read) \d+$/;
const isWriting = ({ name }) => name.startsWith("write");

export class AttentionTape extends AttentionElement {
  static label = "Tape";
  static defaults = { palette: "blue", allSlots: false, vectors: false };
  get hint() {
    return "Time runs from left to right. Point at a step, or step with the arrow keys, to see where the heads are.";
  }

  static suits(trace) {
    return ["input", "output", "target"].every((name) => trace.map(name)?.weights.length);
  }

  picture(width) {
    const { theme, options } = this;
    return new TapePicture(tapePanels(this.trace, options), { width, theme, palette: options.palette });
  }

  controls() {
    const { wrong, panels } = tapePanels(this.trace);
    const output = this.trace.map("output");
    const scored = (this.trace.values("scored") ?? []).reduce((sum, each) => sum + each, 0) * output.width;
    const verdict = html("span", `${panels[0].width} steps, ${scored - wrong.size} of ${scored} bits right`);
    return {
      main: [verdict],
      more: [
        this.choice("Colours", "palette", PALETTES),
        this.flag("Show what heads write and read", "vectors"),
        this.flag("Show unused slots too", "allSlots"),
      ],
    };
  }

  detail({ row }) {
    const { trace } = this;
    const pairs = [];
    for (const map of trace.maps.filter(({ name }) => HEAD.test(name))) {
      const weights = rowOf(map, row);
      const slot = weights.indexOf(Math.max(...weights));
      const does = isWriting(map) ? "writes to" : "reads from";
      pairs.push([`${does} slot ${trace.axis(map.columns).labels[slot]}`, weights[slot]]);
    }
    const steps = trace.map("output").rows;
    for (const series of trace.series)
      if (series.axis === steps && series.name !== "scored") pairs.push([series.name, series.values[row]]);
    const bits = (name) => {
      const map = trace.map(name);
      const shown = (bit) => (bit === 0 || bit === 1 ? bit : name === "output" ? Number(bit > 0.5) : fixed(bit, 2));
      return Array.from(rowOf(map, row), shown).join(" ");
    };
    const isScored = trace.values("scored")?.[row] ?? 1;
    const heading = [
      html("b", `Step ${row + 1}`),
      `: input ${bits("input")}`,
      isScored ? `; output ${bits("output")}, right is ${bits("target")}` : "",
    ];
    return numberList(heading, pairs);
  }

  table() {
    const { trace } = this;
    const steps = trace.axis(trace.map("output").rows).labels;
    const maps = trace.maps.filter((map) => map.rows === trace.map("output").rows);
    const series = trace.series.filter((each) => each.axis === trace.map("output").rows);
    const columns = [
      "step",
      ...series.map((each) => each.name),
      ...maps.flatMap((map) => trace.axis(map.columns).labels.map((label) => `${map.name}: ${label}`)),
    ];
    const rows = steps.map((label, row) => [
      label,
      ...series.map((each) => exact(each.values[row])),
      ...maps.flatMap((map) => Array.from(rowOf(map, row), exact)),
    ]);
    return { caption: "All numbers of each step", columns, rows };
  }

  legend(width) {
    const table = colourTable(this.options.palette, this.theme.name);
    const name = this.trace.map("memory") ? "weight or bit; memory: purple below 0, orange above" : "weight or bit";
    return legendBar({ scale: { perRow: false, signed: false, largest: 1 }, table, theme: this.theme, width, name });
  }
}

/**
 * The panels of a trace of kind "tape": {name, note, height, width, weights, labels, bounded, wrong?}, a column for
 * each step; the memory, if there is one, has a column for each feature. Unless `allSlots`, only the part of the
 * memory that a head used is shown. With `vectors`, also what each head adds and reads.
 */
function tapePanels(trace, { allSlots = false, vectors = false } = {}) {
  const map = (name) => trace.map(name);
  const [input, output, target] = ["input", "output", "target"].map(map);
  const scored = trace.values("scored") ?? new Array(output.height).fill(1);
  const wrong = new Set();
  for (let step = 0; step < output.height; step++) {
    for (let bit = 0; bit < output.width; bit++) {
      const index = step * output.width + bit;
      if (scored[step] && output.weights[index] > 0.5 !== target.weights[index] > 0.5)
        wrong.add(bit * output.height + step);
    }
  }
  const panel = (name, note, table, labels, others = {}) => {
    return { name, note, ...table, labels, bounded: true, ...others };
  };
  const bits = (count) => Array.from({ length: count }, (_, index) => String(index + 1));
  const answer = transposed(output, (weight, step) => weight * scored[step]);
  const verdict = wrong.size ? "its answer; wrong bits are crossed out" : "its answer, all bits right";
  const panels = [
    panel("input", "what the machine is given", transposed(input), bits(input.width)),
    panel("output", verdict, answer, bits(output.width), { wrong }),
  ];
  const heads = trace.maps.filter(({ name }) => HEAD.test(name));
  if (!heads.length) {
    const attention = map("attention");
    if (attention) panels.push(panel("attention", "", transposed(attention), trace.axis(attention.columns).labels));
    return { panels, memory: null, wrong };
  }
  const count = heads[0].width;
  const [first, length] = (!allSlots && trace.usedSlots) || [0, count];
  const slots = Array.from({ length }, (_, index) => (first + index) % count);
  const labels = slots.map((slot) => String(slot + 1));
  for (const head of [...heads.filter(isWriting), ...heads.filter((each) => !isWriting(each))]) {
    const writes = isWriting(head);
    const content = map(`${writes ? "adds" : "reads"} ${head.name.split(" ")[1]}`);
    if (vectors && content) {
      // A write head that is nowhere in particular adds next to nothing, whatever its vector is.
      const reach = (step) => (writes ? Math.max(...rowOf(head, step)) : 1);
      const reached = transposed(content, (weight, step) => weight * reach(step));
      const note = writes ? "the vector that is added to memory" : "the vector that is read from memory";
      panels.push(panel(content.name, note, reached, bits(content.width), { bounded: false }));
    }
    const note = `the slot of memory where the head ${writes ? "writes" : "reads"}`;
    panels.push(panel(head.name, note, rowsOf(transposed(head), slots), labels));
  }
  panels.push(...controlPanels(trace, heads));
  const [sizes, kept] = [map("slot sizes"), map("memory")];
  const free = { bounded: false };
  if (sizes) {
    const note = "how full each slot is (root mean square)";
    panels.push(panel("memory over time", note, rowsOf(transposed(sizes), slots), labels, free));
  }
  const memory = kept && panel("memory", "at the end: a row for each slot", rowsOf(kept, slots), labels, free);
  return { panels, memory, wrong };
}

/** The instructions of the heads in each step: whether they look by content or keep their place, and how they move. */
function controlPanels(trace, heads) {
  const instructions = [
    ["gate", "gates", "strong: looks by content; faint: moves on"],
    ["shift", "shifts", "orange: one slot on; purple: one back"],
  ];
  return instructions.flatMap(([control, name, note]) => {
    const rows = heads.map((head) => trace.values(`${head.name} ${control}`));
    if (rows.some((row) => !row?.length)) return [];
    const [height, width] = [rows.length, rows[0].length];
    const weights = Float32Array.from(rows.flat());
    const labels = heads.map((head) => (isWriting(head) ? "W" : "R") + head.name.split(" ")[1]);
    return [{ name, note, weights, height, width, labels, bounded: true, signed: control === "shift" }];
  });
}

function transposed({ weights, height, width }, change = (weight) => weight) {
  const turned = new Float32Array(height * width);
  for (let step = 0; step < height; step++) {
    for (let index = 0; index < width; index++)
      turned[index * height + step] = change(weights[step * width + index], step);
  }
  return { weights: turned, height: width, width: height };
}

function rowsOf(table, rows) {
  const { width } = table;
  const weights = new Float32Array(rows.length * width);
  rows.forEach((row, index) => weights.set(rowOf(table, row), index * width));
  return { weights, height: rows.length, width };
}

const LEFT = 34;
/** The height of a title; with its note on a line of its own, where there is no room beside the name. */
const [TITLE, TWO_LINES] = [20, 34];
const GAP = 8;
const BESIDE = 40;
const NOTE_SIZE = 11;

/** `tape` has panels and memory, as `tapePanels` gives them. Rows are the steps. */
class TapePicture extends Picture {
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
    return svg("g", all.map((placed) => this.#panel(placed)), this.#steps());
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
      [...(panel.wrong ?? [])].map((index) => this.#cross(index, panel, cell, left, top)),
    ];
  }

  #labels(panel, cell, left, top) {
    const every = Math.max(1, Math.ceil(14 / cell.height));
    const style = { anchor: "right", size: 9, fill: this.theme.quiet };
    return panel.labels.map((label, row) =>
      row % every ? null : text(left - 5, top + (row + 0.5) * cell.height, label, style),
    );
  }

  #cross(index, panel, cell, left, top) {
    const [x, y] = [left + (index % panel.width) * cell.width, top + Math.floor(index / panel.width) * cell.height];
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
