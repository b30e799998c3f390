// What pages are built from: sections, fields, examples, tables and bars, a choice of models, progress and errors.

import { fixed } from "/web/colours.js";
import { button, html } from "/web/dom.js";
import { ApiError, isAborted } from "/pages/api.js";

export { button };

let identifiers = 0;

/** The heading of a page and what it is for. */
export function intro(title, text) {
  return html("div.intro", html("h1", title), html("p", text));
}

/** A part of a page under a heading; without a title, only a frame. */
export function section(title, ...children) {
  return html("section.section", title ? html("h2", title) : null, children);
}

/** A control under its label, with a line of help. */
export function field(label, control, help = "") {
  control.id ||= `field-${++identifiers}`;
  const note = help ? html("small", { id: `${control.id}-help` }, help) : null;
  if (note) control.setAttribute("aria-describedby", note.id);
  return html("div.field", html("label", { htmlFor: control.id }, label), control, note);
}

/** A choice of values: `choices` are values, or pairs of a value and its label. */
export function select(choices, current, onChange) {
  const options = choices.map((choice) => {
    const [value, label] = Array.isArray(choice) ? choice : [choice, choice];
    return html("option", { value, selected: value === current }, label);
  });
  return html("select", { onchange: (event) => onChange(event.target.value) }, options);
}

/** A whole number to type; `changed` gets it where it is from `min` to `max`, and otherwise that is said. */
export function wholeNumber({ min, max, value, ...properties }, changed) {
  const input = html("input", { type: "number", min, max, value, ...properties });
  input.addEventListener("input", () => {
    const given = Math.round(Number(input.value));
    const isAllowed = input.value !== "" && given >= min && given <= max;
    input.setCustomValidity(isAllowed ? "" : `A whole number from ${min} to ${max}.`);
    input.setAttribute("aria-invalid", String(!isAllowed));
    if (isAllowed) changed(given);
    else if (input.value !== "") input.reportValidity();
  });
  return input;
}

/** A field with its button: `submit` gets what was typed. */
export function textForm(label, input, action, submit, ...more) {
  const onsubmit = (event) => {
    event.preventDefault();
    submit(input.value.trim());
  };
  const send = html("button", { type: "submit" }, action);
  return html("form.row", { onsubmit }, html("div.grow", field(label, input)), send, more);
}

/** A choice of the models of a page, with what the chosen one is and how good. */
export function modelPicker(models, current, onChange) {
  const about = html("small.about");
  const describe = (name) => {
    const { summary, headline, measured_on: measured, scale } = models.find((each) => each.name === name) ?? {};
    const score = headline && `On ${measured || "its test"}: ${headline}. ${scale}`;
    about.textContent = [summary, score].filter(Boolean).join(" ");
  };
  const chosen = (name) => {
    describe(name);
    onChange(name);
  };
  describe(current);
  const names = models.map((model) => model.name);
  return html("div.field.models", field("Model", select(names, current, chosen)), about);
}

/** Inputs one click away, each under its name; `onPick` gets the one that was clicked. */
export function exampleButtons(examples, onPick) {
  if (!examples.length) return null;
  const buttons = examples.map((each) => button(each.name, () => onPick(each), { dir: "auto" }));
  return html("div.examples", { role: "group", "aria-label": "Examples" }, html("span", "Try:"), buttons);
}

/** A component such as <attention-image> with a trace; `changed` gets its options when the user changes them. */
export function view(tag, trace, options = {}, changed = null) {
  const element = html(tag, { trace, options });
  if (changed) element.addEventListener("attention-options", (event) => changed(event.detail));
  return element;
}

/** A share from 0 to 1 as a bar without a number; `mark` is another share, that is marked on it. */
export function track(share, mark = null) {
  const filled = html("i");
  filled.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
  if (mark) mark.node.style.insetInlineStart = `${100 * mark.share}%`;
  return html("span.track", filled, mark?.node);
}

/** A share from 0 to 1 as a bar, with the number that it stands for; `text` is the number as it is read. */
export function bar(share, value = null, text = "") {
  return html("span.bar", track(share), value === null ? null : number(value, text));
}

/** A number as it is read, which keeps its exact value. */
export function number(value, text, className = "") {
  return html("data", { value: String(value), className }, text);
}

/** A number with a few decimals and its sign; 0 has none. */
export function signed(value, decimals) {
  const text = fixed(Math.abs(value), decimals);
  return Number(text) === 0 ? text : `${value < 0 ? "−" : "+"}${text}`;
}

/** A share from 0 to 1 as people read it. */
export function percent(share) {
  if (share >= 0.0995) return `${(100 * share).toFixed(0)} %`;
  return share >= 0.001 ? `${(100 * share).toFixed(1)} %` : "< 0.1 %";
}

/** How models write the end of a text. */
export const END = "</s>";

/** A word as people read it: the end has a name. */
export function named(word) {
  return word === END ? "(end)" : word;
}

/** Words that stayed, went and came, as text. */
export function editedText(edits) {
  const tags = { removed: "del", added: "ins" };
  const nodes = edits.map(({ kind, words }) => html(tags[kind] ?? "span", words.map(named).join(" ")));
  return html("p.edits", { dir: "auto" }, nodes.flatMap((node) => [node, " "]));
}

/** A table that scrolls by itself where it is too wide; an empty head has no meaning for a screen reader. */
export function scrollTable(label, heads, body, { caption = "", className = "" } = {}) {
  const head = heads.map((each) => (each ? html("th", { scope: "col" }, each) : html("td")));
  const title = caption ? html("caption", caption) : null;
  const rows = body instanceof Node ? body : html("tbody", body);
  const table = html("table", title, html("thead", html("tr", head)), rows);
  return html("div", { className: `scroll ${className}`, tabIndex: 0, role: "region", "aria-label": label }, table);
}

/** A row of a table: its head, and its cells. */
export function tableRow(head, ...cells) {
  return html("tr", html("th", { scope: "row" }, head), cells.flat().map((each) => html("td", each)));
}

/** A message about something that failed, with a button that tries again where `retry` is given. */
export function errorBox(message, retry = null) {
  return html("div.error", { role: "alert" }, html("p", message), retry && button("Try again", () => retry()));
}

/** What a page shows before it has something to show. */
export function emptyBox(text) {
  return html("div.empty", html("p", text));
}

/**
 * Show that something is under way at the top of `root`, which stays usable, until `promise` settles. Resolves to its
 * value; or, after a refusal of the server, to undefined, with the message in `root`. `retry` tries again.
 */
export async function busy(root, promise, message = "Working …", retry = null) {
  for (const old of root.querySelectorAll(":scope > .error, :scope > .status")) old.remove();
  const status = html("p.status", { role: "status" }, html("span.spinner"), message);
  root.prepend(status);
  root.setAttribute("aria-busy", "true");
  try {
    return await promise;
  } catch (error) {
    if (isAborted(error)) return undefined;
    if (!(error instanceof ApiError)) throw error;
    root.prepend(errorBox(error.message, retry));
    return undefined;
  } finally {
    status.remove();
    if (!root.querySelector(":scope > .status")) root.removeAttribute("aria-busy");
  }
}

/** A function that calls `work` once its own calls pause for so many milliseconds. */
export function debounced(work, milliseconds = 300) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
}

/** The end of a text that may be long. */
export function ending(text, letters) {
  return text.length > letters ? `… ${text.slice(-letters).replace(/^\S*\s/, "")}` : text;
}
