// The SVG that shows a picture. Of a tall picture, only what is visible, and some more, is in the document.

import { fill, html, svg } from "./dom.js";
import { FONT } from "./text.js";

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
    const sizer = html("div", { className: "sizer" }, this.#root);
    sizer.style.height = `${picture.height}px`;
    sizer.style.minWidth = `${picture.width}px`;
    box.append(sizer);
    if (tall) box.addEventListener("scroll", () => requestAnimationFrame(() => this.#place()), { passive: true });
    this.#place();
  }

  /** Mark a place, or nothing. */
  mark(place) {
    fill(this.#marks, place ? this.#picture.mark(place) : null);
  }

  /** The place under the pointer. */
  at(event) {
    const bounds = this.#box.getBoundingClientRect();
    const [left, top] = [bounds.left + this.#box.clientLeft, bounds.top + this.#box.clientTop];
    return this.#picture.at(event.clientX - left + this.#box.scrollLeft, event.clientY - top + this.#box.scrollTop);
  }

  /** Scroll until a place is visible. */
  reveal(place) {
    const target = this.#picture.box(place);
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

  #place() {
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
