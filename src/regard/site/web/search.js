// Greedy and beam search, by the rules of regard.search: the same tokens for the same model.

const add = (one, other) => Math.fround(one + other);

/** The best output that a beam of this size leads to: {tokens, logProbs, weights, gates, score, finished}.
 *
 * `step(tokens, parents)` is asked for the next log-probabilities of each row, after the rows have been chosen by their
 * parents: it gives {logProbs, weights, gates}, a row each. `banned` tokens are never chosen.
 */
async function searched(step, { beam, limit, start, end, banned }) {
  if (beam === 1) return greedy(step, { limit, start, end, banned });
  const outputs = [];
  let rows = Array.from({ length: beam }, (_, row) =>
    ({ tokens: [], logProbs: [], steps: [], total: row ? -Infinity : 0 }));
  let parents = rows.map((_, row) => row);
  const score = (row) => row.logProbs.reduce(add, 0) / Math.max(1, row.logProbs.length);
  const keep = (row, finished) => outputs.push({ ...row, score: score(row), finished });
  for (let length = 0; length <= limit; length++) {
    const found = await step(rows.map((row) => row.tokens.at(-1) ?? start), parents);
    const candidates = best(found.logProbs, rows.map((row) => row.total), 2 * beam, [start, ...banned]);
    const extended = ({ parent, token, total, logProb }) => ({
      tokens: token === end ? rows[parent].tokens : [...rows[parent].tokens, token],
      logProbs: [...rows[parent].logProbs, logProb],
      steps: [...rows[parent].steps, { weights: found.weights?.[parent], gate: found.gates?.[parent] }],
      total,
    });
    const isCut = length >= limit;
    const [others, ended, unfinished] = [[], new Set(), new Set()];
    candidates.forEach((candidate, rank) => {
      const isPossible = candidate.total > -Infinity;
      if (candidate.token === end && isPossible) {
        if (rank >= beam) return;
        ended.add(candidate.parent);
        keep(extended(candidate), true);
      } else if (isCut) {
        if (!isPossible || unfinished.has(candidate.parent) || outputs.length >= beam) return;
        unfinished.add(candidate.parent);
        keep(rows[candidate.parent], false);
      } else if (candidate.token !== end && others.length < beam) others.push(candidate);
    });
    if (isCut || !candidates.some(({ total }) => total > -Infinity)) {
      rows.forEach((row, index) => {
        const isNew = row.total > -Infinity && !ended.has(index) && !unfinished.has(index);
        if (isNew && outputs.length < beam) keep(row, false);
      });
      break;
    }
    if (outputs.length >= beam || others.length < beam) break;
    parents = others.map(({ parent }) => parent);
    rows = others.map(extended);
  }
  // The first of equals, as a stable sort has it.
  return finishedOutput(outputs.reduce((first, each) => (each.score > first.score ? each : first)));
}

async function greedy(step, { limit, start, end, banned }) {
  const row = { tokens: [], logProbs: [], steps: [], finished: false };
  for (let length = 0; length <= limit && !row.finished; length++) {
    const found = await step([row.tokens.at(-1) ?? start], [0]);
    const [{ token, logProb }] = best(found.logProbs, [0], 1, [start, ...banned]);
    if (token !== end && length === limit) break;
    row.finished = token === end;
    if (!row.finished) row.tokens.push(token);
    row.logProbs.push(logProb);
    row.steps.push({ weights: found.weights?.[0], gate: found.gates?.[0] });
  }
  return finishedOutput({ ...row, score: row.logProbs.reduce(add, 0) / Math.max(1, row.logProbs.length) });
}

function finishedOutput({ tokens, logProbs, steps, score, finished }) {
  return { tokens, logProbs, score, finished, weights: steps.map((each) => each.weights), gates: steps.map((each) => each.gate) };
}

/** The largest sums of the total of a row and the log-probability of a token, the largest first. */
function best(logProbs, totals, count, banned) {
  const found = [];
  let least = -Infinity;
  logProbs.forEach((row, parent) => {
    if (totals[parent] === -Infinity && found.length >= count) return;
    for (let token = 0; token < row.length; token++) {
      if (found.length >= count && totals[parent] + row[token] <= least) continue;
      const total = banned.includes(token) ? -Infinity : add(totals[parent], row[token]);
      if (found.length >= count && total <= least) continue;
      let place = found.length;
      while (place > 0 && found[place - 1].total < total) place--;
      found.splice(place, 0, { parent, token, total, logProb: row[token] });
      if (found.length > count) found.pop();
      least = found.at(-1).total;
    }
  });
  return found;
}
