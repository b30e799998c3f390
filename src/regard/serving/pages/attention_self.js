// Self-attention of "she is eating a green apple": queries, keys and values, scaling, masks and heads.

import { fixed } from "/web/colours.js";
import { html } from "/web/dom.js";
import { MASKS, selfAttention } from "/pages/attention_numbers.js";
import { SENTENCE } from "/pages/attention_state.js";
import {
  choices,
  editor,
  exactNumber,
  numberGrid,
  refill,
  stepTable,
  vector,
  weightBar,
} from "/pages/attention_tables.js";
import { field, select } from "/pages/parts.js";

/** "she is eating a green apple": a query, a key and a value for each word. */
export function selfAttentionStep({ state, numbers, set, edited }) {
  const [result, map, matrices] = [html("div.result"), html("div"), html("div.grids.scroll")];
  const heads = select(
    [
      ["1", "one head"],
      ["2", "two heads"],
    ],
    String(state.heads),
    (count) => change({ heads: Number(count), head: 0 }),
  );
  const head = html("div");
  const mask = select(choices(MASKS), state.mask, (name) => change({ mask: name }));
  const scaled = html("input", {
    type: "checkbox",
    checked: state.scaled,
    onchange: () => change({ scaled: scaled.checked }),
  });
  const change = (values) => {
    set(values);
    draw();
  };
  const changed = edited(() => draw());
  const draw = () => {
    const { heads: count, word, key } = state;
    const found = selfAttention(numbers, { heads: count, head: state.head, isScaled: state.scaled, mask: state.mask });
    const [scores, weights] = [found.scores[word], found.weights[word]];
    const rows = SENTENCE.map((name, place) => ({
      name,
      isHidden: scores[place] === null,
      cells: [
        vector(found.q[place]),
        vector(found.k[place]),
        vector(found.v[place]),
        scores[place] === null ? "masked" : exactNumber(scores[place]),
        weightBar(weights[place]),
        vector(found.v[place].map((value) => weights[place] * value)),
      ],
    }));
    const asks = html("span", `z of ${SENTENCE[word]} = Σ weight · v`);
    refill(
      head,
      count === 2
        ? field(
            "Head",
            select(
              [
                ["0", "first"],
                ["1", "second"],
              ],
              String(state.head),
              (chosen) => change({ head: Number(chosen) }),
            ),
          )
        : null,
    );
    refill(
      result,
      stepTable(
        "Self-attention",
        ["word", "q, query", "k, key", "v, value", `score with ${SENTENCE[word]}`, "weight", "weight · v"],
        rows,
        {
          pick: (place) => change({ key: place }),
          chosen: key,
          sum: { name: asks, value: vector(found.z[word]) },
        },
      ),
      html("p.worked", { role: "status" }, worked(found, state)),
    );
    refill(
      map,
      weightMap(found.weights, word, (place) => change({ word: place })),
    );
  };
  const split = () => {
    const grids = ["Wq", "Wk", "Wv"].map((name) => numberGrid(name, numbers[name], changed, { split: state.heads }));
    refill(matrices, numberGrid("x, the words", numbers.x, changed, { rows: SENTENCE }), grids);
  };
  heads.addEventListener("change", split);
  split();
  draw();
  return [
    html(
      "p",
      "Each word x has three faces: a query q = Wq′ x, which asks; a key k = Wk′ x, which answers; and a value " +
        "v = Wv′ x, which is read. The query of a word is compared with the key of each word. Choose a word in " +
        "the map to let it ask.",
    ),
    html(
      "div.row.numbers",
      field("May attend to", mask),
      field("Heads", heads),
      head,
      html("label.check", scaled, "divide scores by √p"),
    ),
    html("div.columns", html("div", html("h3", "Weights: each row is a word that asks"), map)),
    result,
    html(
      "p.quiet",
      "With one head the weights of apple are those of the lecture: 0.1, 0.1, 0.5, 0.1, 0.2. With two heads the" +
        " same matrices ask two questions, each with half of the columns: what is done to it, and what is it " +
        "like. Long vectors have large products, and a softmax of large scores looks at one word only: dividing " +
        "by √p keeps it soft.",
    ),
    html("details.files", html("summary", "Edit the words and the matrices"), matrices),
  ];
}

/** The arithmetic of one score in words. */
function worked({ q, k, scores, weights, size }, { word, key, scaled }) {
  const [asking, asked] = [SENTENCE[word], SENTENCE[key]];
  if (scores[word][key] === null) return `${asking} may not attend to ${asked}: its weight is 0.`;
  const products = q[word].map((value, place) => `${fixed(value, 2)} · ${fixed(k[key][place], 2)}`).join(" + ");
  const scale = scaled ? ` / √${size}` : "";
  const [score, weight] = [scores, weights].map((table) => fixed(table[word][key], 2));
  return `${asking} asks ${asked}: score = ${scale ? `(${products})${scale}` : products} = ${score}; weight ${weight}.`;
}

/** The weights of all words as a table: the names of its rows choose the word that asks. */
function weightMap(weights, chosen, pick) {
  const rows = SENTENCE.map((name, place) => ({ name, cells: weights[place].map((weight) => vector([weight])) }));
  return stepTable("Weights of all words", ["", ...SENTENCE], rows, { pick, chosen });
}
