// Hide a part of the image and caption it again: what changes in the words and in their probability.

import { fill, html } from "/web/dom.js";
import { ask, button, section, turns } from "/pages/parts.js";
import { bar, scrollTable } from "/pages/pictures.js";
import { boxEditor } from "/pages/pictures_box.js";

const EDGES = ["left", "top", "right", "bottom"];

/** The part of the page: {node, reset, run}. */
export function hiding(page) {
  const turn = turns(page.context.signal);
  const editorBox = html("div");
  const result = html("div", { className: "result" });
  let editor = null;
  const rounded = (box) => EDGES.map((edge) => Math.round(1000 * box[edge]) / 1000);
  const onBox = (box) => {
    page.set({ box: box ? rounded(box) : [] });
    run();
  };
  const clear = button("Show everything again", () => {
    editor.set(null);
    onBox(null);
  });
  const run = async () => {
    const { box } = page.state;
    clear.disabled = box.length !== 4;
    if (box.length !== 4) return void fill(result, hint());
    const context = { models: page.context.models, signal: turn() };
    const answer = await ask(result, context, "/v1/caption/hide", { ...page.body, boxes: [box] }, run);
    if (answer) fill(result, outcome(answer, page));
  };
  const reset = () => {
    turn();
    const { box } = page.state;
    const given = box.length === 4 ? Object.fromEntries(EDGES.map((edge, place) => [edge, box[place]])) : null;
    editor = boxEditor(page.image.uri, given, onBox);
    clear.disabled = !given;
    fill(editorBox, editor.node);
    fill(result, hint());
  };
  const node = section(
    "Hide a part and caption again",
    html("div", { className: "beside" }, html("div", {}, editorBox, html("div", { className: "row" }, clear)), result),
  );
  return { node, reset, run };
}

function hint() {
  return html(
    "p",
    { className: "quiet" },
    "Drag a box over something in the image. The box is filled with the image's mean colour and the caption is " +
      "written again. With the keyboard: arrow keys place the box, Shift and arrow keys resize it, Enter captions.",
  );
}

function outcome({ before, after, words, edits, change }, page) {
  const marks = { same: "span", removed: "del", added: "ins" };
  const same = edits.every(({ kind }) => kind === "same");
  const text = edits.flatMap(({ kind, words: part }) => [html(marks[kind], {}, part.join(" ")), " "]);
  return [
    html("p", { className: "edits" }, text),
    before.text === after.text ? null : html("p", {}, "Now: ", html("q", {}, after.text)),
    html(
      "p",
      {},
      same ? "The caption stays the same. " : "Struck out: gone. Underlined: new. ",
      "With the part hidden, the log-probability of the first caption changes by ",
      html("data", { value: String(change), className: "number change" }, signed(change)),
      ".",
    ),
    wordTable(words),
    html(
      "details",
      {},
      html("summary", {}, "Where the words look now"),
      page.shown(after, ""),
    ),
  ];
}

function wordTable(words) {
  const rows = words.map(({ word, before, after }) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, word),
      [before, after].map((each) => html("td", {}, bar(Math.exp(each), each, Math.exp(each).toFixed(2)))),
      html("td", {}, html("data", { value: String(after - before) }, signed(after - before))),
    ),
  );
  const heads = ["word", "whole image", "part hidden", "change of log p"];
  const caption = "Probability of each word of the first caption";
  return scrollTable("Probability of each word", heads, rows, { caption });
}

function signed(number) {
  if (Math.abs(number) < 0.005) return "0.00";
  return `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(2)}`;
}
