// Hide a part of the image and caption it again: what changes in the words and in their probability.

import { fill, html } from "/web/dom.js";
import { bar, button, editedText, number, scrollTable, section, signed, tableRow } from "/pages/parts.js";

const EDGES = ["left", "top", "right", "bottom"];
const HINT =
  "Drag a box over something in the image. The box is filled with the image's mean colour and the caption is written " +
  "again. With the keyboard: arrow keys place the box, Shift and arrow keys resize it, Enter captions.";

/** The part of the page: {node, reset, run}. */
export function hiding(page) {
  const editorBox = html("div");
  const result = html("div.result");
  let editor = null;
  /** The box of the address, or null. */
  const given = () => {
    const { box } = page.state;
    return box.length === 4 ? Object.fromEntries(EDGES.map((edge, index) => [edge, box[index]])) : null;
  };
  const onBox = (box) => {
    page.set({ box: box ? EDGES.map((edge) => Math.round(1000 * box[edge]) / 1000) : [] });
    run();
  };
  const clear = button("Show everything again", () => {
    editor.set(null);
    onBox(null);
  });
  const run = async () => {
    const box = given();
    clear.disabled = !box;
    if (!box) return void fill(result, html("p.quiet", HINT));
    const answer = await page.ask(result, "hide", { ...page.body, boxes: [page.state.box] }, { retry: run });
    if (answer) fill(result, outcome(answer, page));
  };
  const reset = () => {
    page.turn(result);
    editor = boxEditor(page.image.uri, given(), onBox);
    clear.disabled = !given();
    fill(editorBox, editor.node);
    fill(result, html("p.quiet", HINT));
  };
  const left = html("div", editorBox, html("div.row", clear));
  return { node: section("Hide a part and caption again", html("div.beside", left, result)), reset, run };
}

function outcome({ before, after, words, edits, change }, page) {
  const isSame = before.text === after.text;
  return [
    editedText(edits),
    isSame ? null : html("p", "Now: ", html("q", after.text)),
    html(
      "p",
      isSame ? "The caption stays the same. " : "Struck out: gone. Underlined: new. ",
      "With the part hidden, the log-probability of the first caption changes by ",
      number(change, signed(change, 2), "number change"),
      ".",
    ),
    wordTable(words),
    html("details", html("summary", "Where the words look now"), page.shown(after, { isOwn: true })),
  ];
}

function wordTable(words) {
  const rows = words.map(({ word, before, after }) => {
    const shares = [before, after].map((each) => bar(Math.exp(each), each, Math.exp(each).toFixed(2)));
    return tableRow(word, shares, number(after - before, signed(after - before, 2)));
  });
  const heads = ["word", "whole image", "part hidden", "change of log p"];
  const caption = "Probability of each word of the first caption";
  return scrollTable("Probability of each word", heads, rows, { caption });
}

const STEP = 0.02;
const SMALLEST = 0.03;
const FIRST = { left: 0.35, top: 0.35, right: 0.65, bottom: 0.65 };
const clamp = (value, low = 0, high = 1) => Math.min(high, Math.max(low, value));

/**
 * An image on which a box can be drawn: {node, set}. `onBox` gets the box {left, top, right, bottom}, in fractions of
 * the image, or null, whenever the user has finished changing it.
 */
function boxEditor(uri, initial, onBox) {
  let box = initial;
  let start = null;
  const frame = html("div.box");
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
    "div.boxer",
    {
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
