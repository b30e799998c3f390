// The state of the page Attention: its first numbers, what is chosen, and both as the address gives them.

import { MASKS, MATCHES, SCORES, WEIGHINGS } from "/pages/attention_numbers.js";
import { read } from "/pages/state.js";

export const QUESTION = ["How", "are", "you", "?"];
export const SENTENCE = ["she", "is", "eating", "a", "green", "apple"];
/** Chosen by hand, not learned. The decoder has the features of the encoder in another order, which Wg puts back. */
export const NUMBERS = {
  embedding: [
    [1, 0, 0.5],
    [0, 1, -0.5],
    [0.5, 0.5, 1],
    [-1, 0, 0],
  ],
  W: [
    [0.8, -0.2, 0.1],
    [0.1, 0.9, -0.3],
    [-0.4, 0.2, 0.7],
  ],
  U: [
    [0.5, 0, 0.2],
    [0, 0.4, -0.1],
    [0.1, 0.3, 0.5],
  ],
  s: [[-0.1, 0.9, -0.1]],
  Wg: [
    [0, 0, 4],
    [4, 0, 0],
    [0, 4, 0],
  ],
  Wa: [
    [0, 1, 0],
    [1, 0, 0],
  ],
  Ua: [
    [2, 0, -1],
    [0, -2, 0],
  ],
  va: [[1.5, 1.5]],
  Wl: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
    [-1, 0, 0],
  ],
  x: [
    [0, 0, 0, 1],
    [0, 0, -0.5, 0],
    [1, 0, 0, 0],
    [0, 0, 0.5, -0.5],
    [0, 1, 0, 0],
    [0, 0, 1, 0],
  ],
  Wq: [
    [0, 2, 0, 0],
    [0, 0, 0, 0],
    [1.61, 0, 0.69, 0],
    [0, 0, 0, 0],
  ],
  Wk: [
    [1, 0, 0, 0],
    [0, 0, 1, 0],
    [0, 0, 0, 0],
    [0, 1, 0, 0],
  ],
  Wv: [
    [1, 0, 0, 0.5],
    [0, 1, 0.5, 0],
    [0, 0, 1, 0],
    [0.5, 0, 0, 1],
  ],
};
export const DEFAULTS = {
  id: "00512317",
  match: "prefix",
  weigh: "none",
  time: 4,
  score: "general",
  at: 0,
  word: 5,
  key: 2,
  heads: 1,
  head: 0,
  mask: "before",
  scaled: false,
  numbers: {},
};

/** The state of the address; a name that does not exist becomes that of the default. */
export function readState() {
  const state = read(DEFAULTS);
  const known = { match: MATCHES, weigh: WEIGHINGS, score: SCORES, mask: MASKS };
  for (const [name, choices] of Object.entries(known)) if (!(state[name] in choices)) state[name] = DEFAULTS[name];
  const limits = {
    time: [0, 4],
    at: [0, 3],
    word: [0, 5],
    key: [0, 5],
    heads: [1, 2],
    head: [0, state.heads === 2 ? 1 : 0],
  };
  for (const [name, [least, most]] of Object.entries(limits))
    state[name] = Math.min(most, Math.max(least, Math.round(state[name])));
  return state;
}

/** Whether a value of the address is a matrix of numbers with the size of another. */
export function fits(given, matrix) {
  const isRow = (row, width) => Array.isArray(row) && row.length === width && row.every(Number.isFinite);
  return Array.isArray(given) && given.length === matrix.length && given.every((row) => isRow(row, matrix[0].length));
}
