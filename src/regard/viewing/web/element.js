// What all elements share: a trace, options, a picture with a current position, a table, and files to save.
//
// An element extends AttentionElement and defines
//   static label, static defaults   its name for people, its options
//   static suits(trace)             whether it can show a trace
//   picture(width)                  what is drawn, a Picture
//   detail(position)                nodes with the numbers of a position
//   table()                         the numbers: {caption, columns, rows}
//   controls()                      nodes for the bar and for the menu of options: {main, more}
// and, where it needs them, legend(), exported(), initialPosition() and hint. A position is {row, column}: column is
// null for a whole row, row is -1 for a whole column.

import { themeAround, THEMES, watchTheme } from "./colours.js";
import { choice, flag, menu } from "./controls.js";
import { button, fill, html, printable, svg } from "./dom.js";
import { composed, copyText, saveAs, tabSeparated } from "./export.js";
import { dataTable } from "./numbers.js";
import { Sheet, stepped, styleSheet, svgRoot } from "./sheet.js";
import { readTrace, Trace, upgradeProperties, whenWritten } from "./trace.js";

const FOCUSABLE = "select, input, button, summary, .picture";
/** Options that change what rows and columns mean, so that a pinned position would be another one. */
const REGROUPING = ["words", "hideSpecial", "map", "layout"];
const same = (one, other) => one?.row === other?.row && one?.column === other?.column;

/** An element with a trace: assigned, or written inside it as JSON; and with the theme of the page around it. */
export class TraceElement extends HTMLElement {
  /** Properties that may be set before the element is defined. */
  static properties = ["trace"];
  #trace = null;
  #error = "";
  #stopWatching = null;

  constructor() {
    super();
    this.frame = html("div.frame");
    this.attachShadow({ mode: "open" }).append(this.frame);
    this.shadowRoot.adoptedStyleSheets = [styleSheet()];
  }

  connectedCallback() {
    upgradeProperties(this, this.constructor.properties);
    this.#stopWatching = watchTheme(() => this.themeChanged());
    if (this.#trace || this.#error) this.refresh();
    else whenWritten(this, (text) => (this.trace ??= text));
  }

  disconnectedCallback() {
    this.#stopWatching?.();
  }

  /** The trace: assign JSON text, the parsed object, a result that has a `trace`, or a Trace. */
  get trace() {
    return this.#trace;
  }

  set trace(value) {
    this.forget();
    this.#error = "";
    this.#trace = null;
    try {
      const trace = value === null || value instanceof Trace ? value : readTrace(value);
      if (trace) this.check(trace);
      this.#trace = trace;
    } catch (error) {
      this.#error = error.message;
    }
    this.refresh();
  }

  /** Throw an Error where a trace cannot be shown. */
  check(_trace) {}

  /** Forget what belongs to the trace before. */
  forget() {}

  /** The theme: as the attribute `theme` says, otherwise that of the page. */
  get theme() {
    return THEMES[this.getAttribute("theme")] ?? themeAround(this);
  }

  themeChanged() {
    this.refresh();
  }

  /** Show why there is nothing else to show; returns whether that is so. */
  showsError(message = this.#error) {
    if (message) fill(this.frame, html("p.error", { role: "alert" }, message));
    return Boolean(message);
  }
}

export class AttentionElement extends TraceElement {
  static label = "Attention";
  static properties = ["trace", "options", "pinned"];
  static defaults = { scale: "map", palette: "blue", words: false, hideSpecial: false };
  static observedAttributes = ["options", "theme"];

  static suits() {
    return true;
  }

  #options = {};
  #pinned;
  #hovered = null;
  #showsTable = false;
  #parts = null;
  #width = 0;
  #scheduled = false;
  #sizes = new ResizeObserver(() => {
    if (Math.abs(this.clientWidth - this.#width) > 1) this.refresh();
  });

  connectedCallback() {
    super.connectedCallback();
    this.#sizes.observe(this);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#sizes.disconnect();
  }

  attributeChangedCallback(name, _, value) {
    if (name === "options" && value) this.#options = { ...this.#options, ...JSON.parse(value) };
    this.refresh();
  }

  check(trace) {
    if (this.constructor.suits(trace)) return;
    throw new Error(`A trace of kind ${trace.kind} has nothing to show as <${this.localName}>.`);
  }

  forget() {
    this.#pinned = undefined;
    this.#hovered = null;
  }

  /** The options, defaults included. Assigning replaces those that are given. */
  get options() {
    return { ...this.constructor.defaults, ...this.#options };
  }

  set options(values) {
    const before = this.options;
    this.#options = { ...this.#options, ...values };
    if (REGROUPING.some((name) => name in values && values[name] !== before[name])) this.forget();
    this.refresh();
  }

  /** Change options as the user does: dispatches "attention-options". */
  setOptions(values) {
    this.options = values;
    this.#tell("attention-options", this.options);
  }

  /** A choice that sets an option; `choices` are [value, label] pairs. */
  choice(label, name, choices) {
    return choice(label, choices, this.options[name], (value) => this.setOptions({ [name]: value }));
  }

  /** A checkbox that sets an option. */
  flag(label, name) {
    return flag(label, this.options[name], (value) => this.setOptions({ [name]: value }));
  }

  /** The pinned position, or null. */
  get pinned() {
    if (this.#pinned === undefined && this.trace) this.#pinned = this.initialPosition();
    return this.#pinned ?? null;
  }

  set pinned(position) {
    this.#pinned = position && { row: position.row, column: position.column ?? null };
    this.#showPosition();
  }

  /** The position that is shown: pointed at, or pinned. */
  get current() {
    return this.#hovered ?? this.pinned;
  }

  /** Draw again, soon. */
  refresh() {
    if (this.#scheduled || !this.isConnected) return;
    this.#scheduled = true;
    requestAnimationFrame(() => {
      this.#scheduled = false;
      if (this.isConnected) this.#render();
    });
  }

  /** How to use the picture, shown where no position is current. */
  get hint() {
    return "Point at a row for its numbers, click to keep it, step with the arrow keys.";
  }

  controls() {
    return { main: [], more: [] };
  }

  /** What stands below the picture, {width, height, node}, or null. */
  legend() {
    return null;
  }

  /** What is pinned before anything is clicked. */
  initialPosition() {
    return null;
  }

  /** The JSON of what is selected. */
  exported() {
    return this.trace.json;
  }

  /** A picture with a `node` of its own, which finds positions from events and marks them itself; null to draw SVG. */
  customPicture() {
    return null;
  }

  /** The picture as a complete SVG element: what is selected, with the current position marked, and the legend. */
  toSvg() {
    const { picture } = this.#parts;
    const node = svg("g", picture.draw(0, picture.height), this.current && picture.mark(this.current));
    return this.composedSvg({ width: picture.width, height: picture.height, node });
  }

  composedSvg(part) {
    const texts = this.trace.axes.map((axis) => axis.text).filter(Boolean);
    const title = printable(texts.join(" → ")).slice(0, 160);
    return composed([part, this.legend(part.width)].filter(Boolean), this.theme, title);
  }

  #render() {
    this.frame.classList.toggle("dark", this.theme.name === "dark");
    this.#width = this.clientWidth;
    if (this.showsError() || !this.trace || !this.#width) return;
    const open = [...this.frame.querySelectorAll("details")].findIndex((each) => each.open);
    const focused = [...this.frame.querySelectorAll(FOCUSABLE)].indexOf(this.shadowRoot.activeElement);
    const scrolled = this.#parts && [this.#parts.box.scrollLeft, this.#parts.box.scrollTop];
    this.#build(Math.max(200, this.#width - 26));
    if (open >= 0) this.frame.querySelectorAll("details")[open].open = true;
    this.frame.querySelectorAll(FOCUSABLE)[focused]?.focus({ preventScroll: true });
    if (scrolled) this.#parts.box.scrollTo(...scrolled);
    this.#showPosition();
  }

  #build(width) {
    const custom = this.customPicture(width);
    const picture = custom ?? this.picture(width);
    const detail = html("div.detail", { role: "status" });
    const box = html("div.picture", {
      tabIndex: 0,
      role: "application",
      "aria-label": `${this.constructor.label}. ${this.hint}`,
      onkeydown: (event) => this.#onKey(event),
      onpointermove: (event) => event.pointerType !== "touch" && this.#hover(this.#parts.sheet.at(event)),
      onpointerleave: () => this.#hover(null),
      onclick: (event) => this.#onClick(event),
    });
    if (custom) box.append(custom.node);
    this.#parts = { picture, box, detail, sheet: custom ?? new Sheet(picture, box) };
    const legend = this.legend(width);
    const legendBox = legend && html("div.legend", svgRoot(legend.width, legend.height, legend.node));
    const isCut = box.classList.contains("tall");
    const more = isCut ? html("p.more", "The picture continues below: scroll inside it.") : null;
    fill(this.frame, this.#bar(), box, more, legendBox, detail, this.#measured(), this.#table());
  }

  /** How right such attention is, where that was measured. */
  #measured() {
    const line = this.trace.extras.attention_measured;
    return typeof line === "string" ? html("p.measured", line) : null;
  }

  #table() {
    if (!this.#showsTable) return null;
    const box = html("div.tablebox", {
      tabIndex: 0,
      role: "region",
      "aria-label": "Table of the numbers",
    });
    box.append(dataTable(this.table(), this.current));
    return box;
  }

  #bar() {
    const { main, more } = this.controls();
    const toggle = () => {
      this.#showsTable = !this.#showsTable;
      this.refresh();
    };
    const table = button("Table", toggle, { "aria-pressed": String(this.#showsTable) });
    const save = (label, form) => button(label, () => this.#save(form));
    const files = ["svg", "png", "json", "tsv"].map((form) => save(form.toUpperCase(), form));
    const note = html("p.note", "Files hold what is selected. JSON and TSV hold all of its numbers.");
    const saving = menu("Save", html("div.save", files), save("Copy the table", "copy"), note);
    const end = html("div.end", more.length ? menu("Options", more) : null, table, saving);
    return html("div.bar", main, end);
  }

  async #save(form) {
    try {
      if (form === "svg" || form === "png") await saveAs(this.localName, { [form]: this.toSvg() });
      else if (form === "json") await saveAs(this.localName, { json: this.exported() });
      else if (form === "tsv") await saveAs(this.localName, { tsv: this.table() });
      else if (await copyText(tabSeparated(this.table()))) this.#say("Copied.");
      else this.#say("The browser does not allow copying here. Save the table as TSV instead.");
    } catch (error) {
      this.#say(error.message);
    }
  }

  #say(message) {
    fill(this.#parts.detail, html("p", message));
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true, detail }));
  }

  #onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.composedPath()[0] !== this.#parts.box) return;
    const { picture, sheet } = this.#parts;
    const before = this.current;
    let position = stepped(event.key, before, picture);
    if (position === undefined) return;
    event.preventDefault();
    if (position) position = picture.settled(position, before);
    this.#hovered = null;
    this.#pin(position);
    if (position) sheet.reveal(position);
  }

  #onClick(event) {
    const position = this.#parts.sheet.at(event);
    if (position) this.#pin(same(position, this.#pinned) ? null : position);
  }

  #hover(position) {
    if (same(position, this.#hovered)) return;
    this.#hovered = position;
    this.#showPosition();
  }

  #pin(position) {
    this.#pinned = position;
    this.#showPosition();
    this.#tell("attention-position", position);
  }

  #showPosition() {
    if (!this.#parts || !this.trace) return;
    const { current } = this;
    const position = current && current.row < this.#parts.picture.rows ? current : null;
    this.#parts.sheet.mark(position);
    fill(this.#parts.detail, position ? this.detail(position) : html("p.quiet", this.hint));
  }
}
