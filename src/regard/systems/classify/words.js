// A classified text whose words and sentences can be removed: bars for sentences, shades for words, and probabilities.

import { roving } from "/web/controls.js";
import { fill, html } from "/web/dom.js";
import { button, number, section, signed, track } from "/pages/parts.js";

const MAX_CLASSES = 6;
/** Words with less than this share of the strongest are not shaded. */
const MIN_SHADE = 0.03;

export class TextPanel {
  #answer = null;
  /** Words that are removed, or will be once the server has answered. */
  #removed = new Set();
  #current = 0;
  #probabilities = html("div.classes");
  #text = html("div.text", { role: "group", "aria-label": "Words of the text" });
  #change = html("p.change", { role: "status" });
  #numbers = html("attention-document");
  #files = html("details.files", html("summary", "All numbers, and files to save"), this.#numbers);
  #onRemove;

  /** `onRemove` gets all words to remove, each time that one is removed or put back. */
  constructor(onRemove) {
    this.#onRemove = onRemove;
    this.restore = button("Put everything back", () => this.#remove(new Set()));
    const how =
      "Click a word or the number of a sentence to remove it, click again to put it back. With the keyboard: arrow " +
      "keys to move, Enter to remove.";
    const change = html("div.row.between", this.#change, this.restore);
    this.node = section(
      "",
      html("div.outcome", this.#probabilities, change),
      html("p.quiet", how),
      html(
        "p.quiet",
        "Bars: weight of a sentence. The number after a bar is how many points the probability of the class moves " +
          "without the sentence: − it spoke for the class, + against it. Shades: weight of a word. A weight has no " +
          "sign: it says how much was read, not which class it speaks for.",
      ),
      this.#text,
      this.#files,
    );
  }

  show(answer) {
    this.#answer = answer;
    this.#removed = new Set(answer.removed);
    const { label, before, after, removed } = answer;
    fill(this.#probabilities, Object.keys(before).slice(0, MAX_CLASSES).map((name) => classRow(name, before, after)));
    const points = 100 * (after[label] - before[label]);
    fill(
      this.#change,
      removed.length
        ? `Without ${removed.length} of ${answer.words.length} words, the probability of “${label}” ` +
            `${moved(points)} (thin line: before).`
        : "The whole text, nothing removed.",
    );
    this.restore.hidden = !removed.length;
    this.#drawText();
    this.#numbers.trace = answer.trace ?? null;
    this.#files.hidden = !answer.trace;
  }

  #drawText() {
    const { words, sentences, removed, word_weights: weights, sentence_weights: shares } = this.#answer;
    const gone = new Set(removed);
    const largest = Math.max(1e-9, ...shares);
    const shades = weights.map((weight, index) => weight * Math.sqrt(shares[sentences[index]]));
    const strongest = Math.max(1e-9, ...shades);
    const rows = shares.map((share, number) => {
      const own = words.map((_, index) => index).filter((index) => sentences[index] === number);
      const head = this.#sentenceButton(number, own, gone, share / largest);
      const list = own.map((index) => this.#wordButton(index, gone.has(index), shades[index] / strongest));
      return html("div.sentence", head, html("div.words", list));
    });
    const hadFocus = this.#text.contains(document.activeElement);
    fill(this.#text, rows);
    const leads = (index) => ({
      ArrowDown: sentences.indexOf(sentences[index] + 1),
      ArrowUp: sentences.indexOf(sentences[index] - 1),
    });
    const chosen = (index) => (this.#current = index);
    const select = roving([...this.#text.querySelectorAll(".word")], { leads, chosen });
    this.#current = Math.min(this.#current, words.length - 1);
    select(this.#current, hadFocus);
  }

  #wordButton(index, isRemoved, shade) {
    const { words, word_weights: weights } = this.#answer;
    const node = button(words[index], () => this.#toggle([index]), {
      className: "word",
      "aria-pressed": String(isRemoved),
      title: isRemoved ? "Removed: click to put it back" : `weight ${weights[index].toFixed(3)} in its sentence`,
    });
    if (!isRemoved && shade >= MIN_SHADE) node.style.setProperty("--shade", `${Math.round(100 * Math.min(1, shade))}%`);
    return node;
  }

  #sentenceButton(number, own, gone, length) {
    const { sentence_weights: shares, sentence_drops: drops } = this.#answer;
    const isRemoved = own.every((index) => gone.has(index));
    const points = signed(-100 * drops[number], 1);
    const does = isRemoved ? "put it back" : `remove it, which moves the probability by ${points} points`;
    const label = [html("b", String(number + 1)), track(length), html("span", isRemoved ? "removed" : points)];
    return button(label, () => this.#toggle(own), {
      className: "number",
      "aria-pressed": String(isRemoved),
      "aria-label": `Sentence ${number + 1}, weight ${shares[number].toFixed(2)}: ${does}`,
    });
  }

  /** Remove words; or put them back, where all of them are removed already. */
  #toggle(indices) {
    const gone = new Set(this.#removed);
    const back = indices.every((index) => gone.has(index));
    for (const index of indices) back ? gone.delete(index) : gone.add(index);
    if (indices.length === 1) this.#current = indices[0];
    this.#remove(gone);
  }

  /** Further clicks may come before the server has answered, and count on from this one. */
  #remove(gone) {
    this.#removed = gone;
    this.#onRemove([...gone].sort((one, other) => one - other));
  }
}

function moved(points) {
  const size = Math.abs(points).toFixed(1);
  if (size === "0.0") return "moves by less than 0.1 points";
  return `${points < 0 ? "falls" : "rises"} by ${size} points`;
}

/** A class with its probability, and where it was before words were removed. */
function classRow(name, before, after) {
  const node = html("u", { hidden: after[name] === before[name], title: `before: ${before[name].toFixed(3)}` });
  const shares = track(after[name], { node, share: before[name] });
  return html("div.class", html("b", name), shares, number(after[name], after[name].toFixed(3)));
}
