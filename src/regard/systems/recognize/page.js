// The page Recognize: a kernel at work, a list of layers with live sizes, and the maps of an image at every layer.

import { html } from "/web/dom.js";
import { get } from "/pages/api.js";
import { ImagePage } from "/pages/page.js";
import { section } from "/pages/parts.js";
import { kernelAtWork } from "/systems/recognize/kernel.js";
import { layerEditor } from "/systems/recognize/layers.js";
import { layerMaps } from "/systems/recognize/maps.js";

const KERNEL = {
  input: 7,
  kernel: 3,
  stride: 2,
  padding: 1,
  step: 0,
  operation: "conv",
  channels: 1,
  weights: [],
  bias: 0,
};

export default class RecognizePage extends ImagePage {
  static heading = "Recognize";
  static lead =
    "How a convolutional network turns an image into maps: one kernel step by step, a whole list of layers, and what " +
    "a trained network computes from an image.";
  static isDrawing = true;
  static fresh = { layer: 0, map: 0 };

  get defaults() {
    return { ...KERNEL, size: "1x28x28", layers: "", model: "", example: "", layer: 0, map: 0 };
  }

  /** A captioner reads its images with such a network too. */
  async load() {
    this.models = this.all.filter((each) => [this.name, "caption"].includes(each.verb));
    const asked = [this.path("examples"), "/v1/caption/examples", this.path("networks")];
    const [own, scenes, known] = await Promise.all(asked.map((path) => get(path, { signal: this.signal })));
    this.examples = [...own.examples, ...scenes.examples].filter((each) => this.served(each.model));
    this.networks = known.networks;
  }

  build() {
    this.pickerBox = html("div");
    return [
      section("One kernel, step by step", kernelAtWork(this)),
      section("A list of layers", layerEditor(this)),
      section("Filters and feature maps of an image", this.chooser(), this.pickerBox, this.result),
      this.trust,
    ];
  }

  get first() {
    const named = this.examples.find((each) => each.name === this.state.example);
    return named ?? this.examples[3] ?? this.examples[0];
  }

  begin() {
    this.state.model ||= this.first.model;
    return super.begin();
  }

  take(image, isChosen) {
    this.change(image);
    if (isChosen && this.example) this.set({ model: this.example.model });
    this.pickerBox.replaceChildren(this.picker(() => ({ layer: 0, map: 0 })));
    return this.run();
  }

  async run() {
    const { verb } = this.served(this.state.model);
    const answer = await this.ask(this.result, "", { input: this.image.uri }, { path: `/v1/${verb}/maps` });
    if (!answer) return;
    layerMaps(this, answer);
    // Of a captioner, only the network that reads the image is shown here, without its attention.
    if (verb === this.name) this.measure(this.image.uri);
    else this.forget();
  }
}
