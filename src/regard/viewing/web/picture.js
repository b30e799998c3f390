// What is drawn of a trace. Elements choose a picture, show it on a sheet, and ask it what is where.

export class Picture {
  /** The size in pixels. */
  width = 0;
  height = 0;
  /** How many rows and columns the keys step through; without columns, all arrow keys step through the rows. */
  rows = 0;
  columns = 0;
  /** Whether columns, or words in a line, run from right to left. */
  reversed = false;

  /** The drawing between two heights as an SVG node; more than that may be drawn. */
  draw(_top, _bottom) {
    throw new Error(`${this.constructor.name} needs draw.`);
  }

  /** What marks a place, drawn above the drawing, or null. */
  mark(_place) {
    return null;
  }

  /** The place at a point of the picture, {row, column}, or null. */
  at(_x, _y) {
    return null;
  }

  /** Where a place is: {x, y, width, height}. */
  box(_place) {
    return { x: 0, y: 0, width: 0, height: 0 };
  }

  /** The place that a step of the keys leads to, where a step in one direction changes the other too. */
  settled(place, _before) {
    return place;
  }
}
