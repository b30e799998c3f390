// What the layers of a trained network compute from an image: the filters, and a map for each.

import { colourAt, colourTable, fixed, themeAround, watchTheme } from "/web/colours.js";
import { fill, html } from "/web/dom.js";
import { get } from "/pages/api.js";
import { ask, busy, modelPicker, turns } from "/pages/parts.js";
import { bar, imageInput } from "/pages/pictures.js";
import { trustStrip } from "/pages/trust.js";

const KINDS = {
  Conv2d: "convolution",
  ReLU: "ReLU (negative numbers become 0)",
  ReLU6: "ReLU6",
  Tanh: "tanh",
  MaxPool2d: "max pooling",
  AvgPool2d: "average pooling",
};

/** The part of the page, in `root`; what there is to trust of a classifier stands in `trust`. */
export async function mapsView(root, trust, { state, set, context }) {
  const { all, signal } = context;
  const models = all.filter((each) => ["recognize", "caption"].includes(each.kind));
  const asked = ["recognize", "caption"].map((page) => get(`/v1/${page}/examples`, { signal }));
  const found = await busy(root, Promise.all(asked), "Loading …");
  if (!found) return;
  const [digits, scenes] = found;
  const examples = [...digits.examples, ...scenes.examples].filter((each) =>
    models.some((model) => model.name === each.model),
  );
  const result = html("div", { className: "result" });
  const pickers = html("div");
  const turn = turns(signal);
  let image = null;
  let answer = null;
  const names = models.map((each) => each.name);

  const run = async () => {
    const body = { model: state.model, input: image.uri };
    const { verb } = models.find(({ name }) => name === state.model);
    const found = await ask(result, { models, signal: turn() }, `/v1/${verb}/maps`, body, run);
    if (!found) return;
    answer = found;
    draw();
    // Of a captioner, only the network that reads the image is shown here, without its attention.
    trust.hidden = verb !== "recognize";
    if (!trust.hidden) trustStrip(trust, { verb, ...body });
  };
  const draw = () => answer && fill(result, shown(answer, { state, set, theme: themeAround(root).name }));
  const take = (given, choose = true) => {
    image = given;
    const example = examples.find((each) => each.name === given.name);
    input.mark(given.name);
    const model = choose && example ? example.model : state.model;
    set({ example: given.name, model: names.includes(model) ? model : names[0] });
    const picked = (name) => {
      set({ model: name, layer: 0, map: 0 });
      run();
    };
    fill(pickers, modelPicker(models, state.model, picked));
    run();
  };
  const input = imageInput(
    examples,
    (given) => {
      set({ layer: 0, map: 0 });
      take(given);
    },
    { signal, drawing: true },
  );
  root.append(input.node, pickers, result);
  if (!models.length || !examples.length) return;
  signal.addEventListener("abort", watchTheme(draw));
  const named = examples.find((each) => each.name === state.example) ?? examples[3] ?? examples[0];
  take({ uri: named.image, name: named.name }, !names.includes(state.model));
}

function shown({ image, size, layers, predictions = [] }, page) {
  const [channels, height, width] = size;
  const detail = html("div", { className: "enlarged", role: "status" });
  const groups = layers.map((layer, number) =>
    layerGroup(layer, number, { ...page, pick: (map) => pick(number, map) }),
  );
  const pick = (number, map) => {
    page.set({ layer: number, map });
    groups.forEach(({ buttons }, place) =>
      buttons.forEach((each, index) => each.setAttribute("aria-pressed", String(place === number && index === map))),
    );
    fill(detail, enlarged(layers[number], map, page.theme));
  };
  const within = (number, count) => Math.min(count - 1, Math.max(0, Math.round(number)));
  const start = within(page.state.layer, layers.length);
  pick(start, within(page.state.map, layers[start].maps.length));
  const input = html("img", { src: image, alt: "The image as the network sees it", className: "pixels seen" });
  const seen = html(
    "figure",
    {},
    input,
    html("figcaption", {}, `What the network sees: ${channels} × ${height} × ${width}`),
  );
  return [
    html(
      "div",
      { className: "beside small" },
      html("div", { className: "sticky" }, seen, guesses(predictions), detail),
      html("div", { className: "layergroups" }, groups.map(({ node }) => node)),
    ),
  ];
}

function guesses(predictions) {
  if (!predictions.length) return null;
  const rows = predictions
    .slice(0, 3)
    .map(({ label, probability }) =>
      html("li", {}, html("b", {}, label), bar(probability, probability, probability.toFixed(3))),
    );
  return html("ul", { className: "guesses", "aria-label": "Most probable classes" }, rows);
}

function layerGroup({ kind, shape, maps, filters }, number, { theme, pick }) {
  const [count, height, width] = shape;
  const range = extent(maps);
  const buttons = maps.map((map, place) =>
    html(
      "button",
      {
        type: "button",
        "aria-label": `Layer ${number + 1}, map ${place + 1}`,
        "aria-pressed": "false",
        onclick: () => pick(place),
      },
      painted(map, range, theme),
    ),
  );
  const about = `${count} ${count === 1 ? "map" : "maps"} of ${height} × ${width}`;
  const left = count > maps.length ? `, the first ${maps.length} shown` : "";
  const kernel = filters ? `, kernels of ${filters[0][0].length} × ${filters[0][0][0].length}` : "";
  const node = html(
    "section",
    { className: "layergroup" },
    html("h3", {}, `${number + 1}. ${KINDS[kind] ?? kind}`, html("small", {}, ` ${about}${left}${kernel}`)),
    html("div", { className: "maps", role: "group", "aria-label": `Maps of layer ${number + 1}` }, buttons),
  );
  return { node, buttons };
}

/** One map large, with its numbers from low to high, and the filters that computed it. */
function enlarged({ kind, maps, filters, shape }, place, theme) {
  const range = extent(maps);
  const own = extent([maps[place]]);
  const canvas = painted(maps[place], range, theme);
  canvas.classList.add("large");
  const kernels = filters?.[place];
  const kernelRange = kernels && extent(filters.flat());
  return [
    html("h3", {}, `Map ${place + 1} of ${shape[0]}`, html("small", {}, ` after ${KINDS[kind] ?? kind}`)),
    canvas,
    html(
      "p",
      { className: "quiet" },
      "From ",
      html("data", { value: String(own.low) }, fixed(own.low, 2)),
      " to ",
      html("data", { value: String(own.high) }, fixed(own.high, 2)),
      range.low < 0 ? ". Orange is above 0, purple below." : `. ${theme === "dark" ? "Brighter" : "Darker"} is larger.`,
    ),
    kernels
      ? [
          html(
            "p",
            { className: "quiet" },
            kernels.length > 1 ? "Its filter, for the first input maps:" : "Its filter:",
          ),
          html(
            "div",
            { className: "kernels" },
            kernels.map((kernel) => painted(kernel, kernelRange, theme)),
          ),
        ]
      : null,
  ];
}

function extent(maps) {
  let [low, high] = [Infinity, -Infinity];
  for (const map of maps) {
    for (const row of map) {
      for (const value of row) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
  }
  return { low, high };
}

/** A map as a canvas with one pixel for each number; signed numbers have the middle of the colours at 0. */
function painted(map, { low, high }, theme) {
  const [height, width] = [map.length, map[0].length];
  const canvas = html("canvas", { width, height, className: "pixels", "aria-hidden": "true" });
  const signed = low < 0;
  const table = colourTable(signed ? "signed" : "blue", theme);
  const largest = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const image = new ImageData(width, height);
  map.flat().forEach((value, place) => {
    const share = signed ? (value / largest + 1) / 2 : value / largest;
    image.data.set([...colourAt(table, Math.min(1, Math.max(0, share))), 255], 4 * place);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
