// <attention-view>: one trace in several elements, a tab for each. `elements="matrix lines heads"` says which.

import { tabs } from "./controls.js";
import { fill } from "./dom.js";
import { TraceElement } from "./element.js";

/** Options that an element shares with the others. */
const SHARED = ["map", "layer", "head", "name", "scale", "palette", "words", "hideSpecial"];

export class AttentionView extends TraceElement {
  #chosen = null;
  #made = new Map();
  #options = {};

  forget() {
    this.#made.clear();
  }

  /** The element that is shown. */
  get shown() {
    return this.#made.get(this.#chosen);
  }

  /** The names of the elements that can show this trace. */
  #names() {
    const asked = (this.getAttribute("elements") ?? "matrix").split(/\s+/).filter(Boolean);
    return asked.filter((name) => customElements.get(`attention-${name}`)?.suits(this.trace));
  }

  refresh() {
    if (!this.isConnected) return;
    this.themeChanged();
    if (this.showsError() || !this.trace) return;
    const names = this.#names();
    const nothing = `There is nothing to draw: this trace of kind ${this.trace.kind} has no weights.`;
    if (!names.length) return void this.showsError(nothing);
    if (!names.includes(this.#chosen))
      this.#chosen = names.includes(this.getAttribute("shown")) ? this.getAttribute("shown") : names[0];
    if (names.length === 1) return void fill(this.frame, this.#element(this.#chosen));
    const list = names.map((name) => [name, customElements.get(`attention-${name}`).label, () => this.#element(name)]);
    fill(this.frame, tabs(list, this.#chosen, (name) => this.#choose(name)));
  }

  #choose(name) {
    this.#chosen = name;
    this.#element(name).options = this.#options;
    this.dispatchEvent(new CustomEvent("attention-tab", { bubbles: true, composed: true, detail: name }));
  }

  #element(name) {
    if (!this.#made.has(name)) {
      const element = document.createElement(`attention-${name}`);
      const options = this.getAttribute("options");
      if (options) element.options = JSON.parse(options);
      element.options = this.#options;
      if (this.hasAttribute("theme")) element.setAttribute("theme", this.getAttribute("theme"));
      element.addEventListener("attention-options", (event) => this.#share(event.detail));
      element.addEventListener(
        "attention-position",
        (event) => event.detail && this.#share(element.optionsOf?.(event.detail) ?? {}),
      );
      element.trace = this.trace;
      this.#made.set(name, element);
    }
    return this.#made.get(name);
  }

  /** What is selected in one element is selected in the others too. */
  #share(options) {
    for (const name of SHARED) if (name in options) this.#options[name] = options[name];
  }

  /** Only the frame has colours of its own; the elements inside see the theme change too. */
  themeChanged() {
    this.frame.className = `around ${this.theme.name}`;
  }
}
