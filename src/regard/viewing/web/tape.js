// <attention-tape>: a memory machine at work.

import { colourTable, PALETTES } from "./colours.js";
import { choice, flag } from "./controls.js";
import { html } from "./dom.js";
import { AttentionElement } from "./element.js";
import { legendBar, numberList } from "./numbers.js";
import { exact, fixed } from "./scales.js";
import { TapePicture } from "./tape_drawing.js";
import { tapePanels } from "./tape_panels.js";

export class AttentionTape extends AttentionElement {
  static label = "Tape";
  static defaults = { palette: "blue", allSlots: false, vectors: false };
  get hint() {
    return "Time runs from left to right. Point at a step, or step with the arrow keys, to see where the heads are.";
  }

  static suits(trace) {
    return ["input", "output", "target"].every((name) => trace.map(name)?.weights.length);
  }

  picture(width) {
    const { theme, options } = this;
    return new TapePicture(tapePanels(this.trace, options), { width, theme, palette: options.palette });
  }

  controls() {
    const set = (name) => (value) => this.setOptions({ [name]: value });
    const { wrong, panels } = tapePanels(this.trace);
    const output = this.trace.map("output");
    const scored = (this.trace.values("scored") ?? []).reduce((sum, each) => sum + each, 0) * output.width;
    const verdict = html("span", {}, `${panels[0].width} steps, ${scored - wrong.size} of ${scored} bits right`);
    return {
      main: [verdict],
      more: [
        choice("Colours", PALETTES, this.options.palette, set("palette")),
        flag("Show what heads write and read", this.options.vectors, set("vectors")),
        flag("Show unused slots too", this.options.allSlots, set("allSlots")),
      ],
    };
  }

  detail({ row }) {
    const { trace } = this;
    const pairs = [];
    for (const map of trace.maps.filter(({ name }) => /^(write|read) \d+$/.test(name))) {
      const weights = map.weights.subarray(row * map.width, (row + 1) * map.width);
      const slot = weights.reduce((best, weight, place) => (weight > weights[best] ? place : best), 0);
      pairs.push([
        `${map.name.startsWith("write") ? "writes to" : "reads from"} slot ${trace.axis(map.columns).labels[slot]}`,
        weights[slot],
      ]);
    }
    const steps = trace.map("output").rows;
    for (const series of trace.series)
      if (series.axis === steps && series.name !== "scored") pairs.push([series.name, series.values[row]]);
    const bits = (name) => {
      const map = trace.map(name);
      return Array.from(map.weights.subarray(row * map.width, (row + 1) * map.width), (bit) =>
        bit === 0 || bit === 1 ? bit : name === "output" ? Number(bit > 0.5) : fixed(bit, 2),
      ).join(" ");
    };
    const isScored = trace.values("scored")?.[row] ?? 1;
    const heading = [
      html("b", {}, `Step ${row + 1}`),
      `: input ${bits("input")}`,
      isScored ? `; output ${bits("output")}, right is ${bits("target")}` : "",
    ];
    return numberList(heading, pairs);
  }

  table() {
    const { trace } = this;
    const steps = trace.axis(trace.map("output").rows).labels;
    const maps = trace.maps.filter((map) => map.rows === trace.map("output").rows);
    const series = trace.series.filter((each) => each.axis === trace.map("output").rows);
    const columns = [
      "step",
      ...series.map((each) => each.name),
      ...maps.flatMap((map) => trace.axis(map.columns).labels.map((label) => `${map.name}: ${label}`)),
    ];
    const rows = steps.map((label, row) => [
      label,
      ...series.map((each) => exact(each.values[row])),
      ...maps.flatMap((map) => Array.from(map.weights.subarray(row * map.width, (row + 1) * map.width), exact)),
    ]);
    return { caption: "All numbers of each step", columns, rows };
  }

  legend(width) {
    const table = colourTable(this.options.palette, this.theme.name);
    const name = this.trace.map("memory") ? "weight or bit; memory: purple below 0, orange above" : "weight or bit";
    return legendBar({ scale: { perRow: false, signed: false, largest: 1 }, table, theme: this.theme, width, name });
  }
}
