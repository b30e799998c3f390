// The beam search as a tree: a column for each step, the best hypothesis at the top, pruned ones faint.

import { fixed, themeAround } from "/web/colours.js";
import { fill, html, levelCurve, measure, shortened, svg, text } from "/web/dom.js";
import { composed, saveAs } from "/web/export.js";
import { button, END, named, number } from "/pages/parts.js";

const ROW = 24;
const TOP = 26;
const GAP = 26;
const SIZE = 13;
/** What the style sheet says of a shape, which a file has to say itself. */
const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-weight"];

const FATES = {
  root: "where the search begins",
  kept: "kept: it was extended",
  pruned: "pruned: better ones took its place",
  finished: "a result",
  cut: "a result, cut at the length limit",
};

/** The panel; it asks the server when it is first shown. */
export function beamPanel(page) {
  const panel = html("div.beam");
  const load = async () => {
    const body = { ...page.sentenceRequest(), change: page.change };
    const answer = await page.ask(panel, "tree", body, { retry: load });
    if (answer) new BeamTree(panel, answer).show();
  };
  load();
  return panel;
}

class BeamTree {
  constructor(panel, answer) {
    Object.assign(this, { panel, answer, ...answer });
    this.nodes = answer.nodes.map((node) => ({ ...node, children: [] }));
    this.layOut();
    this.detail = html("div.branch", { role: "status" });
    this.view = html("attention-matrix", { options: { words: true } });
    this.drawing = html("div.tree", {
      tabIndex: 0,
      role: "application",
      onkeydown: (event) => this.step(event),
      "aria-label": "Tree of the search. Arrow left: shorter, right: longer, up and down: better and worse.",
    });
  }

  show() {
    const outputs = this.nodes.filter(({ rank }) => rank !== null).length;
    const pruned = this.nodes.filter(({ fate }) => fate === "pruned").length;
    const explained =
      "Each column is a step: the best hypothesis stands at the top, and a line leads to the one that it extends. " +
      `Faint ones were pruned (${pruned}); ringed ones became results (${outputs}, numbered from the best). ` +
      "A dot before a piece says that it continues a word. Choose a branch to see what it attended to.";
    const files = ["SVG", "PNG", "JSON"].map((form) => button(form, () => this.save(form)));
    fill(
      this.panel,
      html("p.quiet", explained),
      this.drawing,
      html("div.row.files", html("span.quiet", "Save the tree:"), files),
      this.detail,
      this.weights.length ? this.view : null,
    );
    this.choose(this.nodes.findIndex(({ rank }) => rank === 0));
  }

  async save(form) {
    if (form === "JSON") return saveAs("beam", { json: this.answer });
    const drawn = this.drawing.querySelector("svg");
    const copy = drawn.cloneNode(true);
    const shapes = "path, rect, text";
    const [from, to] = [drawn, copy].map((each) => [...each.querySelectorAll(shapes)]);
    from.forEach((shape, index) => {
      const style = getComputedStyle(shape);
      for (const name of STYLES) to[index].setAttribute(name, style.getPropertyValue(name));
    });
    const part = { width: this.width, height: this.height, node: copy };
    const picture = composed([part], themeAround(this.panel), this.sentence);
    return saveAs("beam", form === "SVG" ? { svg: picture } : { png: picture });
  }

  /** Where nodes stand: their column is the step, their row the rank among all hypotheses of the step. */
  layOut() {
    this.columns = [];
    this.nodes.forEach((node, index) => {
      (this.columns[node.depth] ??= []).push(index);
      if (node.parent !== null) this.nodes[node.parent].children.push(index);
      const piece = node.begins ? node.label : `·${node.label}`;
      node.shown = node.parent === null ? "start" : node.label === END ? named(END) : piece;
    });
    let x = 8;
    this.columns.forEach((column) => {
      const widest = Math.max(...column.map((index) => measure(shortened(this.nodes[index].shown, 16), SIZE, "600")));
      column.forEach((index, row) => Object.assign(this.nodes[index], { x, row, y: TOP + row * ROW, wide: widest }));
      x += widest + GAP;
    });
    this.width = x;
    this.height = TOP + Math.max(...this.columns.map((column) => column.length)) * ROW;
  }

  path(index) {
    const found = [];
    for (let at = index; at !== null; at = this.nodes[at].parent) found.unshift(at);
    return found;
  }

  draw() {
    const onPath = new Set(this.path(this.chosen));
    const edges = [];
    const labels = [];
    this.nodes.forEach((node, index) => {
      const state = onPath.has(index) ? "path" : node.fate;
      if (node.parent !== null) {
        const from = this.nodes[node.parent];
        const start = from.x + measure(shortened(from.shown, 16), SIZE) + 4;
        const d = levelCurve([start, from.y], [node.x - 4, node.y]);
        edges.push(svg("path", { d, class: `edge ${state}` }));
      }
      labels.push(this.label(node, index, state));
    });
    const heads = this.columns.map((column, depth) =>
      depth ? text(this.nodes[column[0]].x, 8, String(depth), { size: 10 }) : null,
    );
    const box = { width: this.width, height: this.height, viewBox: `0 0 ${this.width} ${this.height}` };
    // The chosen branch is drawn last, on top.
    edges.sort((one, other) => one.classList.contains("path") - other.classList.contains("path"));
    fill(this.drawing, svg("svg", box, svg("g.steps", heads), edges, labels));
  }

  label(node, index, state) {
    const written = shortened(node.shown, 16);
    const wide = measure(written, SIZE, "600");
    const isOutput = node.rank !== null;
    const group = svg("g", { class: `node ${state} ${node.fate}`, "data-node": index });
    const frame = index === this.chosen ? "chosen" : isOutput ? "output" : "plain";
    group.append(
      svg("title", `${this.text(index)} (${fixed(node.total, 2)})`),
      svg("rect", { x: node.x - 4, y: node.y - 10, width: wide + 8, height: 20, rx: 5, class: frame }),
      text(node.x, node.y, written, { size: SIZE }),
      isOutput ? text(node.x + wide + 8, node.y - 6, String(node.rank + 1), { size: 10, weight: "700" }) : "",
    );
    group.addEventListener("click", () => this.choose(index));
    return group;
  }

  /** The text of a hypothesis. */
  text(index) {
    const nodes = this.path(index).slice(1).map((at) => this.nodes[at]).filter(({ label }) => label !== END);
    return nodes.map(({ label, begins }) => (begins ? ` ${label}` : label)).join("").replaceAll("▁", "").trim();
  }

  step(event) {
    const node = this.nodes[this.chosen];
    const column = this.columns[node.depth];
    const targets = {
      ArrowLeft: node.parent,
      ArrowRight: node.children[0],
      ArrowUp: column[node.row - 1],
      ArrowDown: column[node.row + 1],
    };
    if (!(event.key in targets)) return;
    event.preventDefault();
    const next = targets[event.key];
    if (next !== undefined && next !== null) this.choose(next);
  }

  choose(index) {
    this.chosen = index;
    this.draw();
    const node = this.nodes[index];
    const { drawing } = this;
    const end = node.x + node.wide + GAP;
    if (end > drawing.scrollLeft + drawing.clientWidth) drawing.scrollLeft = end - drawing.clientWidth;
    if (node.x - GAP < drawing.scrollLeft) drawing.scrollLeft = node.x - GAP;
    const numbers = `${FATES[node.fate]} · log-probability: this token ${fixed(node.log_prob, 2)}, all together `;
    const by = node.score === null ? "" : `${fixed(node.score, 3)}, which allows for the length`;
    const score = by && ` · place ${node.rank + 1} by its score, ${by}`;
    fill(
      this.detail,
      html("p.hypothesis", { dir: "auto" }, this.text(index) || "(nothing yet)"),
      html("p.quiet", numbers, number(node.total, fixed(node.total, 2)), score),
    );
    if (this.weights.length) {
      this.view.hidden = index === 0;
      if (index) this.view.trace = this.trace(index);
    }
  }

  /** The attention of a branch, as a trace. */
  trace(index) {
    const nodes = this.path(index).slice(1).map((at) => this.nodes[at]);
    let rows = nodes.map(({ attention }) => this.weights[attention]);
    if (this.shifted) rows = [...rows.slice(1), rows.at(-1)];
    const words = [];
    for (const { label, begins } of nodes) {
      if (begins || label === END || !words.length) words.push(["", 0]);
      words.at(-1)[0] += label;
      words.at(-1)[1] += 1;
    }
    return {
      version: 3,
      kind: "translation",
      axes: [this.source, { name: "target", kind: "tokens", labels: nodes.map(({ label }) => label), words }],
      maps: [{ name: "cross", rows: "target", columns: "source", weights: rows }],
      series: [{ name: "log_prob", axis: "target", values: nodes.map(({ log_prob: value }) => value) }],
    };
  }
}
