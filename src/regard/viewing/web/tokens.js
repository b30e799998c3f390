// Texts as people read them: right-to-left scripts, control characters, long labels.

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/g;
const LETTER = /\p{L}/gu;
// Controls, line separators, and marks that reorder the text after them.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

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
