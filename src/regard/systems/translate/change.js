// What a change did: the difference in words and in log-probability, and a way back.

import { html } from "/web/dom.js";
import { fixed } from "/web/colours.js";
import { button, editedText, ending, named, number, scrollTable, tableRow } from "/pages/parts.js";
import { alignmentName, headName } from "/systems/translate/panels.js";
import { joined } from "/systems/translate/words.js";

/** The box about the change of a page; null where nothing is changed. */
export function changeBox(page) {
  const { answer, state } = page;
  const { difference, before } = answer;
  if (!difference) return null;
  const { after } = difference;
  const moved = state.attention.map(({ step }) => step);
  // Where attention was moved, what stands before is kept, which need not be said.
  const forced = state.word || (state.prefix.length && !moved.includes(state.prefix.length));
  const list = [
    forced ? `it must begin with “${beginning(after, state)}”` : null,
    moved.length ? `attention was moved for ${moved.map((step) => `“${wordAt(after, step)}”`).join(", ")}` : null,
    state.heads.length ? `without ${state.heads.map(headName).join(", ")}` : null,
    state.align ? alignmentName(state.align) : null,
  ].filter(Boolean);
  const same = before.text === after.text;
  const changesModel = state.attention.length || state.heads.length || state.align;
  return html(
    "div.change",
    { role: "status" },
    html(
      "div.row.spread",
      html("p", html("strong", "You changed it: "), `${list.join("; ")}.`),
      button("Reset", () => page.reset(), { "data-keep": "reset" }),
    ),
    same ? html("p", "The words stay the same.") : editedText(difference.edits),
    numbers(before, difference, changesModel, same),
    html("p.quiet", explained(before, difference, changesModel, same)),
  );
}

/** The words that were fixed. */
function beginning({ words }, { prefix, word }) {
  const forced = words.filter(({ first }) => first < prefix.length);
  const text = joined(forced.map((each) => ({ ...each, text: named(each.text) })));
  return ending([text, word].filter(Boolean).join(" "), 56);
}

/** The word of the step whose attention is shown for it. */
function wordAt({ words }, step) {
  return named((words.find((word) => step < word.step + word.tokens.length) ?? words.at(-1))?.text);
}

function numbers(before, { after, before_under_change: kept, after_unchanged: judged }, changesModel, same) {
  const row = (label, ...values) => tableRow(label, values.map((value) => number(value, fixed(value, 2))));
  const heads = changesModel ? ["", "model as it is", "with your change"] : ["", "log-probability"];
  const rows = changesModel
    ? [row("original words", before.log_prob, kept), row("new words", judged, after.log_prob)]
    : [row("original words", before.log_prob), row("new words", after.log_prob)];
  const caption = changesModel ? "Log-probability of all words together" : "";
  const properties = { caption, className: "logprobs" };
  return scrollTable("Log-probabilities", heads, same ? rows.slice(0, 1) : rows, properties);
}

function explained(before, { after, before_under_change: kept, after_unchanged: judged }, changesModel, same) {
  if (!changesModel) {
    const likelier = ratio(after.log_prob - before.log_prob);
    return same ? "" : `The model finds the new translation ${likelier} the original one.`;
  }
  const moved = `The change makes the original words ${ratio(kept - before.log_prob)} before.`;
  if (same) return moved;
  const withIt = `With it, the new words are ${ratio(after.log_prob - kept)} the original ones`;
  return `${moved} ${withIt}; without it, they are ${ratio(judged - before.log_prob)} the original ones.`;
}

/** A difference of log-probabilities in words: "12 times likelier than". */
function ratio(difference) {
  const size = Math.exp(Math.abs(difference));
  if (size < 1.05) return "as likely as";
  const number = size < 10 ? size.toFixed(1) : size < 1e6 ? Math.round(size).toLocaleString("en") : "over a million";
  return `${number} times ${difference > 0 ? "likelier" : "less likely"} than`;
}
