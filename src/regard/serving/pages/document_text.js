// A classified text whose words and sentences can be removed: bars for sentences, shades for words, and probabilities.

import { fill, html } from "/web/dom.js";
import { direction } from "/web/tokens.js";
import { button, section } from "/pages/parts.js";

const MAX_CLASSES = 6;
/** Words with less than this share of the strongest are not shaded. */
const MIN_SHADE = 0.03;

export class TextPanel {
  #answer = null;
  /** Words that are removed, or will be once the server has answered. */
  #removed = new Set();
  #current = 0;
  #probabilities = html("div", { className: "classes" });
  #text = html("div", { className: "text", role: "group", "aria-label": "Words of the text" });
  #change = html("p", { className: "change", role: "status" });
  #numbers = html("attention-document", {});
  #onRemove;

  /** `onRemove` gets all words to remove, each time that one is removed or put back. */
  constructor(onRemove) {
    this.#onRemove = onRemove;
    this.restore = button("Put everything back", () => this.#remove(new Set()));
    this.#text.addEventListener("keydown", (event) => this.#onKey(event));
    const how =
      "Click a word or the number of a sentence to remove it, click again to put it back. With the keyboard: arrow " +
      "keys to move, Enter to remove.";
    const files = html(
      "details",
      { className: "files" },
      html("summary", {}, "All numbers, and files to save"),
      this.#numbers,
    );
    const change = html("div", { className: "row between" }, this.#change, this.restore);
    this.node = section(
      "",
      html("div", { className: "outcome" }, this.#probabilities, change),
      html("p", { className: "quiet" }, how),
      html(
        "p",
        { className: "quiet" },
        "Bars: weight of a sentence, then how many points the probability moves without it. Shades: weight of a word.",
      ),
      this.#text,
      files,
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
    this.#numbers.trace = traceOf(answer);
  }

  #drawText() {
    const { words, sentences, removed, word_weights: weights, sentence_weights: shares } = this.#answer;
    const gone = new Set(removed);
    const largest = Math.max(1e-9, ...shares);
    const shades = weights.map((weight, place) => weight * Math.sqrt(shares[sentences[place]]));
    const strongest = Math.max(1e-9, ...shades);
    const rows = shares.map((share, number) => {
      const own = words.map((_, place) => place).filter((place) => sentences[place] === number);
      const head = this.#sentenceButton(number, own, gone, share / largest);
      const list = own.map((place) => this.#wordButton(place, gone.has(place), shades[place] / strongest));
      return html("div", { className: "sentence" }, head, html("div", { className: "words" }, list));
    });
    const hadFocus = this.#text.contains(document.activeElement);
    fill(this.#text, rows);
    this.#focusable(this.#current, hadFocus);
  }

  #wordButton(place, isRemoved, shade) {
    const { words, word_weights: weights } = this.#answer;
    const node = html(
      "button",
      {
        type: "button",
        className: "word",
        tabIndex: -1,
        "data-place": place,
        "aria-pressed": String(isRemoved),
        title: isRemoved ? "Removed: click to put it back" : `weight ${weights[place].toFixed(3)} in its sentence`,
        onclick: () => this.#toggle([place]),
      },
      words[place],
    );
    if (!isRemoved && shade >= MIN_SHADE) node.style.setProperty("--shade", `${Math.round(100 * Math.min(1, shade))}%`);
    return node;
  }

  #sentenceButton(number, own, gone, length) {
    const { sentence_weights: shares, sentence_drops: drops } = this.#answer;
    const isRemoved = own.every((place) => gone.has(place));
    const points = -100 * drops[number];
    const filled = html("i", {});
    filled.style.width = `${Math.round(100 * length)}%`;
    return html(
      "button",
      {
        type: "button",
        className: "number",
        "aria-pressed": String(isRemoved),
        "aria-label":
          `Sentence ${number + 1}, weight ${shares[number].toFixed(2)}: ` +
          (isRemoved ? "put it back" : `remove it, which moves the probability by ${signed(points)} points`),
        onclick: () => this.#toggle(own),
      },
      html("b", {}, String(number + 1)),
      html("span", { className: "track" }, filled),
      html("span", {}, isRemoved ? "removed" : signed(points)),
    );
  }

  /** Remove words; or put them back, where all of them are removed already. */
  #toggle(places) {
    const gone = new Set(this.#removed);
    const back = places.every((place) => gone.has(place));
    for (const place of places) back ? gone.delete(place) : gone.add(place);
    if (places.length === 1) this.#current = places[0];
    this.#remove(gone);
  }

  /** Further clicks may come before the server has answered, and count on from this one. */
  #remove(gone) {
    this.#removed = gone;
    this.#onRemove([...gone].sort((one, other) => one - other));
  }

  #onKey(event) {
    if (!event.target.classList.contains("word")) return;
    const { sentences } = this.#answer;
    const place = Number(event.target.dataset.place);
    const next = {
      ArrowRight: place + 1,
      ArrowLeft: place - 1,
      ArrowDown: sentences.indexOf(sentences[place] + 1),
      ArrowUp: sentences.indexOf(sentences[place] - 1),
      Home: 0,
      End: sentences.length - 1,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (next >= 0 && next < sentences.length) this.#focusable(next, true);
  }

  /** Only one word is reached by Tab; arrow keys lead to the others. */
  #focusable(place, focus) {
    const words = this.#text.querySelectorAll(".word");
    this.#current = Math.min(place, words.length - 1);
    for (const word of words) word.tabIndex = Number(word.dataset.place) === this.#current ? 0 : -1;
    if (focus) words[this.#current]?.focus({ preventScroll: true });
  }
}

function signed(points) {
  const size = Math.abs(points).toFixed(1);
  if (size === "0.0") return size;
  return `${points > 0 ? "+" : "−"}${size}`;
}

function moved(points) {
  const size = Math.abs(points).toFixed(1);
  if (size === "0.0") return "moves by less than 0.1 points";
  return `${points < 0 ? "falls" : "rises"} by ${size} points`;
}

/** A class with its probability, and where it was before words were removed. */
function classRow(name, before, after) {
  const filled = html("i", {});
  const mark = html("u", { hidden: after[name] === before[name], title: `before: ${before[name].toFixed(3)}` });
  filled.style.width = `${100 * after[name]}%`;
  mark.style.insetInlineStart = `${100 * before[name]}%`;
  return html(
    "div",
    { className: "class" },
    html("b", {}, name),
    html("span", { className: "track" }, filled, mark),
    html("data", { value: String(after[name]) }, after[name].toFixed(3)),
  );
}

/** The answer as a trace for the viewer. */
function traceOf({ words, sentences, after, word_weights: weights, sentence_weights: shares, removed }) {
  const gone = new Set(removed);
  const kept = words.map((_, place) => place).filter((place) => !gone.has(place));
  const numbers = [...new Set(kept.map((place) => sentences[place]))];
  const [label] = Object.entries(after).sort((one, other) => other[1] - one[1])[0];
  return {
    version: 3,
    kind: "document",
    axes: [
      { name: "label", kind: "classes", labels: [label] },
      {
        name: "sentences",
        kind: "sentences",
        labels: numbers.map((number) =>
          kept
            .filter((place) => sentences[place] === number)
            .map((place) => words[place])
            .join(" "),
        ),
      },
      { name: "words", kind: "words", labels: kept.map((place) => words[place]), direction: direction(words) },
    ],
    maps: [
      { name: "sentences", rows: "label", columns: "sentences", weights: [numbers.map((number) => shares[number])] },
      { name: "words", rows: "label", columns: "words", weights: [kept.map((place) => weights[place])] },
    ],
    series: [
      { name: "sentence", axis: "words", values: kept.map((place) => numbers.indexOf(sentences[place])) },
    ],
    extras: { probability: after[label], probabilities: after },
  };
}
