// From weights to shares of a scale, and numbers as text.

/** The weight drawn strongest: 1, or the largest if all are small or some are above 1. */
export function largestWeight(weights, start = 0, end = weights.length) {
  let highest = 0;
  for (let place = start; place < end; place++) highest = Math.max(highest, Math.abs(weights[place]));
  return highest > 1 || (highest > 0 && highest < 0.5) ? highest : 1;
}

/** Whether a map has negative numbers that matter, as the difference of two maps or the content of a memory has. */
export function isSigned(weights) {
  let low = 0;
  let high = 0;
  for (const weight of weights) {
    if (weight < low) low = weight;
    else if (weight > high) high = weight;
  }
  return low < -0.01 * Math.max(high, -low);
}

/** The scale of a table of weights: one for the whole table, or one for each row up to its own largest weight. */
export class Scale {
  constructor(weights, width, perRow = false) {
    this.signed = isSigned(weights);
    this.perRow = perRow;
    this.largest = largestWeight(weights);
    this.#weights = weights;
    this.#width = width;
    if (perRow) this.#tops = new Float32Array(width ? weights.length / width : 0).fill(-1);
  }

  #weights;
  #width;
  #tops;

  /** The weight of a row that is drawn strongest. */
  top(row) {
    if (!this.perRow) return this.largest;
    if (this.#tops[row] < 0) {
      let highest = 0;
      for (let place = row * this.#width; place < (row + 1) * this.#width; place++) {
        highest = Math.max(highest, Math.abs(this.#weights[place]));
      }
      this.#tops[row] = highest || 1;
    }
    return this.#tops[row];
  }

  /** Where a weight stands between 0 and 1 of the colours: 0.5 is zero on a signed scale. */
  share(row, weight) {
    const share = weight / this.top(row);
    return Math.min(1, Math.max(0, this.signed ? (share + 1) / 2 : share));
  }
}

/** A weight with three decimals, as it is shown beside a picture. */
export function formatWeight(weight) {
  return fixed(weight, 3);
}

/** A number with a few decimals and a true minus sign. */
export function fixed(number, decimals) {
  const text = number.toFixed(decimals);
  return /^-0\.?0*$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

/** A number as the trace keeps it: six significant digits, without trailing zeros. */
export function exact(number) {
  return Number(number.toPrecision(6));
}
