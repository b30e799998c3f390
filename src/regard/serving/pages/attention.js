// The page Attention: what one step computes, in numbers that can be edited, from a look-up to self-attention.

import { html } from "/web/dom.js";
import { lookUp } from "/pages/attention_look_up.js";
import { selfAttentionStep } from "/pages/attention_self.js";
import { DEFAULTS, fits, NUMBERS, readState } from "/pages/attention_state.js";
import { decoderStep, encoderSteps } from "/pages/attention_translation.js";
import { button, intro, section } from "/pages/parts.js";
import { write } from "/pages/state.js";

const LEAD =
  "A query is compared with keys, the scores become weights, and the values are summed by weight. Change any number " +
  "and see what follows. The numbers were chosen by hand, so that they are easy to follow: nothing here was learned.";

/** Show the page in `root`. */
export function showAttention(root) {
  const state = readState();
  const numbers = Object.fromEntries(
    Object.entries(NUMBERS).map(([name, matrix]) => [
      name,
      fits(state.numbers[name], matrix) ? state.numbers[name] : structuredClone(matrix),
    ]),
  );
  const set = (values) => {
    Object.assign(state, values);
    write(values);
  };
  /** A listener for numbers that were edited in place: notes in the address those that are no longer the first ones. */
  const edited = (draw) => () => {
    const isOther = ([name, matrix]) => JSON.stringify(matrix) !== JSON.stringify(NUMBERS[name]);
    set({ numbers: Object.fromEntries(Object.entries(numbers).filter(isOther)) });
    draw();
  };
  const context = { state, numbers, set, edited };
  const decoder = decoderStep(context);
  const reset = button("Reset all numbers", () => {
    set(DEFAULTS);
    root.replaceChildren();
    showAttention(root);
  });
  root.append(
    intro("One step of attention", LEAD),
    section("1. A look-up in a table", lookUp(context)),
    section("2. An encoder reads, word by word", encoderSteps(context, decoder.draw)),
    section("3. A decoder attends: Bahdanau and Luong", decoder.nodes),
    section("4. Self-attention: queries, keys and values", selfAttentionStep(context)),
    html("div.row", reset),
  );
}
