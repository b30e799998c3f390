// An encoder reads "How are you?" in four time steps, and a decoder attends to its states.

import { fixed } from "/web/colours.js";
import { html } from "/web/dom.js";
import { encoded, SCORES, softmax, weightedSum } from "/pages/attention_numbers.js";
import { QUESTION } from "/pages/attention_state.js";
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
import { button, field, select } from "/pages/parts.js";

const TITLES = {
  Wg: "Wₐ of general",
  Wa: "Wₐ",
  Ua: "Uₐ",
  va: "v",
  Wl: "Wₗ, a row for each place",
};

/** "How are you?": four words, four time steps, a state after each. */
export function encoderSteps({ state, numbers, set, edited }, followed) {
  const result = html("div.result");
  const slider = html("input", { type: "range", min: 0, max: QUESTION.length, value: state.time });
  const move = (time) => {
    set({ time });
    slider.value = time;
    draw();
  };
  const next = button("Next word", () => move(state.time === QUESTION.length ? 0 : state.time + 1));
  slider.addEventListener("input", () => move(Number(slider.value)));
  const draw = () => {
    const states = encoded(numbers.embedding, numbers);
    const zero = numbers.W.map(() => 0);
    const rows = QUESTION.slice(0, state.time).map((word, t) => ({
      name: `t = ${t + 1}: ${word}`,
      cells: [vector(numbers.embedding[t]), vector(states[t - 1] ?? zero), vector(states[t])],
    }));
    const isRead = state.time === QUESTION.length;
    const said = isRead
      ? "All four words are read. Without attention the decoder gets the last state alone, the context vector: " +
        "every sentence, however long, must fit into these three numbers. With attention it gets all four " +
        "states, and the memory grows with the sentence."
      : `${state.time} of ${QUESTION.length} words are read. Each state is computed from the one before it and a word.`;
    next.textContent = isRead ? "From the start" : "Next word";
    const heads = ["time", "x_t, the word", "h_(t−1), the state before", "h_t, the state after"];
    refill(
      result,
      rows.length ? stepTable("States of the encoder", heads, rows) : null,
      html("p.quiet", { role: "status" }, said),
    );
  };
  const changed = edited(() => {
    draw();
    followed();
  });
  draw();
  return [
    html(
      "p",
      "Each word has a row of the embedding table. A recurrent network reads one word in each time step: h_t = " +
        "f(h_(t−1), x_t), here tanh(W x_t + U h_(t−1)), from h_0 = 0. The states have three numbers: the hidden " +
        "dimension is 3.",
    ),
    html("div.row.scrub", next, html("div.grow", field("Words read", slider))),
    result,
    editor("Edit the embedding table and the network", [
      numberGrid("embedding", numbers.embedding, changed, { rows: QUESTION }),
      numberGrid("W", numbers.W, changed),
      numberGrid("U", numbers.U, changed),
    ]),
  ];
}

/** One step of a decoder: its state is compared with each state of the encoder. */
export function decoderStep({ state, numbers, set, edited }) {
  const result = html("div.result");
  const parameters = html("div");
  const draw = () => {
    const states = encoded(numbers.embedding, numbers);
    const { compare, formula } = SCORES[state.score];
    const scores = states.map((h, place) => compare(numbers.s[0], h, place, numbers));
    const powers = scores.map(Math.exp);
    const weights = softmax(scores);
    const rows = QUESTION.map((name, place) => ({
      name,
      cells: [
        vector(states[place]),
        exactNumber(scores[place]),
        exactNumber(powers[place]),
        weightBar(weights[place]),
        vector(states[place].map((value) => weights[place] * value)),
      ],
    }));
    const sum = powers.reduce((total, each) => total + each, 0);
    const shown = [scores[state.at], powers[state.at], sum, weights[state.at]];
    const [score, power, total, weight] = shown.map((each) => fixed(each, 2));
    const word = QUESTION[state.at];
    refill(
      result,
      stepTable(
        "Attention of the decoder",
        ["word", "h, its state", "score", "exp(score)", "weight", "weight · h"],
        rows,
        {
          pick,
          chosen: state.at,
          sum: { name: "context c = Σ weight · h", value: vector(weightedSum(weights, states)) },
        },
      ),
      html(
        "p.worked",
        { role: "status" },
        `${word}: score = ${formula} = ${score}; weight = exp(${score}) / Σ exp = ${power} / ${total} = ${weight}.`,
      ),
    );
  };
  const pick = (at) => {
    set({ at });
    draw();
  };
  const changed = edited(draw);
  const choose = (score) => {
    set({ score });
    const used = SCORES[score].parameters;
    const grids = used.map((name) =>
      numberGrid(TITLES[name], numbers[name], changed, { rows: name === "Wl" ? QUESTION : [] }),
    );
    refill(
      parameters,
      grids.length
        ? editor(`Edit the parameters of ${score}`, grids)
        : html("p.quiet", "This score has no parameters."),
    );
    draw();
  };
  const nodes = [
    html(
      "p",
      "The decoder is about to write Comment, and should look at How. It scores each state of the encoder with " +
        "its own state s, turns the scores into weights with a softmax, and sums the states by weight. Bahdanau " +
        "takes the state before the step, s_(t−1), Luong the one after it, h_t. The dot product needs both in one " +
        "space. Here the decoder has the same features in another order, so that dot looks at are; the matrix of " +
        "general unites the two spaces.",
    ),
    html(
      "div.row.numbers",
      field("Score", select(choices(SCORES), state.score, choose)),
      numberGrid("s, the state of the decoder", numbers.s, changed),
    ),
    result,
    parameters,
  ];
  choose(state.score);
  return { nodes, draw };
}
