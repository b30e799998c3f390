// The page Document: which sentences and words decide the class of a text, and what happens without them.

import { fill, html } from "/web/dom.js";
import { ask, button, emptyBox, examples, field, modelPicker, section, servedName, turns } from "/pages/parts.js";
import { TextPanel } from "/pages/document_text.js";
import * as state from "/pages/state.js";
import { clearTrust, trustStrip } from "/pages/trust.js";

export const title = "Document";

const EXAMPLES = [
  {
    label: "A mixed review",
    text:
      "I went in with low hopes. The first half hour is slow, and the dialogue feels forced in places. But then the " +
      "film finds its feet! The lead actress is wonderful, funny and moving. The music is gorgeous. Some scenes are " +
      "too long. Still, I would recommend it to anyone who likes a good story well told.",
  },
  {
    label: "Praise and blame",
    text: "The acting is superb and the photography is beautiful. The script is the worst I have seen in years.",
  },
  {
    label: "Irony",
    text: "Oh great, another sequel that nobody asked for. I laughed twice, once at the credits.",
  },
];

export async function show(root, context) {
  const { models } = context;
  const defaults = { model: servedName(models), text: EXAMPLES[0].text, removed: [] };
  const values = state.read(defaults, { text: ["removed"] });
  values.model = servedName(models, values.model);
  const page = new DocumentPage(root, context, values);
  await page.run();
}

class DocumentPage {
  constructor(root, context, values) {
    Object.assign(this, { context, values });
    this.turn = turns(context.signal);
    this.input = html("textarea", { rows: 5, value: values.text, maxLength: 20000 });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.classify();
    });
    this.result = html("div", { className: "page" });
    this.trust = html("div", {});
    const pick = ({ text }) => {
      this.input.value = text;
      this.classify();
    };
    const form = section(
      "",
      html("h1", {}, "Which words decide?"),
      modelPicker(context.models, values.model, (model) => {
        this.values.model = model;
        this.classify();
      }),
      field("Text to classify", this.input),
      html("div", { className: "row between" }, examples(EXAMPLES, pick), this.#button()),
    );
    root.append(form, this.result, this.trust);
  }

  #button() {
    return button("Classify", () => this.classify(), { primary: true, title: "Ctrl+Enter" });
  }

  /** Classify the text of the field, with nothing removed. */
  classify() {
    this.values.text = this.input.value;
    this.values.removed = [];
    return this.run();
  }

  async run() {
    const { model, text, removed } = this.values;
    state.write({ model, text, removed });
    this.panel = null;
    if (!text.trim()) {
      clearTrust(this.trust);
      return void fill(
        this.result,
        emptyBox(html("p", {}, "Paste a text, or take an example, to see which words decide its class.")),
      );
    }
    if (await this.remove(removed)) trustStrip(this.trust, { verb: "classify", model, input: text });
  }

  /** Classify again without some words; resolves to whether there was an answer. */
  async remove(removed) {
    const { model, text } = this.values;
    const again = () => this.remove(removed);
    const context = { models: this.context.models, signal: this.turn() };
    const body = { model, input: text, removed };
    this.values.removed = removed;
    state.write({ removed });
    const answer = await ask(this.result, context, "/v1/classify/without", body, again);
    if (!answer) return false;
    if (!this.panel) {
      // Until another text is classified, the old one still stands there, but nothing of it can be removed.
      const panel = new TextPanel((places) => this.panel === panel && this.remove(places));
      this.panel = panel;
      fill(this.result, panel.node);
    }
    this.panel.show(answer);
    return true;
  }
}
