// <attention-reading>: a sentence word by word, with what each word attends to among the others.

import { choice, mapChoices, tableOptions } from "./controls.js";
import { SelectionElement } from "./matrix.js";
import { AttentionElement } from "./element.js";
import { legendBar } from "./numbers.js";
import { ReadingLinesPicture, ScrubPicture } from "./reading_drawing.js";
import { seriesOf } from "./selection.js";

export class AttentionReading extends SelectionElement {
  static label = "Reading";
  static defaults = { ...AttentionElement.defaults, layout: "word" };
  get hint() {
    return (
      "Point at a word, or step with the arrow keys: words that it attends to are shaded. " +
      "Bars show how surprising each word was."
    );
  }

  static suits(trace) {
    return super.suits(trace) || Boolean(trace.values("surprisal"));
  }

  /** A reader without attention has a trace without maps: its words are shown with their surprisal alone. */
  get trace() {
    return super.trace;
  }

  set trace(value) {
    super.trace = value;
    const { trace } = this;
    const axis = trace?.series.find((each) => each.name === "surprisal")?.axis;
    if (!trace || trace.maps.some((map) => map.rows === map.columns) || !axis) return;
    const count = trace.axis(axis).labels.length;
    const weights = Array.from({ length: count }, () => new Array(count).fill(0));
    super.trace = {
      ...trace.json,
      maps: [...(trace.json.maps ?? []), { name: "no attention", rows: axis, columns: axis, weights }],
    };
  }

  static accepts(map) {
    return map.height > 0 && map.rows === map.columns;
  }

  /** The word with the sharpest attention, not counting rows that have little choice. */
  initialPlace() {
    const { selection } = this.selected;
    let best = { row: selection.height - 1, weight: 0 };
    for (let row = 3; row < selection.height; row++) {
      for (let column = 0; column < selection.width; column++) {
        const weight = selection.weights[row * selection.width + column];
        if (column !== row && weight > best.weight) best = { row, weight };
      }
    }
    return { row: best.row, column: null };
  }

  picture(width) {
    const { selection, scale, table } = this.selected;
    const surprisal = seriesOf(this.trace, "surprisal", selection.rows);
    const drawing = { width, theme: this.theme, scale, table, surprisal };
    if (this.options.layout === "word") return new ScrubPicture(selection, drawing);
    return new ReadingLinesPicture(selection, { ...drawing, seesAll: seesAll(selection) });
  }

  legend(width) {
    const { scale, table } = this.selected;
    const bars = this.options.layout === "word" && this.trace.values("surprisal");
    const name = bars ? "weight; bar below a word: how surprising it was" : "weight";
    return legendBar({ scale, table, theme: this.theme, width, name });
  }

  controls() {
    const layouts = [
      ["word", "word by word"],
      ["lines", "a line for each word"],
    ];
    const layout = choice("Layout", layouts, this.options.layout, (value) => this.setOptions({ layout: value }));
    return { main: [...mapChoices(this, this.accepts), layout], more: tableOptions(this) };
  }
}

function seesAll({ weights, height, width }) {
  for (let row = 0; row < height; row++)
    for (let column = row + 1; column < width; column++) if (weights[row * width + column]) return true;
  return false;
}
