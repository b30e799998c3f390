// What is drawn of a trace, and stepping through it with the keys.

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

const STEPS = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-10, 0],
  PageDown: [10, 0],
};

/**
 * The place to which a key leads from the current one, null to let go of it (Escape), or undefined for other keys.
 * `extent` has `rows` and `columns`; without columns, all arrows step through the rows. `reversed` columns run from
 * right to left. Places are {row, column}; column is null for a whole row.
 */
export function stepped(key, place, { rows, columns = 0, reversed = false }) {
  if (key === "Escape") return null;
  if (!rows) return undefined;
  if (key === "Home") return { row: 0, column: place?.column ?? null };
  if (key === "End") return { row: rows - 1, column: place?.column ?? null };
  if (!(key in STEPS)) return undefined;
  if (!place) return { row: 0, column: null };
  const [down, across] = STEPS[key];
  const along = reversed ? -across : across;
  if (!columns) return { row: within(place.row + down + along, rows), column: null };
  const column = along
    ? place.column === null
      ? along > 0
        ? 0
        : columns - 1
      : within(place.column + along, columns)
    : place.column;
  return { row: within(place.row + down, rows), column };
}

function within(place, count) {
  return Math.max(0, Math.min(count - 1, place));
}
