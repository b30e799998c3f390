// What the layers of a trained network compute from an image: the filters, and a map for each.

import { colourTable, fixed, themeAround, watchTheme } from "/web/colours.js";
import { bitmap, fill, html } from "/web/dom.js";
import { bar, button, number } from "/pages/parts.js";

const KINDS = {
  Conv2d: "convolution",
  ReLU: "ReLU (negative numbers become 0)",
  ReLU6: "ReLU6",
  Tanh: "tanh",
  MaxPool2d: "max pooling",
  AvgPool2d: "average pooling",
};

/** Show the answer about the image of a page: its layers to choose a map from, and that map large. */
export function layerMaps(page, answer) {
  const draw = () => fill(page.result, shown(answer, page, themeAround(page.root).name));
  page.unwatch?.();
  page.unwatch = watchTheme(draw);
  page.signal.addEventListener("abort", page.unwatch);
  draw();
}

function shown({ image, size, layers, predictions = [] }, page, theme) {
  const [channels, height, width] = size;
  const detail = html("div.enlarged", { role: "status" });
  const groups = layers.map((layer, number) => layerGroup(layer, number, theme, (map) => pick(number, map)));
  const pick = (layer, map) => {
    page.set({ layer, map });
    groups.forEach(({ buttons }, number) =>
      buttons.forEach((each, index) => each.setAttribute("aria-pressed", String(number === layer && index === map))),
    );
    fill(detail, enlarged(layers[layer], map, theme));
  };
  const within = (index, count) => Math.min(count - 1, Math.max(0, Math.round(index)));
  const start = within(page.state.layer, layers.length);
  pick(start, within(page.state.map, layers[start].maps.length));
  const input = html("img.pixels.seen", { src: image, alt: "The image as the network sees it" });
  const seen = html("figure", input, html("figcaption", `What the network sees: ${channels} × ${height} × ${width}`));
  const left = html("div.sticky", seen, guesses(predictions), detail);
  return html("div.beside.small", left, html("div.layergroups", groups.map(({ node }) => node)));
}

function guesses(predictions) {
  if (!predictions.length) return null;
  const rows = predictions.slice(0, 3).map(({ label, probability: share }) => {
    return html("li", html("b", label), bar(share, share, share.toFixed(3)));
  });
  return html("ul.guesses", { "aria-label": "Most probable classes" }, rows);
}

function layerGroup({ kind, shape, maps, filters }, layer, theme, pick) {
  const [count, height, width] = shape;
  const range = extent(maps);
  const buttons = maps.map((map, index) => {
    const name = `Layer ${layer + 1}, map ${index + 1}`;
    return button(painted(map, range, theme), () => pick(index), { "aria-label": name, "aria-pressed": "false" });
  });
  const about = `${count} ${count === 1 ? "map" : "maps"} of ${height} × ${width}`;
  const left = count > maps.length ? `, the first ${maps.length} shown` : "";
  const kernel = filters ? `, kernels of ${filters[0][0].length} × ${filters[0][0][0].length}` : "";
  const node = html(
    "section.layergroup",
    html("h3", `${layer + 1}. ${KINDS[kind] ?? kind}`, html("small", ` ${about}${left}${kernel}`)),
    html("div.maps", { role: "group", "aria-label": `Maps of layer ${layer + 1}` }, buttons),
  );
  return { node, buttons };
}

/** One map large, with its numbers from low to high, and the filters that computed it. */
function enlarged({ kind, maps, filters, shape }, index, theme) {
  const range = extent(maps);
  const { low, high } = extent([maps[index]]);
  const canvas = painted(maps[index], range, theme);
  canvas.classList.add("large");
  const kernels = filters?.[index];
  const kernelRange = kernels && extent(filters.flat());
  const brighter = theme === "dark" ? "Brighter" : "Darker";
  const colours = range.low < 0 ? ". Orange is above 0, purple below." : `. ${brighter} is larger.`;
  return [
    html("h3", `Map ${index + 1} of ${shape[0]}`, html("small", ` after ${KINDS[kind] ?? kind}`)),
    canvas,
    html("p.quiet", "From ", number(low, fixed(low, 2)), " to ", number(high, fixed(high, 2)), colours),
    kernels && html("p.quiet", kernels.length > 1 ? "Its filter, for the first input maps:" : "Its filter:"),
    kernels && html("div.kernels", kernels.map((kernel) => painted(kernel, kernelRange, theme))),
  ];
}

function extent(maps) {
  const values = maps.flat(2);
  return { low: Math.min(...values), high: Math.max(...values) };
}

/** A map as a canvas with one pixel for each number; signed numbers have the middle of the colours at 0. */
function painted(map, { low, high }, theme) {
  const isSigned = low < 0;
  const largest = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const share = (_, value) => Math.min(1, Math.max(0, isSigned ? (value / largest + 1) / 2 : value / largest));
  const table = colourTable(isSigned ? "signed" : "blue", theme);
  const [height, width] = [map.length, map[0].length];
  const canvas = bitmap({ weights: map.flat(), height, width, scale: { share }, table });
  canvas.className = "pixels";
  canvas.setAttribute("aria-hidden", "true");
  return canvas;
}
