// <attention-matrix>: any map of a trace as a heat map.

import { colourTable, Scale } from "./colours.js";
import { mapChoices, tableOptions } from "./controls.js";
import { AttentionElement } from "./element.js";
import { LargeMatrix } from "./large_matrix.js";
import { MatrixPicture } from "./matrix_drawing.js";
import { legendBar, positionNumbers, selectionTable } from "./numbers.js";
import { select, selectionTrace } from "./trace.js";

/** Positions of an axis up to which every cell is drawn as SVG; more are drawn on a canvas that scrolls. */
const MAX_POSITIONS = 100;

/** What the elements that show one selected map share. */
export class SelectionElement extends AttentionElement {
  #cached = null;

  static accepts(map) {
    return map.height > 0 && map.width > 0;
  }

  static suits(trace) {
    return trace.maps.some((map) => this.accepts(map, trace));
  }

  accepts = (map) => this.constructor.accepts(map, this.trace);

  /** The selected weights with their scale and colours, computed once for each change. */
  get selected() {
    const key = JSON.stringify([this.options, this.theme.name]);
    if (this.#cached?.key !== key || this.#cached.trace !== this.trace) {
      const { options, trace, theme } = this;
      const selection = select(trace, options, this.accepts);
      const scale = new Scale(selection.weights, selection.width, options.scale === "row");
      const table = colourTable(scale.signed ? "signed" : options.palette, theme.name);
      this.#cached = { key, trace, selection, scale, table };
    }
    return this.#cached;
  }

  controls() {
    return { main: mapChoices(this, this.accepts), more: tableOptions(this) };
  }

  detail(position) {
    return positionNumbers(this.trace, this.selected.selection, position);
  }

  table() {
    return selectionTable(this.trace, this.selected.selection);
  }

  legend(width) {
    const { scale, table } = this.selected;
    return legendBar({ scale, table, theme: this.theme, width });
  }

  exported() {
    return selectionTrace(this.trace, this.selected.selection);
  }
}

export class AttentionMatrix extends SelectionElement {
  static label = "Matrix";
  static defaults = { ...AttentionElement.defaults, cell: 16 };
  #large = null;

  get hint() {
    const { rows, columns } = this.selected.selection;
    return (
      `Each row is one of ${counted(rows)}; its cells show how much it attends to each of ${counted(columns)}. ` +
      super.hint
    );
  }

  get isLarge() {
    const { height, width } = this.selected.selection;
    return Math.max(height, width) > MAX_POSITIONS;
  }

  picture(width) {
    const { selection, scale, table } = this.selected;
    return new MatrixPicture(selection, { width, theme: this.theme, scale, table, links: this.#links(selection) });
  }

  /** The right links that a trace has in its extras, {sure, possible} as [column, row], between what is shown. */
  #links({ rows, columns }) {
    const { links } = this.trace.extras;
    if (!links || rows.axis.name !== "target" || columns.axis.name !== "source") return [];
    const indexIn = (side, position) => side.members.findIndex((each) => each.includes(position));
    const isSure = new Set((links.sure ?? []).map(String));
    const found = [...(links.possible ?? []).filter((link) => !isSure.has(String(link))), ...(links.sure ?? [])];
    return found
      .map((link) => [indexIn(rows, link[1]), indexIn(columns, link[0]), isSure.has(String(link))])
      .map(([row, column, sure]) => ({ row, column, sure }))
      .filter(({ row, column }) => row >= 0 && column >= 0);
  }

  customPicture() {
    this.#large = this.isLarge ? new LargeMatrix(this, this.#large) : null;
    return this.#large;
  }

  toSvg() {
    return this.isLarge ? this.composedSvg(this.#large.visiblePart()) : super.toSvg();
  }
}

/** A side in words: "18 target tokens", "12 words". */
function counted({ axis, labels, members }) {
  const kind = members.some((each) => each.length > 1) ? "words" : axis.kind;
  return `${labels.length} ${axis.name === kind ? "" : `${axis.name} `}${kind}`;
}
