// The page Convolution: a kernel at work, a list of layers with live sizes, and the maps of an image at every layer.

import { html } from "/web/dom.js";
import { intro } from "/pages/pictures.js";
import { animation } from "/pages/convolution_animation.js";
import { layerEditor } from "/pages/convolution_layers.js";
import { mapsView } from "/pages/convolution_maps.js";
import { section } from "/pages/parts.js";
import { read, write } from "/pages/state.js";

export const title = "Convolution";

const DEFAULTS = {
  input: 7,
  kernel: 3,
  stride: 2,
  padding: 1,
  step: 0,
  size: "1x28x28",
  layers: "",
  model: "",
  example: "",
  layer: 0,
  map: 0,
};

export async function show(root, context) {
  const state = read(DEFAULTS);
  const set = (values) => {
    Object.assign(state, values);
    write(values);
  };
  const page = { state, set, context };
  root.append(
    intro(
      "Convolution",
      "How a convolutional network turns an image into maps: one kernel step by step, a whole list of layers, and " +
        "what a trained network computes from an image.",
    ),
    section("One kernel, step by step", animation(page)),
  );
  const editor = section("A list of layers");
  const maps = section("Filters and feature maps of an image");
  const trust = html("section", { hidden: true });
  root.append(editor, maps, trust);
  await Promise.all([layerEditor(editor, page), mapsView(maps, trust, page)]);
}
