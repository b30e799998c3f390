// The arithmetic of one step of attention on plain arrays: scores, softmax, sums, states of an encoder, projections.

/** The inner product of two vectors. */
export function dot(one, other) {
  return one.reduce((sum, value, place) => sum + value * other[place], 0);
}

/** A matrix, a list of rows, times a vector. */
export function times(matrix, vector) {
  return matrix.map((row) => dot(row, vector));
}

const added = (one, other) => one.map((value, place) => value + other[place]);
const length = (vector) => Math.sqrt(dot(vector, vector));

/** The softmax of scores. What has the score null may not be attended to: its weight is 0. */
export function softmax(scores) {
  const largest = Math.max(...scores.filter((score) => score !== null));
  const powers = scores.map((score) => (score === null ? 0 : Math.exp(score - largest)));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => (sum ? power / sum : 0));
}

/** The sum of values by weight. */
export function weightedSum(weights, values) {
  return values[0].map((_, feature) =>
    dot(
      weights,
      values.map((value) => value[feature]),
    ),
  );
}

/** The states of an encoder after each input: h_t = tanh(W x_t + U h_(t-1)), from h_0 = 0. */
export function encoded(inputs, { W, U }) {
  let state = W.map(() => 0);
  return inputs.map((input) => (state = added(times(W, input), times(U, state)).map(Math.tanh)));
}

/** Additive scores and concat are one function: W [s; h] is W s + U h. */
const additive = (s, h, _, { Wa, Ua, va }) => dot(va[0], added(times(Wa, s), times(Ua, h)).map(Math.tanh));

/**
 * The score functions of the lectures: `compare` takes the decoder's state s, the encoder's state h, its place, and the
 * numbers of the page, of which `parameters` are used.
 */
export const SCORES = {
  dot: { label: "dot (Luong 2015)", formula: "s′ h", parameters: [], compare: (s, h) => dot(s, h) },
  scaled_dot: {
    label: "scaled dot (Vaswani 2017)",
    formula: "s′ h / √p",
    parameters: [],
    compare: (s, h) => dot(s, h) / Math.sqrt(s.length),
  },
  cosine: {
    label: "content: cosine (Graves 2014)",
    formula: "s′ h / (|s| |h|)",
    parameters: [],
    compare: (s, h) => dot(s, h) / (length(s) * length(h) || 1),
  },
  general: {
    label: "general (Luong 2015)",
    formula: "s′ Wₐ h",
    parameters: ["Wg"],
    compare: (s, h, _, { Wg }) => dot(s, times(Wg, h)),
  },
  additive: {
    label: "additive (Bahdanau 2015)",
    formula: "v′ tanh(Wₐ s + Uₐ h)",
    parameters: ["Wa", "Ua", "va"],
    compare: additive,
  },
  concat: {
    label: "concat (Luong 2015)",
    formula: "v′ tanh([Wₐ Uₐ] [s; h])",
    parameters: ["Wa", "Ua", "va"],
    compare: additive,
  },
  location: {
    label: "location (Luong 2015)",
    formula: "(Wₗ s)ᵢ, without h",
    parameters: ["Wl"],
    compare: (s, _, place, { Wl }) => dot(Wl[place], s),
  },
};

/** How a query and a key of digits match, as numbers. */
export const MATCHES = {
  equality: { label: "is equal: WHERE ID = …", compare: (query, key) => Number(query === key) },
  prefix: { label: "begins with it: LIKE …%", compare: (query, key) => Number(key.startsWith(query)) },
  digits: {
    label: "how many digits agree",
    compare: (query, key) => [...key].filter((digit, place) => digit === query[place]).length,
  },
};

/** How matches become weights. */
export const WEIGHINGS = {
  none: { label: "the matches themselves", weigh: (scores) => scores },
  normalised: {
    label: "divided by their sum",
    weigh: (scores) => {
      const sum = scores.reduce((total, score) => total + score, 0);
      return scores.map((score) => (sum ? score / sum : 0));
    },
  },
  softmax: { label: "their softmax", weigh: softmax },
};

/** Which words a word may attend to. */
export const MASKS = {
  before: { label: "the words before it, as on the slide", allows: (query, key) => key < query },
  causal: { label: "itself and the words before", allows: (query, key) => key <= query },
  all: { label: "all words", allows: () => true },
};

/** The product x W of each row with a matrix, from the column `start` to before `end`. */
function projected(rows, matrix, start, end) {
  const columns = matrix[0].map((_, column) => matrix.map((row) => row[column])).slice(start, end);
  return rows.map((row) => times(columns, row));
}

/**
 * Self-attention of words x (n, d) in one of `heads` heads, which share the columns of Wq, Wk and Wv: its queries, keys
 * and values, and for each word its scores, null where it may not look, its weights, and its result z.
 */
export function selfAttention({ x, Wq, Wk, Wv }, { heads, head, isScaled, mask }) {
  const size = Wq[0].length / heads;
  const [q, k, v] = [Wq, Wk, Wv].map((matrix) => projected(x, matrix, head * size, (head + 1) * size));
  const divisor = isScaled ? Math.sqrt(size) : 1;
  const { allows } = MASKS[mask];
  const scores = q.map((query, i) => k.map((key, j) => (allows(i, j) ? dot(query, key) / divisor : null)));
  const weights = scores.map(softmax);
  return { q, k, v, scores, weights, z: weights.map((row) => weightedSum(row, v)), size };
}
