// The page Classify: which sentences and words decide the class of a text, and what happens without them.

import { fill } from "/web/dom.js";
import { TextPage } from "/pages/page.js";
import { debounced } from "/pages/parts.js";
import { TextPanel } from "/systems/classify/words.js";

export default class ClassifyPage extends TextPage {
  static heading = "Which words decide?";
  static lead = "Which sentences and words decide the class of a text. Take some away and see the probability move.";
  static label = "Text to classify";
  static action = "Classify";
  static rows = 5;
  static maxLength = 20000;
  static isLong = true;
  static hint = "Paste a text, or take an example, to see which words decide its class.";
  static fresh = { removed: [] };
  static parts = { text: ["removed"] };

  get defaults() {
    return { text: this.examples[0].text, removed: [] };
  }

  async show() {
    this.panel = null;
    this.later = debounced((left) => this.measure(left), 600);
    await this.remove(this.state.removed);
  }

  /** Classify again without some words. */
  async remove(removed) {
    this.set({ removed });
    const retry = () => this.remove(removed);
    const answer = await this.ask(this.result, "without", { input: this.state.text, removed }, { retry });
    if (!answer) return;
    if (!this.panel) {
      // Until another text is classified, the old one still stands there, but nothing of it can be removed.
      const panel = new TextPanel((indices) => this.panel === panel && this.remove(indices));
      this.panel = panel;
      fill(this.result, panel.node);
    }
    this.panel.show(answer);
    // What is left is measured, once the clicks pause.
    const gone = new Set(removed);
    const left = answer.words.filter((_, index) => !gone.has(index)).join(" ");
    if (!removed.length) this.measure(this.state.text);
    else if (left) this.later(left);
    else this.forget();
  }
}
