// A kernel or a pooling window slides over an input and writes one number of each output in each step.

import { fill, html, measure, svg } from "/web/dom.js";
import { numberGrid } from "/pages/attention_tables.js";
import { button, errorBox, field, select, wholeNumber } from "/pages/parts.js";

const LIMITS = { input: [1, 12], kernel: [1, 12], stride: [1, 5], padding: [0, 3] };
const NAMES = { input: "Input size", kernel: "Kernel", stride: "Stride", padding: "Zero padding" };
const OPERATIONS = [
  ["conv", "convolution"],
  ["max_pool", "max pooling"],
  ["average_pool", "average pooling"],
];
const ABOUT = {
  conv:
    "Each number is multiplied with the number of the kernel over it; the products of all channels and b are added. " +
    "Each further filter has kernels of its own and gives one more map.",
  max_pool:
    "Each window keeps its largest number, in each channel by itself. In training, the gradient goes to that one " +
    "cell. Padding does not count.",
  average_pool:
    "Each window keeps the mean of its numbers, in each channel by itself. In training, all its cells share the " +
    "gradient. Padding counts as 0, as in PyTorch.",
};
const CHANNELS = [1, 2, 3];
const INTERVAL = 700;
const CELL = 26;

/** The animation with its controls, as one node. */
export function kernelAtWork(page) {
  const { state } = page;
  const picture = html("div.scroll.kernel", { tabIndex: 0, role: "img" });
  const formula = html("p.formula");
  const about = html("p.quiet");
  const numbers = html("div");
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
  /** The numbers of the kernel, which can be edited; `change` draws what follows. */
  const edit = () => {
    const isConvolution = state.operation === "conv";
    if (!fitsKernel(state)) page.set({ weights: [] });
    const kernels = structuredClone(kernelsOf(state));
    const changed = () => {
      const [bias, ...edited] = grids;
      const isOther = JSON.stringify(edited) !== JSON.stringify(kernelsOf({ ...state, weights: [] }));
      page.set({ weights: isOther ? edited : [], bias: bias[0][0] });
      change();
    };
    const grids = [[[state.bias]], ...kernels];
    const names = [
      "b",
      ...kernels.map((_, channel) => (kernels.length > 1 ? `kernel of channel ${channel + 1}` : "kernel")),
    ];
    const nodes = names.map((name, index) => numberGrid(name, grids[index], changed));
    fill(
      numbers,
      isConvolution ? html("details.files", html("summary", "Edit the kernel"), html("div.grids.scroll", nodes)) : null,
    );
    about.textContent = ABOUT[state.operation];
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
    fill(formula, formulaOf(setup, !state.weights.length && state.channels === 1));
    draw();
  };
  const controls = Object.keys(LIMITS).map((name) => {
    const [min, max] = LIMITS[name];
    const value = Math.min(max, Math.max(min, Math.round(state[name])));
    state[name] = value;
    const changed = (given) => {
      page.set({ [name]: given, step: 0 });
      edit();
      change();
    };
    return field(NAMES[name], wholeNumber({ min, max, value }, changed));
  });
  if (!OPERATIONS.some(([name]) => name === state.operation)) state.operation = "conv";
  if (!CHANNELS.includes(state.channels)) state.channels = 1;
  const choose = (name, convert) => (value) => {
    page.set({ [name]: convert(value), step: 0 });
    edit();
    change();
  };
  const operation = select(OPERATIONS, state.operation, choose("operation", String));
  const channels = select(CHANNELS, state.channels, choose("channels", Number));
  const choices = [field("Operation", operation), field("Channels", channels)];
  scrubber.addEventListener("input", () => {
    stop();
    move(Number(scrubber.value));
  });
  page.signal.addEventListener("abort", stop);
  edit();
  change();
  return html(
    "div.result",
    html("div.row.numbers", choices, controls),
    about,
    formula,
    picture,
    html("div.row.scrub", play, next, html("div.grow", field("Step", scrubber))),
    sum,
    numbers,
  );
}

/** The kernels to begin with, one for each channel: vertical edges, horizontal edges, and the middle alone. */
const KERNELS = [
  (_, column, middle) => (middle ? Math.sign(column - middle) : 1),
  (row, _, middle) => (middle ? Math.sign(row - middle) : 1),
  (row, column, middle) => Number(row === Math.floor(middle) && column === Math.floor(middle)),
];
/** The channels of the input: a bright disc, its right half bright, and stripes. */
const INPUTS = [
  (row, column, side) => (Math.hypot(row - (side - 1) / 2, column - (side - 1) / 2) <= 0.4 * side ? 2 : 0),
  (_, column, side) => Number(column >= side / 2),
  (row) => row % 2,
];

/** Whether the edited numbers of the state are those of a kernel of its size. */
function fitsKernel({ weights, kernel, channels }) {
  const isGrid = (rows) => Array.isArray(rows) && rows.length === kernel && rows.every(isRow);
  const isRow = (row) => Array.isArray(row) && row.length === kernel && row.every(Number.isFinite);
  return Array.isArray(weights) && weights.length === channels && weights.every(isGrid);
}

/** The kernel of each channel: as edited, or as at first. */
function kernelsOf(state) {
  if (fitsKernel(state)) return state.weights;
  const middle = (state.kernel - 1) / 2;
  return KERNELS.slice(0, state.channels).map((made) => grid(state.kernel, (row, column) => made(row, column, middle)));
}

/** The numbers of an animation, or a message why it is impossible. */
function prepared(state) {
  const { input, kernel, stride, padding, operation, channels, bias } = state;
  const spare = input + 2 * padding - kernel;
  if (spare < 0) {
    const room = `${input} + 2 · ${padding} = ${input + 2 * padding}`;
    return { message: `A kernel of ${kernel} does not fit on ${room} pixels. Use a larger input or more padding.` };
  }
  if (operation !== "conv" && 2 * padding > kernel) {
    const half = Math.floor(kernel / 2);
    return {
      message: `A pooling window of ${kernel} takes a padding of at most ${half}: others would see nothing else.`,
    };
  }
  const output = Math.floor(spare / stride) + 1;
  const values = INPUTS.slice(0, channels).map((made) => grid(input, (row, column) => made(row, column, input)));
  const weights = kernelsOf(state);
  /** The numbers under the window of a step in one channel, with their places in it; null for padding. */
  const seen = (channel, row, column) => {
    const cells = [];
    for (let u = 0; u < kernel; u++)
      for (let v = 0; v < kernel; v++) {
        const value = values[channel][row * stride + u - padding]?.[column * stride + v - padding] ?? null;
        cells.push({ u, v, value });
      }
    return cells;
  };
  const pooled = (cells) => {
    const known = cells.map(({ value }) => value).filter((value) => value !== null);
    if (operation === "max_pool") return Math.max(...known);
    // As in PyTorch, the zeros of the padding count in the mean.
    return known.reduce((sum, value) => sum + value, 0) / cells.length;
  };
  const convolved = (row, column) =>
    values.reduce((total, _, channel) => {
      const products = seen(channel, row, column).map(({ u, v, value }) => (value ?? 0) * weights[channel][u][v]);
      return products.reduce((sum, product) => sum + product, total);
    }, bias);
  const results =
    operation === "conv"
      ? [grid(output, convolved)]
      : values.map((_, channel) => grid(output, (row, column) => pooled(seen(channel, row, column))));
  const left = spare - (output - 1) * stride;
  const sizes = { input, kernel, stride, padding, output, count: output ** 2, left, spare };
  return { ...sizes, operation, bias, values, seen, weights, results };
}

function grid(side, value) {
  return Array.from({ length: side }, (_, row) => Array.from({ length: side }, (__, column) => value(row, column)));
}

function formulaOf({ input, kernel, stride, padding, output, left, spare, operation }, isFirst) {
  const whole = spare % stride ? `⌊${spare} / ${stride}⌋` : `${spare} / ${stride}`;
  // Pixels at the right and bottom that no window reaches; padding there does not count.
  const missed = Math.max(0, left - padding);
  const lines = missed === 1 ? "row and column are" : `${missed} rows and columns are`;
  const note = missed ? ` The last ${lines} never seen.` : "";
  return [
    html("b", `Output ${output} × ${output}`),
    `: (input ${input} + 2 · padding ${padding} − kernel ${kernel}) / stride ${stride} + 1 = ${whole} + 1 = ${output}.`,
    note,
    operation === "conv" && isFirst
      ? " This kernel answers to vertical edges: above 0 where it gets brighter to the right, below 0 where darker."
      : "",
  ];
}

const MOST_TERMS = 12;
const shownNumber = (value) => String(Math.round(100 * value) / 100).replace("-", "−");
const factor = (value) => (value < 0 ? `(${shownNumber(value)})` : shownNumber(value));

/** What one step computes in words, and where its window begins, counted from 1. */
function worked({ operation, output, bias, values, seen, weights, results }, step) {
  const [row, column] = [Math.floor(step / output), step % output];
  const result = shownNumber(results[0][row][column]);
  const [first, last] = [{ row: row + 1, column: column + 1 }, (terms) => (terms.length > MOST_TERMS ? " + …" : "")];
  if (operation !== "conv") {
    const numbers = seen(0, row, column)
      .filter(({ value }) => value !== null)
      .map(({ value }) => shownNumber(value));
    const shown = `${numbers.slice(0, MOST_TERMS).join(", ")}${numbers.length > MOST_TERMS ? ", …" : ""}`;
    const name = operation === "max_pool" ? "the largest" : "the mean";
    return { text: `${name} of ${shown}${values.length > 1 ? " in the first channel" : ""} is ${result}.`, ...first };
  }
  const terms = values.flatMap((_, channel) =>
    seen(channel, row, column)
      .filter(({ u, v, value }) => value && weights[channel][u][v])
      .map(({ u, v, value }) => `${shownNumber(value)}·${factor(weights[channel][u][v])}`),
  );
  const added = bias ? ` + ${factor(bias)}` : "";
  const text = terms.length
    ? `${terms.slice(0, MOST_TERMS).join(" + ")}${last(terms)}${added} = ${result}.`
    : `all products are 0, so the output is ${bias ? `b = ${result}` : "0"}.`;
  return { text, ...first };
}

function drawing(setup, step) {
  const { input, kernel, stride, padding, output, operation, values, seen, weights, results } = setup;
  const padded = input + 2 * padding;
  const [row, column] = [Math.floor(step / output), step % output];
  const window = { x: column * stride * CELL, y: row * stride * CELL, width: kernel * CELL, height: kernel * CELL };
  const target = { x: column * CELL, y: row * CELL, width: CELL, height: CELL };
  const ofChannel = (channel, count) => (count > 1 ? ` ${channel + 1}` : "");
  const inputs = values.map((numbers, channel) => {
    const taken = operation === "max_pool" ? largest(seen(channel, row, column)) : null;
    const cells = grid(padded, (u, v) => {
      const value = numbers[u - padding]?.[v - padding];
      const isTaken = taken && u === row * stride + taken.u && v === column * stride + taken.v;
      return cell(v, u, value ?? 0, value === undefined ? "pad" : isTaken ? "now" : "value");
    });
    const name = `input${ofChannel(channel, values.length)}${padding ? ", zeros around it" : ""}`;
    return panel(padded, name, cells, svg("rect", { ...window, class: "window" }));
  });
  const kernels = weights.map((numbers, channel) => {
    const cells = grid(kernel, (u, v) => cell(v, u, shownNumber(numbers[u][v]), "weight"));
    return panel(kernel, `kernel${ofChannel(channel, weights.length)}`, cells);
  });
  const outputs = results.map((numbers, channel) => {
    const cells = grid(output, (u, v) => {
      const index = u * output + v;
      const value = index <= step ? shownNumber(numbers[u][v]) : "";
      return cell(v, u, value, index === step ? "now" : index < step ? "done" : "later");
    });
    const name = `output${ofChannel(channel, results.length)}`;
    return panel(output, name, cells, svg("rect", { ...target, class: "window" }));
  });
  return [inputs, operation === "conv" ? kernels : [], outputs];
}

/** The first cell of a window with its largest number. */
function largest(cells) {
  const known = cells.filter(({ value }) => value !== null);
  return known.reduce((best, each) => (each.value > best.value ? each : best), known[0]);
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
