// What pages are built from: sections, fields, examples, a choice of models, progress and errors.

import { html } from "/web/dom.js";
import { ApiError, isAborted, post } from "/pages/api.js";

let identifiers = 0;

/** A part of a page under a heading; without a title, only a frame. */
export function section(title, ...children) {
  const heading = title ? html("h2", {}, title) : null;
  return html("section", { className: "section" }, heading, children);
}

/** A control under its label, with a line of help. */
export function field(label, control, help = "") {
  control.id ||= `field-${++identifiers}`;
  const note = help ? html("small", { id: `${control.id}-help` }, help) : null;
  if (note) control.setAttribute("aria-describedby", note.id);
  return html("div", { className: "field" }, html("label", { htmlFor: control.id }, label), control, note);
}

/** A button; `primary` for what a page is there for. */
export function button(label, onclick, { primary = false, ...properties } = {}) {
  return html("button", { type: "button", className: primary ? "primary" : "", onclick, ...properties }, label);
}

/** A choice of values: `choices` are values, or pairs of a value and its label. */
export function select(choices, current, onChange) {
  const options = choices.map((choice) => {
    const [value, label] = Array.isArray(choice) ? choice : [choice, choice];
    return html("option", { value, selected: value === current }, label);
  });
  return html("select", { onchange: (event) => onChange(event.target.value) }, options);
}

/** The name of a model of a page: the one that the address gives, or the first where this server does not have it. */
export function servedName(models, name) {
  return models.some((each) => each.name === name) ? name : (models[0]?.name ?? "");
}

/** A choice of the models of a page, with what the chosen one is and how good. */
export function modelPicker(models, current, onChange) {
  const about = html("small", { className: "about" });
  const describe = (name) => {
    const model = models.find((each) => each.name === name);
    if (!model) return;
    const { summary, headline, tested, scale } = model;
    const score = headline && `On ${tested || "its test"}: ${headline}. ${scale}`;
    about.textContent = [summary, score].filter(Boolean).join(" ");
  };
  const chosen = (name) => {
    describe(name);
    onChange(name);
  };
  const names = models.map((model) => model.name);
  const control = select(names, current, chosen);
  describe(current);
  return html("div", { className: "field models" }, field("Model", control), about);
}

/** Inputs one click away: {label, ...anything}; `onPick` gets the one that was clicked. */
export function examples(list, onPick) {
  const buttons = list.map((each) => html("button", { type: "button", dir: "auto", onclick: () => onPick(each) }, each.label));
  const group = { className: "examples", role: "group", "aria-label": "Examples" };
  return html("div", group, html("span", {}, "Try:"), buttons);
}

/** A message about something that failed, with a button that tries again where `retry` is given. */
export function errorBox(message, retry = null) {
  const again = retry && button("Try again", () => retry());
  return html("div", { className: "error", role: "alert" }, html("p", {}, message), again);
}

/** What a page shows before it has something to show. */
export function emptyBox(...children) {
  return html("div", { className: "empty" }, children);
}

/**
 * Show that something is under way at the top of `root`, which stays usable, until `promise` settles. Resolves to its
 * value; or, after a refusal of the server, to undefined, with the message in `root`. `retry` tries again.
 */
export async function busy(root, promise, message = "Working …", retry = null) {
  for (const old of root.querySelectorAll(":scope > .error, :scope > .status")) old.remove();
  const status = html("p", { className: "status", role: "status" }, html("span", { className: "spinner" }), message);
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

/**
 * Ask a model of the page, which `body.model` names, showing progress and refusals in `root`. Resolves to the answer,
 * or to undefined where there is none. The first time, the model must be loaded, which is said.
 */
export async function ask(root, { models, signal }, path, body, retry = null) {
  const model = models.find((each) => each.name === body.model);
  const message = model?.loaded === false ? `Loading ${body.model} …` : `Asking ${body.model ?? "the model"} …`;
  const answer = await busy(root, post(path, body, { signal }), message, retry);
  if (answer && model) model.loaded = true;
  return answer;
}

/** A function whose signal is aborted by its next call, and when the user leaves the page. */
export function turns(leaving) {
  let current = new AbortController();
  return () => {
    current.abort();
    current = new AbortController();
    return AbortSignal.any([leaving, current.signal]);
  };
}

/** A function that calls `work` once its own calls pause for so many milliseconds. */
export function debounced(work, milliseconds = 300) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
}
