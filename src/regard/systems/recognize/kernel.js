// A kernel slides over an input and writes one number of the output in each step.

import { fill, html, measure, svg } from "/web/dom.js";
import { button, errorBox, field, wholeNumber } from "/pages/parts.js";

const LIMITS = { input: [1, 12], kernel: [1, 12], stride: [1, 5], padding: [0, 3] };
const NAMES = { input: "Input size", kernel: "Kernel", stride: "Stride", padding: "Zero padding" };
const INTERVAL = 700;
const CELL = 26;

/** The animation with its controls, as one node. */
export function kernelAtWork(page) {
  const { state } = page;
  const picture = html("div.scroll.kernel", { tabIndex: 0, role: "img" });
  const formula = html("p.formula");
  const sum = html("p.quiet", { role: "status" });
  const scrubber = html("input", { type: "range", min: 0, value: 0 });
  const play = button("Play", () => (timer ? stop() : start()));
  const next = button("Next step", () => move(state.step + 1));
  let timer = 0;
  let setup = null;
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
    sum.setAttribute("role", "status");
  };
  const start = () => {
    // While it plays, a screen reader would read out every step.
    sum.removeAttribute("role");
    play.textContent = "Pause";
    timer = setInterval(() => {
      if (!play.isConnected) return stop();
      const last = state.step >= setup.count - 1;
      move(last ? 0 : state.step + 1);
    }, INTERVAL);
  };
  const move = (step) => {
    if (!setup) return;
    page.set({ step: Math.min(setup.count - 1, Math.max(0, step)) });
    draw();
  };
  const draw = () => {
    scrubber.value = state.step;
    next.disabled = state.step >= setup.count - 1;
    fill(picture, drawing(setup, state.step));
    const { text, row, column } = worked(setup, state.step);
    picture.setAttribute("aria-label", `Step ${state.step + 1}: the kernel is at row ${row}, column ${column}.`);
    sum.textContent = `Step ${state.step + 1} of ${setup.count}: ${text}`;
  };
  const change = () => {
    const { message, ...found } = prepared(state);
    const impossible = Boolean(message);
    for (const each of [scrubber, play, next]) each.disabled = impossible;
    if (impossible) {
      stop();
      setup = null;
      fill(formula);
      fill(sum);
      return void fill(picture, errorBox(message));
    }
    setup = found;
    scrubber.max = setup.count - 1;
    page.set({ step: Math.min(Math.max(0, Math.round(state.step)), setup.count - 1) });
    fill(formula, formulaOf(setup));
    draw();
  };
  const controls = Object.keys(LIMITS).map((name) => {
    const [min, max] = LIMITS[name];
    const value = Math.min(max, Math.max(min, Math.round(state[name])));
    state[name] = value;
    const changed = (given) => {
      page.set({ [name]: given, step: 0 });
      change();
    };
    return field(NAMES[name], wholeNumber({ min, max, value }, changed));
  });
  scrubber.addEventListener("input", () => {
    stop();
    move(Number(scrubber.value));
  });
  page.signal.addEventListener("abort", stop);
  change();
  return html(
    "div.result",
    html("div.row.numbers", controls),
    formula,
    picture,
    html("div.row.scrub", play, next, html("div.grow", field("Step", scrubber))),
    sum,
  );
}

/** The numbers of an animation, or a message why it is impossible. */
function prepared({ input, kernel, stride, padding }) {
  const spare = input + 2 * padding - kernel;
  if (spare < 0) {
    const room = `${input} + 2 · ${padding} = ${input + 2 * padding}`;
    return { message: `A kernel of ${kernel} does not fit on ${room} pixels. Use a larger input or more padding.` };
  }
  const output = Math.floor(spare / stride) + 1;
  // A bright disc, and a kernel that answers to its left and right edges.
  const middle = (input - 1) / 2;
  const values = grid(input, (row, column) => (Math.hypot(row - middle, column - middle) <= 0.4 * input ? 2 : 0));
  const weights = grid(kernel, (_, column) => (kernel === 1 ? 1 : Math.sign(column - (kernel - 1) / 2)));
  const at = (row, column) => values[row - padding]?.[column - padding] ?? 0;
  const results = grid(output, (row, column) => {
    let total = 0;
    for (let u = 0; u < kernel; u++)
      for (let v = 0; v < kernel; v++) total += weights[u][v] * at(row * stride + u, column * stride + v);
    return total;
  });
  const left = spare - (output - 1) * stride;
  return { input, kernel, stride, padding, output, count: output ** 2, at, weights, results, left, spare };
}

function grid(side, value) {
  return Array.from({ length: side }, (_, row) => Array.from({ length: side }, (__, column) => value(row, column)));
}

function formulaOf({ input, kernel, stride, padding, output, left, spare }) {
  const whole = spare % stride ? `⌊${spare} / ${stride}⌋` : `${spare} / ${stride}`;
  // Pixels at the right and bottom that no window reaches; padding there does not count.
  const missed = Math.max(0, left - padding);
  const lines = missed === 1 ? "row and column are" : `${missed} rows and columns are`;
  const note = missed ? ` The last ${lines} never seen.` : "";
  return [
    html("b", `Output ${output} × ${output}`),
    `: (input ${input} + 2 · padding ${padding} − kernel ${kernel}) / stride ${stride} + 1 = ${whole} + 1 = ${output}.`,
    note,
    " This kernel answers to vertical edges: above 0 where it gets brighter to the right, below 0 where darker.",
  ];
}

/** The sum of one step in words, and where its window begins, counted from 1. */
function worked({ at, kernel, stride, output, weights, results }, step) {
  const [row, column] = [Math.floor(step / output), step % output];
  const terms = [];
  for (let u = 0; u < kernel; u++) {
    for (let v = 0; v < kernel; v++) {
      const value = at(row * stride + u, column * stride + v);
      if (value && weights[u][v]) terms.push(`${value}·${weights[u][v] < 0 ? "(−1)" : weights[u][v]}`);
    }
  }
  const result = String(results[row][column]).replace("-", "−");
  const products = `${terms.slice(0, 12).join(" + ")}${terms.length > 12 ? " + …" : ""} = ${result}`;
  const text = terms.length ? `${products}.` : "all products are 0, so the output is 0.";
  return { text, row: row + 1, column: column + 1 };
}

function drawing(setup, step) {
  const { input, kernel, stride, padding, output, at, weights, results } = setup;
  const padded = input + 2 * padding;
  const [row, column] = [Math.floor(step / output), step % output];
  const inside = (u, v) => u >= padding && v >= padding && u < padding + input && v < padding + input;
  const cells = grid(padded, (u, v) => cell(v, u, at(u, v), inside(u, v) ? "value" : "pad"));
  const window = { x: column * stride * CELL, y: row * stride * CELL, width: kernel * CELL, height: kernel * CELL };
  const kernelCells = grid(kernel, (u, v) => cell(v, u, weights[u][v], "weight"));
  const outputCells = grid(output, (u, v) => {
    const index = u * output + v;
    return cell(v, u, index <= step ? results[u][v] : "", index === step ? "now" : index < step ? "done" : "later");
  });
  const target = { x: column * CELL, y: row * CELL, width: CELL, height: CELL };
  return [
    panel(padded, `input${padding ? ", zeros around it" : ""}`, cells, svg("rect", { ...window, class: "window" })),
    panel(kernel, "kernel", kernelCells),
    panel(output, "output", outputCells, svg("rect", { ...target, class: "window" })),
  ];
}

/** A grid of so many cells a side under its name: a picture of its own, which goes below the last where it must. */
function panel(side, label, ...children) {
  const [width, height] = [Math.max(side * CELL, measure(label, 12)) + 4, side * CELL + 24];
  return svg(
    "svg",
    { viewBox: `-2 -20 ${width} ${height}`, width, height, "aria-hidden": "true" },
    svg("text.label", { x: 0, y: -7 }, label),
    children,
  );
}

function cell(column, row, value, name) {
  const box = { x: column * CELL, y: row * CELL, width: CELL, height: CELL, class: `cell ${name}` };
  const middle = { x: (column + 0.5) * CELL, y: (row + 0.5) * CELL + 4.5, "text-anchor": "middle" };
  return [svg("rect", box), svg("text", { ...middle, class: `digit ${name}` }, String(value).replace("-", "−"))];
}
