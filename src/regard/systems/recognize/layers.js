// An editable list of layers with its table: output sizes, receptive fields and parameters, as they are typed.

import { fill, html, svg } from "/web/dom.js";
import { ApiError, isAborted, post } from "/pages/api.js";
import { button, debounced, errorBox, field, scrollTable, select, wholeNumber } from "/pages/parts.js";

const KINDS = [
  ["conv", "convolution"],
  ["max_pool", "max pooling"],
  ["average_pool", "average pooling"],
];
const LETTERS = { conv: "c", max_pool: "m", average_pool: "a" };
const NUMBERS = { filters: [1, 4096], kernel: [1, 1024], stride: [1, 1024], padding: [0, 1024] };
const NEW = {
  conv: { kind: "conv", filters: 8, kernel: 3, stride: 1, padding: 1, groups: 1 },
  max_pool: { kind: "max_pool", filters: 8, kernel: 2, stride: 2, padding: 0, groups: 1 },
};
const FIELD = 210;
/** An empty list in the address. */
const NONE = "none";

/** A list as the address has it: c6k5s1p2 is a convolution of 6 filters, m and a are poolings. */
function written(layers) {
  return layers
    .map(({ kind, filters, kernel, stride, padding, groups }) => {
      const count = kind === "conv" ? filters : "";
      return `${LETTERS[kind]}${count}k${kernel}s${stride}p${padding}${groups > 1 ? `g${groups}` : ""}`;
    })
    .join("_") || NONE;
}

function parsed(text) {
  return text.split("_").flatMap((part) => {
    const found = /^([cma])(\d*)k(\d+)s(\d+)p(\d+)(?:g(\d+))?$/.exec(part);
    if (!found) return [];
    const [, letter, filters, kernel, stride, padding, groups] = found;
    const kind = Object.keys(LETTERS).find((each) => LETTERS[each] === letter);
    const numbers = { filters: Number(filters || 8), kernel: Number(kernel), stride: Number(stride) };
    return [{ kind, ...numbers, padding: Number(padding), groups: Number(groups ?? 1) }];
  });
}

/** The list of a page with its table, and what one cell of each layer sees. */
export function layerEditor(page) {
  const { networks, state } = page;
  const body = html("tbody");
  const problemBox = html("div");
  const total = html("p.quiet", { role: "status" });
  const figure = html("div.fields");
  let layers = parsed(state.layers);
  if (!layers.length && state.layers !== NONE) layers = networks[0].layers.map((layer) => ({ ...layer }));
  let size = /^\d+x\d+x\d+$/.test(state.size) ? state.size.split("x").map(Number) : [1, 28, 28];
  let outputs = [];

  const update = async () => {
    page.set({ layers: written(layers), size: size.join("x") });
    const [channels, height, width] = size;
    try {
      const signal = page.turn(problemBox);
      const answer = await post(page.path("table"), { channels, height, width, layers }, { signal });
      fill(problemBox);
      showRows(answer);
    } catch (error) {
      if (isAborted(error)) return;
      if (!(error instanceof ApiError)) throw error;
      fill(problemBox, errorBox(error.message));
    }
  };
  const later = debounced(update, 200);
  const showRows = ({ rows, problem, parameters, multiply_adds: work }) => {
    outputs.forEach(({ output, fieldCell, count, note }, index) => {
      const row = rows[index];
      const isProblem = problem?.layer === index;
      output.closest("tr").classList.toggle("impossible", isProblem);
      output.textContent = row ? row.output.join(" × ") : "–";
      fieldCell.textContent = row ? (row.field ?? "all") : "–";
      count.textContent = row ? row.parameters.toLocaleString("en") : "–";
      fill(note, isProblem ? html("b", `Impossible: ${problem.message}`) : (row?.note ?? ""));
    });
    const [one, other] = [parameters, work].map((count) => count.toLocaleString("en"));
    const end = problem ? ", up to the impossible layer." : ".";
    const sum = `${one} parameters and ${other} multiply-adds for an image${end}`;
    total.textContent = rows.length ? sum : layers.length ? "The first layer is impossible." : "No layers yet.";
    fill(figure, fieldsFigure(rows, size));
  };

  const rebuild = () => {
    outputs = [];
    fill(body, layers.map(layerRow));
    update();
  };
  const layerRow = (layer, index) => {
    const name = `layer ${index + 1}`;
    const kind = select(KINDS, layer.kind, (value) => {
      layers[index] = { ...(NEW[value] ?? NEW.max_pool), kind: value };
      rebuild();
    });
    kind.setAttribute("aria-label", `Kind of ${name}`);
    const number = (key) => {
      const [min, max] = NUMBERS[key];
      const disabled = key === "filters" && layer.kind !== "conv";
      const position = key === "filters" ? "first" : "";
      if (disabled) return html("td", { className: `quiet ${position}`, "data-label": key }, "–");
      const properties = { min, max, value: layer[key], "aria-label": `${key} of ${name}` };
      const input = wholeNumber(properties, (given) => {
        layer[key] = given;
        later();
      });
      return html("td", { className: position, "data-label": key }, input);
    };
    const remove = button("✕", () => {
      layers.splice(index, 1);
      rebuild();
      (body.querySelectorAll("tr")[index] ?? body.lastElementChild)?.querySelector("select")?.focus();
    });
    remove.setAttribute("aria-label", `Remove ${name}`);
    const cell = (className, label) => html("td", { className, "data-label": label });
    const [output, fieldCell] = [cell("output", "output"), cell("reach", "field")];
    const [count, note] = [cell("count", "parameters"), html("td.note")];
    outputs.push({ output, fieldCell, count, note });
    return html(
      "tr",
      html("th", { scope: "row" }, index + 1),
      html("td.kind", kind, layer.groups > 1 ? html("small", ` in ${layer.groups} groups`) : null),
      Object.keys(NUMBERS).map(number),
      output,
      fieldCell,
      count,
      html("td.remove", remove),
      note,
    );
  };
  const add = (kind) => () => {
    layers.push({ ...NEW[kind] });
    rebuild();
  };
  const presets = select([["", "choose …"], ...networks.map(({ name, title }) => [name, title])], "", (name) => {
    const net = networks.find((each) => each.name === name);
    if (!net) return;
    size = [net.channels, net.height, net.width];
    layers = net.layers.map((layer) => ({ ...layer }));
    sizes.forEach(([, input], index) => (input.value = size[index]));
    rebuild();
  });
  const sizes = ["Channels", "Height", "Width"].map((label, index) => {
    const changed = (given) => {
      size[index] = given;
      later();
    };
    const input = wholeNumber({ min: 1, max: 1024, value: size[index], "aria-label": label }, changed);
    return [`Image ${label.toLowerCase()}`, input];
  });
  const heads = ["", "layer", ...Object.keys(NUMBERS), "output", "receptive field", "parameters", "", "note"];
  rebuild();
  return [
    html("div.row.numbers", field("Start from", presets), sizes.map(([label, input]) => field(label, input))),
    problemBox,
    scrollTable("Layers", heads, body, { className: "layers" }),
    html("div.row", button("Add a convolution", add("conv")), button("Add a pooling", add("max_pool"))),
    total,
    figure,
  ];
}

/** What one cell of each layer sees of the image, as squares over it. */
function fieldsFigure(rows, [, height, width]) {
  const seen = rows.filter((row) => row.field !== null);
  if (!seen.length) return null;
  const scale = FIELD / Math.max(height, width);
  const [wide, high] = [width * scale, height * scale];
  const squares = seen.map(({ field: side }, index) => {
    const [across, down] = [Math.min(wide, side * scale), Math.min(high, side * scale)];
    const box = { x: (wide - across) / 2, y: (high - down) / 2, width: across, height: down };
    return svg("rect", { ...box, class: "square", opacity: 0.35 + (0.65 * (index + 1)) / seen.length });
  });
  const largest = seen.at(-1).field;
  const whole = largest >= Math.max(height, width);
  const text = whole
    ? `A cell of the last layer depends on ${largest} × ${largest} pixels: all of the image` +
      `${largest > Math.min(height, width) ? ", and more." : "."}`
    : `A cell of the last layer depends on ${largest} × ${largest} pixels of ${height} × ${width}.`;
  return [
    svg(
      "svg",
      { viewBox: `-2 -2 ${wide + 4} ${high + 4}`, width: wide + 4, height: high + 4, role: "img", "aria-label": text },
      svg("rect.image", { width: wide, height: high }),
      squares.reverse(),
    ),
    html("p.quiet", html("b", "Receptive fields. "), text),
  ];
}
