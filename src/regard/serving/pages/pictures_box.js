// A box on an image, drawn with the pointer or with the keys.

import { html } from "/web/dom.js";

const STEP = 0.02;
const SMALLEST = 0.03;
const FIRST = { left: 0.35, top: 0.35, right: 0.65, bottom: 0.65 };
const clamp = (value, low = 0, high = 1) => Math.min(high, Math.max(low, value));

/**
 * An image on which a box can be drawn: {node, set}. `onBox` gets the box {left, top, right, bottom}, in fractions of
 * the image, or null, whenever the user has finished changing it.
 */
export function boxEditor(uri, initial, onBox) {
  let box = initial;
  let start = null;
  const frame = html("div", { className: "box" });
  const image = html("img", { src: uri, alt: "The image to hide a part of", draggable: false });
  const draw = () => {
    frame.hidden = !box;
    if (!box) return;
    const percent = (value) => `${100 * value}%`;
    Object.assign(frame.style, {
      left: percent(box.left),
      top: percent(box.top),
      width: percent(box.right - box.left),
      height: percent(box.bottom - box.top),
    });
  };
  const point = (event) => {
    const { left, top, width, height } = node.getBoundingClientRect();
    return { x: clamp((event.clientX - left) / width), y: clamp((event.clientY - top) / height) };
  };
  const node = html(
    "div",
    {
      className: "boxer",
      tabIndex: 0,
      role: "application",
      "aria-label":
        "Draw a box on the image. Arrow keys move it, with Shift they change its size, Enter captions again, " +
        "Delete removes it.",
      onpointerdown: (event) => {
        start = point(event);
        node.setPointerCapture(event.pointerId);
        event.preventDefault();
        node.focus({ preventScroll: true });
      },
      onpointermove: (event) => {
        if (!start) return;
        const { x, y } = point(event);
        box = {
          left: Math.min(start.x, x),
          top: Math.min(start.y, y),
          right: Math.max(start.x, x),
          bottom: Math.max(start.y, y),
        };
        draw();
      },
      onpointerup: () => {
        if (!start) return;
        start = null;
        if (box && (box.right - box.left < SMALLEST || box.bottom - box.top < SMALLEST)) box = null;
        draw();
        onBox(box);
      },
      onpointercancel: () => (start = null),
      onkeydown: (event) => {
        const changed = keyed(event, box);
        if (changed === undefined) return;
        event.preventDefault();
        box = changed;
        draw();
        if (event.key === "Enter" || !box) onBox(box);
      },
    },
    image,
    frame,
  );
  draw();
  const set = (value) => {
    box = value;
    draw();
  };
  return { node, set };
}

/** The box after a key, or undefined where the key means nothing here. */
function keyed({ key, shiftKey }, box) {
  if (key === "Delete" || key === "Backspace" || key === "Escape") return box ? null : undefined;
  if (key === "Enter") return box ?? { ...FIRST };
  const move = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[key];
  if (!move) return undefined;
  if (!box) return { ...FIRST };
  const [across, down] = move;
  if (shiftKey) {
    const right = clamp(box.right + across, box.left + SMALLEST);
    return { ...box, right, bottom: clamp(box.bottom + down, box.top + SMALLEST) };
  }
  const [width, height] = [box.right - box.left, box.bottom - box.top];
  const [left, top] = [clamp(box.left + across, 0, 1 - width), clamp(box.top + down, 0, 1 - height)];
  return { left, top, right: left + width, bottom: top + height };
}
