// A tokenizer.json of regard read in the browser: words, or byte-pair encoding with bytes for rare characters. The ids are
// those of regard.data.tokenizer.Tokenizer.

const LETTER = "\\p{L}\\p{M}\\p{N}\\u200C\\u200D\\u00AD"; // with the joiners and the soft hyphen, which occur inside words
const CLITIC = `['\\u2019](?:[sSſ]|[tT]|[rR][eE]|[vV][eE]|[lL][lL]|[dD]|[mM])(?![${LETTER}])`;
/** Where merges never cross: words, punctuation, after a French elision, before an English contraction. */
const UNIT = new RegExp(
  ` ?[${LETTER}]+(?:(?!${CLITIC})['\\u2019](?=\\p{L}))?|${CLITIC}| ?([^ ${LETTER}])\\1*[\\p{M}\\u200D]*|[^]`, "gu");
const [PAD, START, END, UNKNOWN, INNER_UNKNOWN] = [0, 1, 2, 3, 4];
const UNKNOWN_MARK = "⁇";

class Tokenizer {
  /** `written` is the content of a tokenizer.json. */
  constructor(written) {
    const { model, normalizer } = written;
    this.kind = model.type === "BPE" ? "bpe" : "word";
    this.lowercase = JSON.stringify(normalizer ?? "").includes("Lowercase");
    this.vocabulary = new Map(Object.entries(model.vocab));
    this.pieces = [];
    for (const [piece, id] of this.vocabulary) this.pieces[id] = piece;
    this.ranks = new Map((model.merges ?? []).map((pair, rank) => [pair.join("\n"), rank]));
    this.firstByte = model.byte_fallback ? this.vocabulary.get("<0x00>") : null;
  }

  /** The ids of a text, without that of the end. */
  encode(text) {
    const lower = this.lowercase ? text.toLowerCase() : text;
    const line = lower.split(/\s+/u).filter(Boolean).map((word) => ` ${word}`).join("").normalize("NFC");
    return (line.match(UNIT) ?? []).flatMap((unit) => (this.kind === "bpe" ? this.#merged(unit) : [this.#word(unit)]));
  }

  #word(unit) {
    return this.vocabulary.get(unit) ?? (unit.startsWith(" ") ? UNKNOWN : INNER_UNKNOWN);
  }

  /** The pieces of a unit: neighbours are merged, the most frequent pair of the training first. */
  #merged(unit) {
    const parts = [];
    for (const character of unit) {
      if (this.vocabulary.has(character)) parts.push(character);
      else if (this.firstByte === null) parts.push(null);
      else for (const byte of new TextEncoder().encode(character)) parts.push(this.pieces[this.firstByte + byte]);
    }
    for (;;) {
      let best = Infinity;
      let place = -1;
      for (let index = 0; index + 1 < parts.length; index++) {
        if (parts[index] === null || parts[index + 1] === null) continue;
        const rank = this.ranks.get(`${parts[index]}\n${parts[index + 1]}`) ?? Infinity;
        if (rank < best) [best, place] = [rank, index];
      }
      if (place < 0) return parts.map((part) => (part === null ? UNKNOWN : this.vocabulary.get(part)));
      parts.splice(place, 2, parts[place] + parts[place + 1]);
    }
  }

  #isByte(id) {
    return this.firstByte !== null && id >= this.firstByte && id < this.firstByte + 256;
  }

  /** The text that each id stands for, with its leading space; that of a character in bytes is with the first. */
  #texts(ids) {
    const texts = ids.map((id) => {
      if (id < UNKNOWN || this.#isByte(id)) return "";
      if (id === UNKNOWN) return this.kind === "bpe" ? UNKNOWN_MARK : ` ${UNKNOWN_MARK}`;
      return this.kind === "word" && id === INNER_UNKNOWN ? UNKNOWN_MARK : this.pieces[id];
    });
    for (let first = 0; first < ids.length; first++) {
      if (!this.#isByte(ids[first])) continue;
      let last = first;
      while (last < ids.length && this.#isByte(ids[last])) last++;
      const bytes = ids.slice(first, last).map((id) => id - this.firstByte);
      for (let at = 0; at < bytes.length; ) {
        // A character has as many bytes as its first one says.
        const size = bytes[at] < 0x80 ? 1 : bytes[at] < 0xe0 ? 2 : bytes[at] < 0xf0 ? 3 : 4;
        texts[first + at] = new TextDecoder().decode(new Uint8Array(bytes.slice(at, at + size)));
        at += size;
      }
      first = last - 1;
    }
    return texts;
  }

  decode(ids) {
    return this.#texts(ids).join("").split(/\s+/u).filter(Boolean).join(" ");
  }

  /** An axis of a trace: a label for each id and further special tokens, and the words that they form. */
  axis(name, ids, marks = []) {
    const texts = this.#texts(ids);
    const labels = texts.map((text, index) =>
      this.#isByte(ids[index]) ? text : (this.pieces[ids[index]].replace(/^ /, "") || "▁"));
    const words = [];
    texts.forEach((text, index) => {
      if (!words.length || text.startsWith(" ")) words.push([labels[index], 1]);
      else words[words.length - 1] = [words.at(-1)[0] + labels[index], words.at(-1)[1] + 1];
    });
    const all = [...labels, ...marks];
    const axis = { name, kind: "tokens", labels: all, text: this.decode(ids) };
    if (words.some(([, count]) => count > 1)) axis.words = [...words, ...marks.map((mark) => [mark, 1])];
    if (marks.length) axis.special = marks.map((_, index) => labels.length + index);
    const isRight = (label) => /\p{Script=Arabic}|\p{Script=Hebrew}/u.test(label);
    if (2 * labels.filter(isRight).length > labels.length) axis.direction = "rtl";
    return axis;
  }
}

/** The sentences of a text, as the browser divides it. */
function sentencesOf(text) {
  return [...new Intl.Segmenter("en", { granularity: "sentence" }).segment(text)]
    .map(({ segment }) => segment.trim()).filter((segment) => /\p{L}/u.test(segment));
}

const PLAIN = { "‘": "'", "’": "'", "‚": "'", "′": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "″": '"',
  "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-", "−": "-" };

/** A sentence as a translator reads it: {given, isInCapitals}. Capitals, a rare first word and rare signs become plain. */
function prepared(sentence, tokenizer) {
  const isInCapitals = !/\p{Ll}/u.test(sentence) && (sentence.match(/\p{L}+/gu) ?? []).some((word) => word.length > 1);
  let given = isInCapitals ? sentence.toLowerCase() : sentence;
  const first = /^\p{L}+/u.exec(given)?.[0];
  if (!isInCapitals && first && !tokenizer.lowercase && /^\p{Lu}\p{Ll}*$/u.test(first)) {
    const [pieces, lower] = [tokenizer.encode(first).length, first.toLowerCase()];
    if (pieces >= 3 && tokenizer.encode(lower).length < pieces) given = lower + given.slice(first.length);
  }
  const known = (text) => [...text].every((character) => tokenizer.vocabulary.has(character));
  const spelled = [...given.normalize("NFC")].map((character) => {
    if (tokenizer.kind === "word" || known(character) || /\s/u.test(character)) return character;
    const plain = [...character.normalize("NFKC")].map((each) => PLAIN[each] ?? each).join("");
    return known(plain) ? plain : character;
  });
  return { given: spelled.join("").split(/\s+/u).filter(Boolean).join(" "), isInCapitals };
}
