// <attention-lines>: any map of a trace as lines between its inputs and outputs.

import { mapChoices, tableOptions } from "./controls.js";
import { lineLegend, LinesPicture } from "./lines_drawing.js";
import { SelectionElement } from "./matrix.js";

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
