// Tokens as people read them: special tokens, subwords joined to words, right-to-left scripts, control characters.

const SPECIAL = /^(<\/?s>|<(pad|bos|eos|sos|cls|sep|start|end)>|<\|[^|]*\|>|\[(CLS|SEP|PAD|BOS|EOS)\])$/i;
const UNKNOWN = /^(<unk>|\[UNK\])$/i;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/g;
const LETTER = /\p{L}/gu;
// Controls, line separators, and marks that reorder the text after them.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Whether a token only marks the beginning or end of a text, or pads it. */
export function isSpecial(label) {
  return SPECIAL.test(label);
}

/** A label with its control characters made visible. */
export function printable(label) {
  return label.replace(CONTROL, (letter) => (letter === "\n" ? "⏎" : letter === "\t" ? "⇥" : "\ufffd"));
}

/** The printable label, cut to a number of letters. */
export function shortened(label, letters = 28) {
  const shown = [...printable(label.slice(0, 4 * letters + 8))];
  return shown.length <= letters ? shown.join("") : `${shown.slice(0, letters - 1).join("")}…`;
}

/** "rtl" where most letters belong to a right-to-left script, otherwise "ltr". */
export function direction(labels) {
  const text = Array.isArray(labels) ? labels.join(" ") : labels;
  const right = text.match(RIGHT_TO_LEFT)?.length ?? 0;
  return 2 * right > (text.match(LETTER)?.length ?? 0) ? "rtl" : "ltr";
}

/** The positions of an axis that belong to one word each, or null where no word has more than one token. */
export function wordGroups(axis) {
  if (axis.kind !== "tokens") return null;
  const starts = axis.text ? startsInText(axis.labels, axis.text) : startsByMarks(axis.labels);
  if (!starts || starts.every(Boolean)) return null;
  const groups = [];
  starts.forEach((isStart, place) => (isStart ? groups.push([place]) : groups.at(-1).push(place)));
  return groups;
}

/** The label of a token or of the tokens of one word, without the marks of subword tokenizers. */
export function joined(labels) {
  if (labels.length === 1) return labels[0].replace(/^[▁Ġ](?=.)|^##(?=.)|@@$|<\/w>$/gu, "");
  return labels.map((label) => label.replace(/^[▁Ġ]|^##|@@$|<\/w>$/gu, "")).join("");
}

/** For each token whether it starts a word, by looking it up in the text, where spaces separate words. */
function startsInText(labels, text) {
  const lower = text.toLowerCase();
  const starts = [];
  let place = 0;
  let afterSpecial = true;
  for (const label of labels) {
    if (isSpecial(label)) {
      starts.push(true);
      afterSpecial = true;
      continue;
    }
    const token = joined([label]).trim().toLowerCase();
    const found = UNKNOWN.test(label) ? place + text.slice(place).search(/\S|$/) : lower.indexOf(token, place);
    const known = found >= 0 && found - place < 60;
    const skipped = known ? text.slice(place, found) : "";
    starts.push(afterSpecial || !known || /\s/.test(skipped));
    if (known) place = UNKNOWN.test(label) ? found + text.slice(found).search(/\s|$/) : found + token.length;
    afterSpecial = false;
  }
  return starts;
}

/** For each token whether it starts a word, by the marks of common subword tokenizers; null where there are none. */
function startsByMarks(labels) {
  const plain = labels.filter((label) => !isSpecial(label));
  if (plain.some((label) => /^[▁Ġ]/u.test(label))) {
    return labels.map((label, i) => isSpecial(label) || /^[▁Ġ]/u.test(label) || i === 0 || isSpecial(labels[i - 1]));
  }
  if (plain.some((label) => label.startsWith("##"))) {
    return labels.map((label, i) => i === 0 || !label.startsWith("##"));
  }
  for (const [ends, isOpen] of [
    ["</w>", false],
    ["@@", true],
  ]) {
    if (plain.some((label) => label.endsWith(ends))) {
      return labels.map((label, i) => {
        if (i === 0 || isSpecial(label) || isSpecial(labels[i - 1])) return true;
        return labels[i - 1].endsWith(ends) !== isOpen;
      });
    }
  }
  return null;
}
