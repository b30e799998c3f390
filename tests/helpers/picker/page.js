// The page of the picker: numbers, the one that it picks, and where it looks.

import { fill, html } from "/web/dom.js";
import { TextPage } from "/pages/page.js";
import { number, section, view } from "/pages/parts.js";

export default class PickPage extends TextPage {
  static heading = "Pick the largest";
  static lead = "The largest of some numbers, found by attention.";
  static label = "Numbers";
  static action = "Pick";
  static hint = "Type some numbers.";

  get defaults() {
    return { text: this.examples[0].text };
  }

  async load() {
    await super.load();
    this.examples = this.examples.map(({ numbers }) => ({ name: numbers.join(", "), text: numbers.join(" ") }));
  }

  async show() {
    const input = this.state.text.split(/\s+/).map(Number);
    const answer = await this.ask(this.result, "", { input, trace: true });
    if (!answer) return;
    const [{ value, unit, trace }] = answer.results;
    const picked = html("p.picked", number(value, value.toFixed(2)), ` ${unit}`);
    fill(this.result, section("", picked, view("attention-matrix", trace)));
    this.measure(input);
  }
}
