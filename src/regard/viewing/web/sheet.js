// What is drawn of a trace, stepping through it with the keys, and the SVG that shows it: of a tall picture, only what
// is visible, and some more, is in the document.

import { THEMES } from "./colours.js";
import { fill, FONT, html, svg } from "./dom.js";

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

  /** What marks a position, drawn above the drawing, or null. */
  mark(_position) {
    return null;
  }

  /** The position at a point of the picture, {row, column}, or null. */
  at(_x, _y) {
    return null;
  }

  /** Where a position is: {x, y, width, height}. */
  box(_position) {
    return { x: 0, y: 0, width: 0, height: 0 };
  }

  /** The position that a step of the keys leads to, where a step in one direction changes the other too. */
  settled(position, _before) {
    return position;
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
 * The position to which a key leads from the current one, null to let go of it (Escape), or undefined for other keys.
 * `extent` has `rows` and `columns`; without columns, all arrows step through the rows. `reversed` columns run from
 * right to left. Positions are {row, column}; column is null for a whole row.
 */
export function stepped(key, position, { rows, columns = 0, reversed = false }) {
  if (key === "Escape") return null;
  if (!rows) return undefined;
  if (key === "Home") return { row: 0, column: position?.column ?? null };
  if (key === "End") return { row: rows - 1, column: position?.column ?? null };
  if (!(key in STEPS)) return undefined;
  if (!position) return { row: 0, column: null };
  const [down, across] = STEPS[key];
  const along = reversed ? -across : across;
  if (!columns) return { row: within(position.row + down + along, rows), column: null };
  const column = along
    ? position.column === null
      ? along > 0
        ? 0
        : columns - 1
      : within(position.column + along, columns)
    : position.column;
  return { row: within(position.row + down, rows), column };
}

function within(position, count) {
  return Math.max(0, Math.min(count - 1, position));
}

/** Pictures higher than this scroll. */
const MAX_HEIGHT = 2400;
const AHEAD = 800;

export function svgRoot(width, height, ...children) {
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT }, ...children);
}

/** A picture on a sheet inside a box that scrolls. */
export class Sheet {
  #picture;
  #box;
  #root;
  #drawing = svg("g");
  #marks = svg("g");
  #top = -1;

  constructor(picture, box) {
    this.#picture = picture;
    this.#box = box;
    const tall = picture.height > MAX_HEIGHT;
    this.height = tall ? MAX_HEIGHT : picture.height;
    box.classList.toggle("tall", tall);
    this.#root = svgRoot(picture.width, this.height, this.#drawing, this.#marks);
    // The label of the box, its status line and the table say what is drawn.
    this.#root.setAttribute("aria-hidden", "true");
    const sizer = html("div.sizer", this.#root);
    sizer.style.height = `${picture.height}px`;
    sizer.style.minWidth = `${picture.width}px`;
    box.append(sizer);
    if (tall) box.addEventListener("scroll", () => requestAnimationFrame(() => this.#arrange()), { passive: true });
    this.#arrange();
  }

  /** Mark a position, or nothing. */
  mark(position) {
    fill(this.#marks, position ? this.#picture.mark(position) : null);
  }

  /** The position under the pointer. */
  at(event) {
    const bounds = this.#box.getBoundingClientRect();
    const [left, top] = [bounds.left + this.#box.clientLeft, bounds.top + this.#box.clientTop];
    return this.#picture.at(event.clientX - left + this.#box.scrollLeft, event.clientY - top + this.#box.scrollTop);
  }

  /** Scroll until a position is visible. */
  reveal(position) {
    const target = this.#picture.box(position);
    const margin = 24;
    const box = this.#box;
    if (target.y < box.scrollTop + margin) box.scrollTop = target.y - margin;
    else if (target.y + target.height > box.scrollTop + box.clientHeight - margin) {
      box.scrollTop = target.y + target.height - box.clientHeight + margin;
    }
    if (target.x < box.scrollLeft + margin) box.scrollLeft = target.x - margin;
    else if (target.x + target.width > box.scrollLeft + box.clientWidth - margin) {
      box.scrollLeft = target.x + target.width - box.clientWidth + margin;
    }
  }

  #arrange() {
    const last = this.#picture.height - this.height;
    const top = Math.max(0, Math.min(this.#box.scrollTop - AHEAD, last));
    const drawn = this.#top >= 0 && Math.abs(top - this.#top) < AHEAD / 2;
    if (drawn && top !== 0 && top !== last) return;
    if (top === this.#top) return;
    this.#top = top;
    this.#root.style.top = `${top}px`;
    this.#root.setAttribute("viewBox", `0 ${top} ${this.#picture.width} ${this.height}`);
    fill(this.#drawing, this.#picture.draw(top, top + this.height));
  }
}

const variables = (theme) =>
  Object.entries(theme)
    .filter(([name]) => name !== "name")
    .map(([name, value]) => `--${name}: ${value};`)
    .join(" ");

const SHEET = `
:host { display: block; max-width: 100%; }
:host([hidden]) { display: none; }
.frame, .around { ${variables(THEMES.light)} color-scheme: light; }
.frame.dark, .around.dark { ${variables(THEMES.dark)} color-scheme: dark; }
.around { font: 14px/1.45 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; color: var(--ink); }
.frame {
  box-sizing: border-box; font: 14px/1.45 system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; text-align: start;
  color: var(--ink); background: var(--paper); border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px;
}
.frame * { box-sizing: border-box; }
.bar { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: center; margin-bottom: 8px; }
.bar .end { margin-inline-start: auto; display: flex; gap: 6px; }
label { display: inline-flex; gap: 6px; align-items: center; color: var(--ink); }
label > span { color: var(--quiet); }
select, button, summary {
  font: inherit; color: var(--ink); background: var(--paper); border: 1px solid var(--line); border-radius: 6px;
  padding: 3px 9px; min-height: 30px; max-width: 100%;
}
button, summary { cursor: pointer; }
button:hover, summary:hover, select:hover { border-color: var(--accent); }
button[aria-pressed="true"], button[aria-selected="true"] {
  background: var(--accent); color: var(--paper); border-color: var(--accent);
}
input[type="checkbox"] { width: 16px; height: 16px; margin: 0; accent-color: var(--accent); }
input[type="range"] { width: 120px; accent-color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
details { position: relative; }
summary { list-style: none; display: inline-block; }
summary::-webkit-details-marker { display: none; }
summary::after { content: " ▾"; color: var(--quiet); }
.menu {
  position: absolute; z-index: 5; inset-inline-end: 0; top: calc(100% + 4px); display: grid; gap: 8px; padding: 12px;
  width: max-content; max-width: min(330px, 82vw); background: var(--paper); border: 1px solid var(--line);
  border-radius: 8px; box-shadow: 0 6px 24px rgb(0 0 0 / 0.22);
}
.menu label { justify-content: space-between; flex-wrap: wrap; }
.menu label.flag { justify-content: flex-start; flex-wrap: nowrap; }
.menu label.flag > span { color: var(--ink); }
.menu .note { margin: 0; color: var(--quiet); font-size: 12px; }
.menu .save { display: grid; grid-template-columns: 1fr 1fr; gap: 6px; }
.picture { overflow: auto; max-width: 100%; border-radius: 4px; position: relative; }
.picture.tall { max-height: min(70vh, 640px); }
.picture svg { display: block; user-select: none; -webkit-user-select: none; }
.sizer { position: relative; }
.tall .sizer svg { position: absolute; left: 0; }
.legend { margin-top: 6px; max-width: 100%; overflow: hidden; }
.legend svg { display: block; }
.detail { margin-top: 8px; min-height: 46px; color: var(--ink); overflow-wrap: anywhere; }
.detail p { margin: 0; }
.detail .quiet, .quiet { color: var(--quiet); }
.detail b { font-weight: 600; }
.chips { display: flex; flex-wrap: wrap; gap: 2px 12px; margin: 2px 0 0; padding: 0; list-style: none; }
.chips data { font-variant-numeric: tabular-nums; color: var(--quiet); margin-inline-start: 5px; }
.chips .chosen, .chips .chosen data { color: var(--current); font-weight: 600; }
.tablebox { overflow: auto; max-height: 420px; margin-top: 8px; border: 1px solid var(--line); border-radius: 4px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
caption { text-align: start; padding: 6px 8px; color: var(--quiet); }
th, td { padding: 3px 8px; border-bottom: 1px solid var(--line); text-align: end; white-space: nowrap; }
thead th { position: sticky; top: 0; background: var(--paper); }
tbody th { text-align: start; font-weight: 600; position: sticky; inset-inline-start: 0; background: var(--paper); }
.measured, .more { margin: 4px 0 0; color: var(--quiet); font-size: 12px; }
.picture.tall { border-bottom: 2px dashed var(--line); }
.error { margin: 0; color: var(--current); }
.tabs { display: flex; flex-wrap: wrap; gap: 6px; margin-bottom: 6px; }
.large { display: flex; flex-wrap: wrap; gap: 10px; align-items: flex-start; }
.scroller {
  position: relative; overflow: auto; flex: 1 1 340px; height: min(70vh, 620px); border: 1px solid var(--line);
}
.scroller canvas { position: sticky; left: 0; top: 0; display: block; }
.aside { flex: 0 0 auto; display: grid; gap: 6px; font-size: 12px; color: var(--quiet); max-width: 170px; }
.aside label { flex-direction: column; align-items: flex-start; gap: 0; }
.minimap { display: block; border: 1px solid var(--line); cursor: crosshair; touch-action: none; }
@media (max-width: 480px) {
  .frame { padding: 8px; }
  .bar .end { margin-inline-start: 0; }
  .menu { inset-inline: 0 auto; }
}
`;

let sheet = null;

/** The one constructed style sheet. */
export function styleSheet() {
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(SHEET);
  }
  return sheet;
}
