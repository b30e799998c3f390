// A look-up in the table PERSONS of the lectures, with matches that are exact or by degrees.

import { fixed } from "/web/colours.js";
import { html } from "/web/dom.js";
import { MATCHES, WEIGHINGS } from "/pages/attention_numbers.js";
import { choices, exactNumber, refill, stepTable, weightBar } from "/pages/attention_tables.js";
import { exampleButtons, field, select } from "/pages/parts.js";

const PERSONS = ["Ali Ahmadi", "Mohammad Reza Ali Mohammadi", "Ashkan Mohammadi"];
const IDS = ["005123174812", "015843268901", "005123174823"];
const LOOK_UPS = [
  { name: "WHERE ID = '015843268901'", id: "015843268901", match: "equality", weigh: "none" },
  { name: "LIKE '00512317%'", id: "00512317", match: "prefix", weigh: "none" },
  { name: "a mistyped ID", id: "005123174832", match: "digits", weigh: "softmax" },
];

/** The table PERSONS: a query, keys, and a sum of values. */
export function lookUp({ state, set }) {
  const result = html("div.result");
  const input = html("input", { type: "text", inputMode: "numeric", maxLength: 12, value: state.id });
  const match = select(choices(MATCHES), state.match, (name) => change({ match: name }));
  const weigh = select(choices(WEIGHINGS), state.weigh, (name) => change({ weigh: name }));
  const change = (values) => {
    set(values);
    [input.value, match.value, weigh.value] = [state.id, state.match, state.weigh];
    draw();
  };
  const draw = () => {
    const scores = IDS.map((id) => MATCHES[state.match].compare(state.id, id));
    const weights = WEIGHINGS[state.weigh].weigh(scores);
    const rows = IDS.map((id, place) => ({
      name: id,
      cells: [exactNumber(scores[place], 0), weightBar(weights[place]), PERSONS[place]],
    }));
    const found = PERSONS.map((name, place) => [weights[place], name]).filter(([weight]) => weight);
    const sum = found.map(([weight, name]) => `${fixed(weight, 2)} · ${name}`).join(" + ");
    refill(
      result,
      stepTable("PERSONS", ["key: ID", "match", "weight", "value: Name, Family"], rows, {
        sum: { name: "result", value: sum || "nothing: no key matches" },
      }),
    );
  };
  input.addEventListener("input", () => change({ id: input.value.trim() }));
  draw();
  return [
    html(
      "p",
      "Attention is a look-up: Similarity(q, k, v) = Σ Similarity(q, kᵢ) · vᵢ. In a database a key matches or " +
        "does not. With the softmax of a similarity, a mistyped key still finds its row, and queries and keys can" +
        " be learned.",
    ),
    exampleButtons(LOOK_UPS, ({ id, match: compare, weigh: rule }) => change({ id, match: compare, weigh: rule })),
    html("div.row.numbers", field("Query: an ID", input), field("Match", match), field("Weights", weigh)),
    result,
  ];
}
